"""Subtask memory: solved subtasks of earlier episodes, recalled for one that resembles them (2508.16153, section 4)."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass

from agentmem.agents.case_prompt import ShownCases, show_cases
from agentmem.agents.context import Context
from agentmem.domain.case import Case, Recall
from agentmem.domain.plan import Subtask
from agentmem.domain.provenance import Provenance
from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.domain.value import fingerprint
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.case_policy import CasePolicy
from agentmem.settings import MemorySettings

FOLDER = "subtasks"
"""Within the bank of the whole tasks."""
TRACE_LINES = 12
"""Tool calls of an attempt, or of a subtask, that a case keeps."""
TRACE_CHARS = 300
"""Characters of each."""


@dataclass(frozen=True)
class SubtaskMemory:
    """A case bank whose states are descriptions of subtasks; the executor is shown it, the planner is not."""

    bank: CaseBank
    policy: CasePolicy
    settings: MemorySettings

    @classmethod
    def beside(cls, bank: CaseBank, policy: CasePolicy, settings: MemorySettings) -> SubtaskMemory:
        """That of an agent with this bank, under the same policy, which learns here on its own."""
        inner = CaseBank(bank.path / FOLDER, embedder=bank.embedder, rules=bank.rules)
        return cls(inner, deepcopy(policy), settings)

    async def recall(self, subtask: Subtask, context: Context) -> ShownCases:
        """The solved subtasks for one, drawn once: a resumed attempt sees what it saw, whatever was written since."""

        async def draw() -> Recall:
            return await asyncio.to_thread(
                self.bank.recall,
                subtask.description,
                k=self.settings.cases,
                policy=self.policy,
                seed=context.seed,
                # The leak guard of tasks: what the same task taught is no news in a test.
                task_id="" if self.settings.online else context.task.id,
            )

        recall = await context.scope.step(
            f"recall/{subtask.id}",
            draw,
            returns=Recall,
            request=fingerprint([context.task.id, subtask.description]),
        )
        return show_cases(recall, self.settings, await context.scope.run.mark())

    def retain(
        self, task: Task, trajectory: Trajectory, reward: Reward, *, key: str, source: str, keep: bool
    ) -> None:
        """Write what an episode solved, worth what the episode was worth; and credit what was recalled for it.

        Args:
            task: the episode's.
            trajectory: what was done.
            reward: what it was worth.
            key: names the attempt: one that is replayed writes nothing twice.
            source: who says so.
            keep: whether what was solved becomes cases; if not, what was recalled is credited alone.
        """
        for subtask in (subtask for plan in trajectory.plans for subtask in plan.subtasks):
            if keep and subtask.status == "solved":
                place, untrusted = f"{task.id}/{subtask.id}", task.untrusted or subtask.untrusted
                case = Case.of(
                    subtask.description,
                    subtask.result,
                    reward=reward.score,
                    trace=calls_of(trajectory, subtask.id),
                    task_id=task.id,
                    cluster=task.cluster or "",
                    gated=task.gated,
                    provenance=Provenance(source=source, place=place, untrusted=untrusted),
                )
                self.bank.retain(case, used=subtask.recall, reward=reward, key=f"{key}/{subtask.id}")
            elif subtask.recall is not None:
                self.bank.credit(subtask.recall, reward, key=f"{key}/{subtask.id}")


def calls_of(trajectory: Trajectory, subtask: str | None = None) -> tuple[str, ...]:
    """The tool calls of an attempt, or of one of its subtasks, and what came back, shortened."""
    lines = [
        f"{result.call.name} {result.call.arguments} -> {result.content}"
        for step in trajectory.steps
        if subtask is None or step.subtask == subtask
        for result in step.results
    ]
    return tuple(" ".join(line.split())[:TRACE_CHARS] for line in lines[:TRACE_LINES])
