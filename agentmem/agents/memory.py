"""The memory of an agent: what a task recalls before it acts, and what is written once it was judged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentmem.agents.case_prompt import ShownCases, show_cases
from agentmem.agents.context import Context
from agentmem.agents.subtask_memory import TRACE_CHARS, SubtaskMemory, calls_of
from agentmem.domain.callable import is_async, name_of, source_hash
from agentmem.domain.case import Case, Provenance, Recall
from agentmem.domain.plan import Subtask
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import ToolResult, Trajectory
from agentmem.domain.value import Value, fingerprint
from agentmem.errors import AgentError, boundary
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.case_policy import CasePolicy
from agentmem.memory.tool_memory import ToolMemory
from agentmem.runs.run import Run, Scope
from agentmem.settings import MemorySettings


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
    """Who says so; by default the reward's source. What `"user"` says, who asked, verifies nothing."""


FeedbackFunction = Callable[[Task, Rollout], Feedback | Awaitable[Feedback | None] | None]


@dataclass(frozen=True)
class Memory:
    """A case bank as one agent uses it (2508.16153, section 3: retrieve, reuse, retain)."""

    bank: CaseBank
    policy: CasePolicy
    settings: MemorySettings
    feedback: FeedbackFunction | None = None
    subtasks: SubtaskMemory | None = None
    """Of a planner."""
    tools: ToolMemory | None = None

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
        """Solved subtasks of earlier episodes that resemble this one, for its executor."""
        return await self.subtasks.recall(subtask, context) if self.subtasks else ShownCases()

    async def about_tools(self, names: Sequence[str], scope: Scope) -> tuple[str, ...]:
        """What is known of these tools, a line each; asked once an attempt, and stored."""
        if self.tools is None or not names:
            return ()
        tools = self.tools

        async def look() -> _Known:
            records = await asyncio.to_thread(tools.about, names)
            return _Known(lines=tuple(str(record) for record in records))

        return (await scope.step("recall/tools", look, returns=_Known)).lines

    async def retain(self, group: Group, run: Run) -> None:
        """Write what came of a group: each attempt as a case, corrections as others, and credit for what was recalled.

        An attempt without a known reward is written as nothing. Writing twice is writing once, so that a run that is
        gone on with changes nothing that is in the bank already.
        """
        for rollout in group.rollouts:
            at = f"{await run.mark()}/{group.task.id}/{rollout.index}"
            if self.tools is not None:
                await asyncio.to_thread(self.tools.retain, _calls(rollout, at), task_id=group.task.id)
            given = await self._feedback(group.task, rollout)
            if given is None or given.reward.score is None:
                continue
            await asyncio.to_thread(self._write, group.task, rollout, given, at, run.path.name)

    def describe(self) -> dict[str, Any]:
        """What determines what it recalls; compared when a run is gone on with."""
        about: dict[str, Any] = {"policy": self.policy.name, "settings": self.settings.model_dump()}
        if self.feedback is not None:
            about["feedback"] = f"{name_of(self.feedback)}#{source_hash(self.feedback)}"
        if not self.settings.online:
            about["bank"] = self.bank.snapshot
            if self.subtasks is not None:
                about |= {
                    "subtasks": self.subtasks.bank.snapshot,
                    "tools": self.tools.snapshot if self.tools else "",
                }
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
        # Who said so decides whether it verifies what rests on untrusted text; see `write_rules.verifies`.
        reward = given.reward.model_copy(update={"source": given.source or given.reward.source})
        source, place = given.source or f"run {run_name}", f"{task.id}/{rollout.index}"
        about = {"task_id": task.id, "cluster": task.cluster or "", "gated": task.gated}
        planned = any(not plan.unplanned for plan in rollout.trajectory.plans)
        if (rollout.output or planned) and given.keep_attempt:
            action, trace = _done(rollout.trajectory)
            untrusted = task.untrusted or rollout.trajectory.untrusted
            provenance = Provenance(source=source, place=place, untrusted=untrusted)
            case = Case.of(task.input, action, reward=reward.score, trace=trace, provenance=provenance, **about)
            self.bank.retain(case, used=rollout.recall, reward=reward, cited=rollout.cited, key=f"{key}/attempt")
        elif rollout.recall is not None:
            self.bank.credit(rollout.recall, reward, cited=rollout.cited, key=f"{key}/attempt")
        if self.subtasks is not None:
            self.subtasks.retain(task, rollout.trajectory, reward, key=key, source=source, keep=given.keep_attempt)
        if given.correction and not (given.keep_attempt and given.correction == rollout.output):
            provenance = Provenance(
                source=given.source or f"correction in {run_name}", place=place, untrusted=task.untrusted
            )
            right = Case.of(task.input, given.correction, reward=1.0, provenance=provenance, **about)
            said = Reward.of(1.0, source=given.source or "correction")
            self.bank.retain(right, reward=said, key=f"{key}/correction")


class _Known(Value):
    """What an attempt was told of its tools."""

    lines: tuple[str, ...]


def _calls(rollout: Rollout, at: str) -> list[tuple[str, ToolResult]]:
    """The tool calls of an attempt, each with its own key."""
    results = [result for step in rollout.trajectory.steps for result in step.results]
    return [(f"{at}/{number}", result) for number, result in enumerate(results)]


def _done(trajectory: Trajectory) -> tuple[str, tuple[str, ...]]:
    """What was done, and the steps that led there: of a planner its plans, and what came of the subtasks."""
    plans = trajectory.plans
    if not plans or plans[0].unplanned:
        return trajectory.output or "", calls_of(trajectory)
    action = "\n".join(f"Plan {number}:\n{plan}" for number, plan in enumerate(plans, 1))
    trace = [f"{one.id} {one.status}: {one.result}" for plan in plans for one in plan.subtasks]
    trace.append(f"answer: {trajectory.output or 'none'}")
    return action, tuple(" ".join(line.split())[:TRACE_CHARS] for line in trace)
