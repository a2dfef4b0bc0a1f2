"""Judging an agent on tasks: a plan that can be looked at before it is paid for, and its execution."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions
from agentmem.agents.estimate import Estimate
from agentmem.agents.sampler import Sampler
from agentmem.atomic import atomic_write
from agentmem.domain.rollout import Group
from agentmem.domain.task import Task, TaskSet
from agentmem.evaluation.report import EvaluationReport, Outcome
from agentmem.evaluation.statistics import smallest_detectable
from agentmem.events import PhaseStarted
from agentmem.models.gateway import Gateways
from agentmem.models.model import Model
from agentmem.rewards.reward_function import RewardFunction, check_answers, describe
from agentmem.runs.run import Run
from agentmem.settings import FREE, EvalSettings


@dataclass(frozen=True)
class Evaluation:
    """An evaluation that is asked for."""

    agent: Agent
    tasks: TaskSet
    reward: RewardFunction
    settings: EvalSettings

    @classmethod
    def of(
        cls, agent: Agent, tasks: Iterable[Task], reward: RewardFunction, settings: EvalSettings | None = None
    ) -> Evaluation:
        """Check what is asked.

        Raises:
            InputError: there is no task, or the reward can never score one of them.
        """
        task_set = TaskSet.of(tasks)
        check_answers(reward, task_set)
        return cls(agent, task_set, reward, settings or EvalSettings())

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
            "settings": self.settings.model_dump(exclude=FREE),
            "fingerprints": {"tasks": self.tasks.fingerprint, "prior": self.agent.memory_hash},
        }

    def estimate(self) -> Estimate:
        """What it will take, and the smallest difference between two such evaluations that it could detect."""
        phases = [(self.tasks, self.settings.samples)]
        return Estimate.of(self.agent, phases, reward=self.reward, notes=self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before spending."""
        n = len(self.tasks)
        effect = smallest_detectable(n, samples=self.settings.samples)
        if effect is None:
            return (f"{n} tasks are too few to show any difference; give more, or read the result as an example.",)
        return (f"Smallest paired difference that {n} tasks show with 80 % power: {effect:.3f}.",)

    async def execute(self, run: Run, gateways: Gateways) -> EvaluationReport:
        """Make all attempts and report; the agent's library is frozen meanwhile.

        Raises:
            BudgetExceeded: the budget is spent; what was paid for is stored.
            TooManyErrors: too many attempts failed for reasons that are not the agent's.
        """
        settings = self.settings
        conditions = Conditions(gateways, self.reward, temperature=settings.temperature, seed=settings.seed)
        sampler = Sampler(run, conditions, settings.concurrency, settings.max_error_share)
        run.events.emit(PhaseStarted("eval", len(self.tasks) * settings.samples, title="evaluation"))
        outcomes: dict[str, list[Outcome]] = {}
        async for group in self._groups(sampler):
            outcomes[group.task.id] = [Outcome.of(rollout, group.task.cluster) for rollout in group.rollouts]
        library = self.agent.library
        report = EvaluationReport(
            name=os.fsencode(run.path.name).decode("utf-8", "replace"),
            agent=self.agent.name,
            model=self.agent.model.name if self.agent.model else "",
            tasks_name=self.tasks.name,
            tasks_fingerprint=self.tasks.fingerprint,
            reward=self.reward.name,
            settings=settings.model_dump(exclude=FREE),
            prior_hash=self.agent.memory_hash,
            library_version=library.version if library is not None else None,
            outcomes=tuple(outcome for task in self.tasks for outcome in outcomes[task.id]),
            usage=run.ledger.total,
            seconds=run.ledger.seconds,
        )
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
            self.agent, self.tasks, plan=settings.samples, phase="eval", at_once=at_once
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
