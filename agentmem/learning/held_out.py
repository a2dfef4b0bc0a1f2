"""The tasks of a stream that candidates are tried on: a fixed share, which never teaches."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task
from agentmem.domain.value import Value

EVERY = 2**31
"""How many different numbers a seed can be."""


class Bench(Value):
    """The tasks that one candidate is tried on, as the journal keeps them."""

    tasks: tuple[Task, ...]


@dataclass
class HeldOut:
    """Says which tasks never teach, and keeps a bounded sample of them.

    The side is drawn from the task's cluster, else from its content, so that a task that arrives again is on the same
    side again. Of those that are held out, the ones with the lowest draws are kept: that is a uniform sample over
    different contents, whatever the order in which they come.

    Args:
        share: of the tasks that are held out.
        most: tasks that are kept.
        seed: of the draws.
        given: the caller's tasks for the gate; then none of the stream is kept, and none of these teaches.

    Example:
        >>> held = HeldOut(share=0.5, most=10, seed=0)
        >>> task = Task(id="a", input="2 + 2?")
        >>> held.holds(task) == held.holds(task.model_copy(update={"id": "b"}))
        True
    """

    share: float
    most: int
    seed: int
    given: Sequence[Task] = ()
    _kept: list[tuple[int, str]] = field(default_factory=list)
    _tasks: dict[str, Task] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._given = {_content(task) for task in self.given}

    def holds(self, task: Task) -> bool:
        """Whether the task never teaches."""
        if self._given:
            return _content(task) in self._given
        about = ("cluster", task.cluster) if task.cluster is not None else ("task", _content(task))
        return split_seed(self.seed, "side", *about) < self.share * EVERY

    def add(self, task: Task) -> None:
        """Keep a task that is held out, if its draw is low enough."""
        content = _content(task)
        if self._given or content in self._tasks:
            return
        insort(self._kept, (split_seed(self.seed, "place", content), content))
        self._tasks[content] = task
        if len(self._kept) > self.most:
            _, dropped = self._kept.pop()
            del self._tasks[dropped]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Those that are kept, or the caller's."""
        return tuple(self.given) or tuple(self._tasks[content] for _, content in self._kept)

    def __len__(self) -> int:
        return len(self.given) or len(self._kept)


def _content(task: Task) -> str:
    return repr((" ".join(task.input.split()), task.files))
