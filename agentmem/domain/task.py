"""One input with its reference answer, and an ordered set of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from pydantic import Field, field_validator

from agentmem.domain.value import Value, fingerprint
from agentmem.errors import InputError


class Task(Value):
    """One input, and what is known of its answer.

    Example:
        >>> Task(id="sum-1", input="What is 2 + 3?", answer="5").answer
        '5'
    """

    id: str
    """Unique in its set, and stable: results are stored under it."""
    input: str
    """What the agent is given."""
    answer: str | None = None
    """The reference answer; None where there is none."""
    files: tuple[str, ...] = ()
    """Paths of attached files."""
    level: str | None = None
    """Difficulty, in the words of the data set."""
    cluster: str | None = None
    """Tasks of one cluster share a context (a passage, a template), so their results are not independent."""
    split: str | None = None
    """The split that the data set puts it in."""
    license: str | None = None
    """The licence of the data set."""
    gated: bool = False
    """Whether the data set is gated; what is learned from it is marked, and its export refused."""
    untrusted: bool = False
    """Whether a stranger wrote it, such as a message from the public: what is learned from it may be shown only once
    a known answer or somebody who can be trusted has verified it."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Anything else that a reward or an agent needs, such as `choices`."""

    @field_validator("id", "input")
    @classmethod
    def _not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text


class TaskSet(Sequence[Task]):
    """Ordered tasks with distinct ids and a fingerprint; every method returns a new set.

    Args:
        tasks: the tasks, in order.
        name: what reports call the set.

    Raises:
        InputError: two tasks have the same id.

    Example:
        >>> tasks = TaskSet([Task(id=str(i), input="?") for i in range(10)])
        >>> train, test = tasks.split(0.7, seed=0)
        >>> len(train), len(test), {t.id for t in train} & {t.id for t in test}
        (7, 3, set())
    """

    def __init__(self, tasks: Iterable[Task], *, name: str = "tasks") -> None:
        self._tasks = tuple(tasks)
        self.name = name
        seen: dict[str, int] = {}
        for position, task in enumerate(self._tasks, start=1):
            if task.id in seen:
                raise InputError(
                    f"Tasks {seen[task.id]} and {position} of {name!r} have the same id {task.id!r}; "
                    "results are stored under the id, so give each task its own."
                )
            seen[task.id] = position

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> TaskSet:
        """`tasks` as a set that is not empty.

        Raises:
            InputError: there is no task, or two have the same id.
        """
        task_set = tasks if isinstance(tasks, TaskSet) else cls(tasks)
        if not len(task_set):
            raise InputError(f"{task_set.name!r} holds no task; give at least one.")
        return task_set

    @property
    def fingerprint(self) -> str:
        """Changes when any task, its content or its place changes."""
        return fingerprint([task.model_dump(mode="json") for task in self._tasks])

    def split(self, share: float, *, seed: int = 0) -> tuple[TaskSet, TaskSet]:
        """Two disjoint sets at random: `share` of the tasks, and the rest. A cluster stays on one side.

        Args:
            share: between 0 and 1; the first part is rounded to whole clusters and is never empty where it can be.
            seed: the same seed splits the same set in the same way.
        """
        if not 0 <= share <= 1:
            raise InputError(f"split({share!r}): the share must lie between 0 and 1.")
        clusters: dict[str, list[Task]] = {}
        for task in self._tasks:
            clusters.setdefault(f"c:{task.cluster}" if task.cluster is not None else f"t:{task.id}", []).append(
                task
            )
        names = sorted(clusters)
        random.Random(seed).shuffle(names)
        first: set[str] = set()
        for name in names:
            if len(first) + len(clusters[name]) / 2 > share * len(self._tasks):
                break
            first.update(task.id for task in clusters[name])
        left = [task for task in self._tasks if task.id in first]
        right = [task for task in self._tasks if task.id not in first]
        return TaskSet(left, name=f"{self.name}[{share:g}]"), TaskSet(right, name=f"{self.name}[rest]")

    def shuffle(self, seed: int = 0) -> TaskSet:
        """The same tasks in another order."""
        tasks = list(self._tasks)
        random.Random(seed).shuffle(tasks)
        return TaskSet(tasks, name=self.name)

    def head(self, n: int) -> TaskSet:
        """The first `n` tasks, or all where there are fewer."""
        return TaskSet(self._tasks[:n], name=self.name)

    def without(self, ids: Iterable[str]) -> TaskSet:
        """The tasks whose ids are not among `ids`."""
        drop = set(ids)
        return TaskSet((task for task in self._tasks if task.id not in drop), name=self.name)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> TaskSet: ...
    def __getitem__(self, index: int | slice) -> Task | TaskSet:
        if isinstance(index, slice):
            return TaskSet(self._tasks[index], name=self.name)
        return self._tasks[index]

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def __repr__(self) -> str:
        return f"TaskSet({self.name!r}, {len(self)} tasks)"
