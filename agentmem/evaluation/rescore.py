"""Scoring the answers of a finished evaluation again with another reward; the agent is not called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import JUDGE_TOKENS, Conditions, judge
from agentmem.agents.estimate import Estimate
from agentmem.agents.sampler import together
from agentmem.atomic import atomic_write
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Rollout
from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task, TaskSet
from agentmem.domain.usage import estimate_tokens
from agentmem.domain.value import fingerprint
from agentmem.errors import InputError
from agentmem.evaluation.evaluate import PHASE, ROLLOUTS, name_of, spent_by
from agentmem.evaluation.kept_tasks import tasks_of
from agentmem.evaluation.report import EvaluationReport, Outcome
from agentmem.evaluation.spending import ROWS, merged, spending, total
from agentmem.events import PhaseStarted, RolloutFinished
from agentmem.models.gateway import Gateways
from agentmem.models.model import Model
from agentmem.rewards.judge import Judge
from agentmem.rewards.reward_function import RewardFunction, check_answers, describe
from agentmem.runs.records import Records
from agentmem.runs.run import Run
from agentmem.settings import ModelSettings

AT_ONCE = 96
"""Answers that are scored at once."""


@dataclass(frozen=True)
class Rescoring:
    """A scoring that is asked for: stored answers, and the reward that judges them. It has a run of its own.

    Attempts that failed stay failures, because there is nothing to be judged.
    """

    source: Records
    tasks: TaskSet
    reward: RewardFunction
    agent: Agent
    """Nobody: it is never called."""
    rollouts: tuple[Rollout, ...]

    @classmethod
    def of(
        cls,
        run: str | Path,
        reward: RewardFunction,
        *,
        tasks: Iterable[Task] | None = None,
        calls: ModelSettings | None = None,
    ) -> Rescoring:
        """Check what is asked.

        Args:
            run: the folder of an evaluation, finished or not.
            reward: what judges now.
            tasks: for a run of an earlier agentmem, which kept none.
            calls: how a judge is called.

        Raises:
            InputError: the folder holds no evaluation or no attempts, or the reward can never score one of its tasks.
        """
        source = Records(Path(run))
        verb = source.asked.get("verb", "eval")
        if verb != "eval":
            raise InputError(
                f"{run} holds a run of `{verb}`; only the answers of an evaluation can be scored again."
            )
        if isinstance(reward, Judge) and reward.model is None:
            raise InputError(
                "A judge needs a model here, because the agent is not opened; name one with --judge-model."
            )
        chosen = tasks_of(source, tasks)
        check_answers(reward, chosen)
        found = [Rollout.model_validate_json(row[2]) for row in source.rows((ROLLOUTS, (PHASE,)))[0]]
        place = {task.id: number for number, task in enumerate(chosen)}
        kept = sorted((r for r in found if r.task_id in place), key=lambda r: (place[r.task_id], r.index))
        if not kept:
            raise InputError(f"{run} holds no attempt yet; start its command again, and score it then.")
        return cls(source, chosen, reward, Agent(_nobody, calls=calls), tuple(kept))

    @property
    def models(self) -> tuple[str | Model | None, ...]:
        """None but a judge's."""
        return ()

    @property
    def asked(self) -> dict[str, Any]:
        """What determines the results; see `Run.open`. Attempts that are added to the source later are scored too."""
        return {
            "verb": "rescore",
            "reward": describe(self.reward),
            "fingerprints": {"tasks": self.tasks.fingerprint, "source": fingerprint(self.source.asked)},
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before spending."""
        failed = sum(rollout.status == "failed" for rollout in self.rollouts)
        more = f"; {failed:,} of them failed and stay so" if failed else ""
        return (f"{len(self.rollouts):,} stored answers are scored again, and the agent is not called{more}.",)

    def estimate(self) -> Estimate:
        """What it will take: nothing, or one call of a judge for each answer."""
        if not isinstance(self.reward, Judge):
            return Estimate(attempts=0, calls=(0, 0), tokens=(0, 0), dollars=(0.0, 0.0), notes=self.notes)
        n, inputs = len(self.rollouts), {task.id: task.input for task in self.tasks}
        shown = [f"{inputs[r.task_id]}{r.output or ''}{self.reward.rubric}" for r in self.rollouts]
        read = sum(map(estimate_tokens, shown))
        return Estimate(
            attempts=0, calls=(n, n), tokens=(read, read + n * JUDGE_TOKENS), dollars=None, notes=self.notes
        )

    async def execute(self, run: Run, gateways: Gateways) -> EvaluationReport:
        """Judge all stored answers and report.

        Raises:
            BudgetExceeded: a judge's budget is spent; what was paid for is stored.
        """
        conditions = Conditions(gateways, self.reward, temperature=0.0, seed=0)
        run.events.emit(PhaseStarted("rescore", len(self.rollouts), title="scoring again"))
        tasks = {task.id: task for task in self.tasks}
        places = asyncio.Semaphore(AT_ONCE)

        async def judged(rollout: Rollout) -> Outcome:
            task = tasks[rollout.task_id]
            async with places:
                again = rollout.model_copy(update={"reward": await self._reward(task, rollout, run, conditions)})
            run.events.emit(RolloutFinished("rescore", 0, again))
            return Outcome.of(again, task.cluster)

        outcomes = await together(*(judged(rollout) for rollout in self.rollouts))
        spent = merged(spending(self.source.rows((ROWS, ()))[0]), await spent_by(run))
        report = self._before().model_copy(
            update={
                "name": name_of(run),
                "reward": self.reward.name,
                "outcomes": tuple(outcomes),
                "usage": total(spent),
                "spending": spent,
                "seconds": run.ledger.seconds,
            }
        )
        atomic_write(run.path / "report.json", report.to_json())
        return report

    async def _reward(self, task: Task, rollout: Rollout, run: Run, conditions: Conditions) -> Reward:
        if rollout.status == "failed":
            return rollout.reward
        scope = run.at("rescore", task=task.id, rollout=rollout.index)
        seed = split_seed(0, "rescore", task.id, rollout.index)

        async def make() -> Reward:
            return await judge(task, rollout.trajectory, self.agent, scope, conditions, seed)

        return await scope.step("reward", make, returns=Reward, request=fingerprint([task.id, rollout.output]))

    def _before(self) -> EvaluationReport:
        """The source's own report, or what is known of one that has none yet."""
        file = self.source.folder / "report.json"
        if file.is_file():
            return EvaluationReport.from_json(file.read_bytes(), source=str(file))
        asked = self.source.asked
        return EvaluationReport(
            model=asked.get("agent", {}).get("model") or "",
            tasks_name=self.tasks.name,
            tasks_fingerprint=self.tasks.fingerprint,
            settings=asked.get("settings", {}),
            prior_hash=asked.get("fingerprints", {}).get("prior", ""),
            stopped="unfinished",
        )


def _nobody(task: Task) -> str:
    raise AssertionError("a scoring does not call the agent")
