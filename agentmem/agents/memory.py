"""The memory of an agent: what a task recalls before it acts, and what is written once it was judged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentmem.agents.case_prompt import ShownCases, show_cases
from agentmem.agents.context import Context
from agentmem.domain.callable import is_async, name_of, source_hash
from agentmem.domain.case import Case, Provenance, Recall
from agentmem.domain.plan import Subtask
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.domain.value import Value, fingerprint
from agentmem.errors import AgentError, boundary
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.case_policy import CasePolicy
from agentmem.runs.run import Run, Scope
from agentmem.settings import MemorySettings

TRACE_LINES = 12
"""Steps of an attempt that a case keeps."""
TRACE_CHARS = 300
"""Characters of each."""


class Feedback(Value):
    """What an attempt is said to have been worth, after it: this is what a memory learns from.

    It need not be the score: a user who clicks, a ticket that is reopened, a colleague who is sometimes wrong.
    """

    reward: Reward
    correction: str | None = None
    """What would have been right; written as a case of its own."""
    keep_attempt: bool = True
    """Whether the attempt itself becomes a case; small models follow what did not work as well as what did."""
    source: str = ""
    """Who says so; by default the reward's source."""


FeedbackFunction = Callable[[Task, Rollout], Feedback | Awaitable[Feedback | None] | None]


@dataclass(frozen=True)
class Memory:
    """A case bank as one agent uses it (2508.16153, section 3: retrieve, reuse, retain)."""

    bank: CaseBank
    policy: CasePolicy
    settings: MemorySettings
    feedback: FeedbackFunction | None = None

    async def recall(self, task: Task, scope: Scope, seed: int) -> ShownCases:
        """The cases for one attempt, drawn once: a resumed attempt sees what it saw, whatever was written since."""

        async def draw() -> Recall:
            return await asyncio.to_thread(
                self.bank.recall,
                task.input,
                k=self.settings.cases,
                policy=self.policy,
                seed=seed,
                # In a stream an earlier answer to the same question is fair; in a test it is a leak.
                task_id="" if self.settings.online else task.id,
            )

        recall = await scope.step("recall", draw, returns=Recall, request=fingerprint([task.id, task.input]))
        return show_cases(recall, self.settings, await scope.run.mark())

    async def recall_subtask(self, subtask: Subtask, context: Context) -> ShownCases:
        """Solved subtasks of earlier episodes that resemble this one."""
        return ShownCases()

    async def about_tools(self, names: Sequence[str], scope: Scope) -> tuple[str, ...]:
        """What is known of these tools, a line each."""
        return ()

    async def retain(self, group: Group, run: Run) -> None:
        """Write what came of a group: each attempt as a case, corrections as others, and credit for what was recalled.

        An attempt without a known reward is written as nothing. Writing twice is writing once, so that a run that is
        gone on with changes nothing that is in the bank already.
        """
        for rollout in group.rollouts:
            given = await self._feedback(group.task, rollout)
            if given is None or given.reward.score is None:
                continue
            key = f"{await run.mark()}/{group.task.id}/{rollout.index}"
            await asyncio.to_thread(self._write, group.task, rollout, given, key, run.path.name)

    def describe(self) -> dict[str, Any]:
        """What determines what it recalls; compared when a run is gone on with."""
        about: dict[str, Any] = {"policy": self.policy.name, "settings": self.settings.model_dump()}
        if self.feedback is not None:
            about["feedback"] = f"{name_of(self.feedback)}#{source_hash(self.feedback)}"
        if not self.settings.online:
            about["bank"] = self.bank.snapshot
        return about

    async def _feedback(self, task: Task, rollout: Rollout) -> Feedback | None:
        if rollout.status == "failed":
            return None
        if self.feedback is None:
            return Feedback(reward=rollout.reward)
        with boundary(AgentError, f"feedback {name_of(self.feedback)!r}, task {task.id!r},"):
            given = self.feedback(task, rollout)
            return await given if is_async(self.feedback) else given  # type: ignore[misc,return-value]  # either form

    def _write(self, task: Task, rollout: Rollout, given: Feedback, key: str, run_name: str) -> None:
        about = {"task_id": task.id, "cluster": task.cluster or ""}
        if rollout.output and given.keep_attempt:
            provenance = Provenance(source=given.source or f"run {run_name}", place=f"{task.id}/{rollout.index}")
            case = Case.of(
                task.input,
                rollout.output,
                reward=given.reward.score,
                trace=_trace(rollout.trajectory),
                provenance=provenance,
                **about,
            )
            self.bank.retain(
                case, used=rollout.recall, reward=given.reward, cited=rollout.cited, key=f"{key}/attempt"
            )
        elif rollout.recall is not None:
            self.bank.credit(rollout.recall, given.reward, cited=rollout.cited, key=f"{key}/attempt")
        if given.correction and not (given.keep_attempt and given.correction == rollout.output):
            provenance = Provenance(
                source=given.source or f"correction in {run_name}", place=f"{task.id}/{rollout.index}"
            )
            right = Case.of(task.input, given.correction, reward=1.0, provenance=provenance, **about)
            self.bank.retain(right, key=f"{key}/correction")


def _trace(trajectory: Trajectory) -> tuple[str, ...]:
    """The tool calls and what came back, shortened."""
    lines = [
        f"{result.call.name} {result.call.arguments} -> {result.content}"
        for step in trajectory.steps
        for result in step.results
    ]
    return tuple(" ".join(line.split())[:TRACE_CHARS] for line in lines[:TRACE_LINES])
