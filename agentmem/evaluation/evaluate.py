"""Judging an agent on tasks: a plan that can be looked at before it is paid for, and its execution."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions
from agentmem.agents.estimate import Estimate
from agentmem.agents.sampler import Sampler
from agentmem.atomic import atomic_write
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task, TaskSet
from agentmem.domain.usage import estimate_tokens
from agentmem.errors import AgentMemError, InputError
from agentmem.evaluation.contamination import Contamination, contamination, sources_of
from agentmem.evaluation.kept_tasks import keep_tasks
from agentmem.evaluation.looks import looks_of, noted
from agentmem.evaluation.report import EvaluationReport, Outcome
from agentmem.evaluation.spending import ROWS, Spent, spending, total
from agentmem.evaluation.statistics import smallest_detectable
from agentmem.events import Event, PhaseStarted, RolloutFinished
from agentmem.memory.embedder import open_embedder
from agentmem.models.gateway import Gateways
from agentmem.models.model import Model
from agentmem.rewards.reward_function import RewardFunction, check_answers, describe
from agentmem.runs.run import Run
from agentmem.settings import FREE, EvalSettings

PHASE = "eval"
"""Where its attempts are stored."""
CONFIDENCE_TOKENS = 1024
"""Tokens that the reply to "how likely?" may have, what a model thinks before it included."""
ROLLOUTS = (
    "SELECT task, rollout, result FROM steps WHERE phase=? AND purpose='rollout' AND failure IS NULL ORDER BY seq"
)


@dataclass(frozen=True)
class Evaluation:
    """An evaluation that is asked for."""

    agent: Agent
    tasks: TaskSet
    reward: RewardFunction
    settings: EvalSettings
    contamination: Contamination | None = None
    """What the tasks share with what the agent learned from; None where nothing was compared."""

    @classmethod
    def of(
        cls,
        agent: Agent,
        tasks: Iterable[Task],
        reward: RewardFunction,
        settings: EvalSettings | None = None,
        *,
        training: Iterable[Task] = (),
    ) -> Evaluation:
        """Check what is asked, and compare the tasks with what the agent learned from.

        Args:
            agent: what acts; its library and its memory are compared with the tasks.
            tasks: the tasks.
            reward: what scores an attempt.
            settings: how it is judged.
            training: the tasks that were learned from, to be compared with, too.

        Raises:
            InputError: there is no task, the reward can never score one of them, or nobody can be asked for confidence.
        """
        task_set = TaskSet.of(tasks)
        check_answers(reward, task_set)
        if settings is not None and settings.ask_confidence and agent.model is None:
            raise InputError(
                "ask_confidence asks the agent's model, and this agent is a callable without one: give it model=..., "
                "or leave ask_confidence out; agreement over samples needs no question."
            )
        settings = settings or EvalSettings()
        return cls(agent, task_set, reward, settings, overlap_with(agent, task_set, tuple(training), settings))

    @property
    def models(self) -> tuple[str | Model | None, ...]:
        """What it will call."""
        return self.agent.models

    @property
    def asked(self) -> dict[str, Any]:
        """What determines the results; see `Run.open`."""
        return {
            "verb": "eval",
            "agent": self.agent.describe(),
            "reward": describe(self.reward),
            "settings": self._determining,
            "fingerprints": {"tasks": self.tasks.fingerprint, "prior": self.agent.memory_hash},
        }

    @property
    def _determining(self) -> dict[str, Any]:
        """The settings that determine each single attempt."""
        chosen = self.settings.determining()
        if self.agent.memory is None or not self.agent.memory.settings.online:
            # Each attempt has its own place and seed, so further ones change none: a finished run can be added to.
            del chosen["samples"]
        return chosen

    def estimate(self) -> Estimate:
        """What it will take, and the smallest difference between two such evaluations that it could detect."""
        phases = [(self.tasks, self.settings.samples)]
        asked = len(self.tasks) * self.settings.samples if self.settings.ask_confidence else 0
        longest = max(estimate_tokens(task.input) for task in self.tasks)
        reply = self.agent.settings.max_completion_tokens + CONFIDENCE_TOKENS
        return Estimate.of(
            self.agent,
            phases,
            reward=self.reward,
            extra_calls=asked,
            extra_tokens=longest + self.agent.prior_tokens + reply,
            notes=self.notes,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before spending."""
        found = self.contamination
        shared = (f"{found}.",) if found is not None and found.overlaps else ()
        n = len(self.tasks)
        effect = smallest_detectable(n, samples=self.settings.samples)
        if effect is None:
            few = f"{n} tasks are too few to show any difference; give more, or read the result as an example."
            return (few, *shared)
        return (f"Smallest paired difference that {n} tasks show with 80 % power: {effect:.3f}.", *shared)

    async def execute(self, run: Run, gateways: Gateways) -> EvaluationReport:
        """Make all attempts and report; the agent's library is frozen meanwhile.

        An evaluation that is stopped leaves a report too, of the attempts that were made; it says that it is partial.

        Raises:
            BudgetExceeded: the budget is spent; what was paid for is stored.
            TooManyErrors: too many attempts failed for reasons that are not the agent's.
        """
        settings = self.settings
        conditions = Conditions(
            gateways, self.reward, settings.temperature, settings.seed, ask_confidence=settings.ask_confidence
        )
        sampler = Sampler(run, conditions, settings.concurrency, settings.max_error_share)
        await keep_tasks(run, self.tasks)
        run.events.emit(PhaseStarted(PHASE, len(self.tasks) * settings.samples, title="evaluation"))
        clusters = {task.id: task.cluster for task in self.tasks}
        drawn: dict[tuple[str, int], Outcome] = {}

        def keep(rollout: Rollout) -> None:
            outcome = Outcome.of(rollout, clusters.get(rollout.task_id))
            drawn.setdefault((rollout.task_id, rollout.index), outcome)

        def collect(event: Event) -> None:
            if isinstance(event, RolloutFinished):
                keep(event.rollout)

        run.events.listeners.append(collect)
        try:
            async for group in self._groups(sampler):
                for rollout in group.rollouts:
                    keep(rollout)
        except BaseException as why:
            with suppress(Exception):  # what stopped it is the news, and a full disk takes no report either
                # Some were stored after the last event; those that failed may have been forgotten in the journal.
                for _, _, result in run.journal.rows(ROLLOUTS, (PHASE,)):
                    keep(Rollout.model_validate_json(result))
                await self._report(run, drawn, stopped=_reason(why))
            raise
        return await self._report(run, drawn)

    async def _report(
        self, run: Run, drawn: Mapping[tuple[str, int], Outcome], *, stopped: str = ""
    ) -> EvaluationReport:
        """The report of these attempts, written to the run."""
        settings, library = self.settings, self.agent.library
        spent = await spent_by(run)
        outcomes = tuple(
            drawn[task.id, index]
            for task in self.tasks
            for index in range(settings.samples)
            if (task.id, index) in drawn
        )
        planned = len(self.tasks) * settings.samples
        report = EvaluationReport(
            name=name_of(run),
            agent=self.agent.name,
            model=self.agent.model.name if self.agent.model else "",
            tasks_name=self.tasks.name,
            tasks_fingerprint=self.tasks.fingerprint,
            reward=self.reward.name,
            settings=settings.model_dump(exclude=FREE),
            prior_hash=self.agent.memory_hash,
            library_version=library.version if library is not None else None,
            outcomes=outcomes,
            usage=total(spent),
            spending=spent,
            contamination=self.contamination,
            seconds=run.ledger.seconds,
            stopped=stopped if len(outcomes) < planned else "",
            planned=planned,
        )
        if looks_of(self.tasks):
            about = {"agent": report.agent, "memory": report.prior_hash, "score": report.score}
            looks = noted(run.path.parent, run=report.name, fingerprint=report.tasks_fingerprint, about=about)
            report = report.model_copy(update={"looks": looks})
        atomic_write(run.path / "report.json", report.to_json())
        return report

    async def _groups(self, sampler: Sampler) -> AsyncIterator[Group]:
        """The group of each task. An online memory is written to after a batch of tasks, in their order: by then each
        of them was scored, so that no answer rests on its own outcome.
        """
        memory, settings = self.agent.memory, self.settings
        online = memory is not None and memory.settings.online
        at_once = settings.online_batch if online else None
        batch: dict[str, Group] = {}
        left = len(self.tasks)
        async for group in sampler.groups(
            self.agent, self.tasks, plan=settings.samples, phase=PHASE, at_once=at_once
        ):
            left -= 1
            if online:
                batch[group.task.id] = group
                if len(batch) == at_once or not left:
                    assert memory is not None
                    for task in self.tasks:
                        if task.id in batch:
                            await memory.retain(batch.pop(task.id), sampler.run)
            yield group


def overlap_with(
    agent: Agent, tasks: TaskSet, training: tuple[Task, ...], settings: EvalSettings
) -> Contamination | None:
    """What the tasks share with the agent's library, its memory and the training tasks; None where there are none."""
    library, memory = agent.library, agent.memory
    if settings.contamination == "none" or not (library or memory or training):
        return None
    bank = memory.bank if memory is not None else None
    sources = sources_of(training=training, experiences=library or (), cases=bank or ())
    own = bank.embedder if bank is not None else "minilm"
    embedder = open_embedder(own) if settings.contamination == "meaning" else None
    return contamination(tasks, sources, embedder=embedder)


def name_of(run: Run) -> str:
    """What a report calls a run."""
    return os.fsencode(run.path.name).decode("utf-8", "replace")


async def spent_by(run: Run) -> tuple[Spent, ...]:
    """What the run has spent, by purpose; what is on its way to the disk is waited for."""
    await run.journal.write("SELECT 1", ())  # statements are carried out in order
    return spending(run.journal.rows(ROWS))


def _reason(why: BaseException) -> str:
    if isinstance(why, asyncio.CancelledError | KeyboardInterrupt):
        return "interrupted"
    return why.kind if isinstance(why, AgentMemError) else type(why).__name__
