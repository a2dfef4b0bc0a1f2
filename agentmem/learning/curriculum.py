"""Which tasks of a batch are still worth drawing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agentmem.domain.rollout import Group
from agentmem.domain.task import TaskSet

SELDOM = 4
"""A solved task is drawn in every so many epochs."""


@dataclass
class Solved:
    """Remembers tasks that every attempt got right; after two such epochs they are drawn in every fourth only.

    Args:
        active: whether anything is left out at all (`sampling="adaptive"`).
    """

    active: bool
    _times: dict[str, int] = field(default_factory=dict)

    def add(self, groups: Iterable[Group]) -> None:
        """Take the groups of a step in."""
        for group in groups:
            solved = bool(group.rewards) and min(group.rewards) >= 1
            self._times[group.task.id] = self._times.get(group.task.id, 0) + 1 if solved else 0

    def left(self, batch: TaskSet, *, epoch: int) -> TaskSet:
        """The tasks of the batch that are drawn in this epoch; never none, so that every step says something."""
        if not self.active:
            return batch
        due = [
            task
            for place, task in enumerate(batch)
            if self._times.get(task.id, 0) < 2 or (epoch + place) % SELDOM == 0
        ]
        return TaskSet(due or batch[:1], name=batch.name)
