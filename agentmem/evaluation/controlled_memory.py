"""A case bank under a control: what is recalled is replaced before the agent sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Literal, assert_never

from agentmem.agents.case_prompt import ShownCases, show_cases
from agentmem.agents.memory import Memory
from agentmem.domain.case import Case
from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task
from agentmem.evaluation.other_text import filler
from agentmem.runs.run import Scope

MemoryControl = Literal["shuffled", "irrelevant", "filler"]


@dataclass(frozen=True)
class ControlledMemory(Memory):
    """A memory whose cases say something else, as many and about as long.

    `shuffled`: each case keeps its state and gets the action of another, of another cluster where there is one.
    `irrelevant`: cases drawn at random, whatever
    is asked. `filler`: texts that say nothing. A planner's subtasks and tools are left out.
    """

    control: MemoryControl = field(kw_only=True, default="shuffled")
    seed: int = field(kw_only=True, default=0)

    @classmethod
    def of(cls, memory: Memory, control: MemoryControl, seed: int) -> ControlledMemory:
        """The same bank and policy under a control."""
        return cls(memory.bank, memory.policy, memory.settings, memory.feedback, control=control, seed=seed)

    async def recall(self, task: Task, scope: Scope, seed: int) -> ShownCases:
        """As many cases as the memory recalls, under the control."""
        shown = await super().recall(task, scope, seed)
        recall = shown.recall
        if recall is None or not recall.cases:
            return shown
        changed = [self._instead(item.case, task, place) for place, item in enumerate(recall.cases)]
        cases = tuple(
            item.model_copy(update={"case": case}) for item, case in zip(recall.cases, changed, strict=True)
        )
        return show_cases(recall.model_copy(update={"cases": cases}), self.settings, await scope.run.mark())

    def describe(self) -> dict[str, Any]:
        """What determines what it shows."""
        return {**super().describe(), "control": self.control, "control_seed": self.seed}

    def _instead(self, case: Case, task: Task, place: int) -> Case:
        match self.control:
            case "shuffled":
                donor = self._donors.get(case.id, case)
                return case.model_copy(
                    update={"action": donor.action, "trace": donor.trace, "reward": donor.reward}
                )
            case "irrelevant":
                others = [other for other in self._all if other.task_id != task.id or not task.id]
                return Random(split_seed(self.seed, "irrelevant", task.id, place)).choice(others or self._all)
            case "filler":
                words = {"state": filler(case.state, place), "action": filler(case.action, place + 1)}
                return case.model_copy(
                    update={**words, "trace": tuple(filler(line, place) for line in case.trace)}
                )
        assert_never(self.control)

    @cached_property
    def _all(self) -> list[Case]:
        return [case for case in self.bank if case.trust == "trusted"]

    @cached_property
    def _donors(self) -> dict[str, Case]:
        """Whose action each case gets: in a random order, cluster by cluster, the one that is half of all further on.

        That leads out of a case's own cluster, unless the cluster is more than half of all.
        """
        order = sorted(self._all, key=lambda case: case.id)
        Random(split_seed(self.seed, "shuffled cases")).shuffle(order)
        order.sort(key=lambda case: case.cluster)
        far = (len(order) + 1) // 2
        return {case.id: order[(place + far) % len(order)] for place, case in enumerate(order)}
