"""A benchmark: a data set at a pinned revision, what its columns are, and how an answer is usually scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from agentmem.domain.task import TaskSet
from agentmem.errors import InputError, boundary
from agentmem.task_sources.columns import Columns
from agentmem.task_sources.hub import Hub
from agentmem.task_sources.place import Place, Row
from agentmem.task_sources.record import task_set

Record = dict[str, Any]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark; on the command line, the `BENCHMARK` of a Python file.

    Example:
        >>> sums = Benchmark("sums", ({"ask": "2 + 3?", "gold": 5},), columns={"input": "ask", "answer": "gold"})
        >>> [(task.input, task.answer) for task in sums.load()]
        [('2 + 3?', '5')]
    """

    name: str
    source: Hub | tuple[Record, ...]
    """Where its records are: on the Hub, or here."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Which column is what; see `load_tasks`."""
    reward: str = "exact"
    """The name of the reward that it is usually scored by."""
    rubric: str = ""
    """Of the reward `judge`: what a good answer is, in words."""
    record: Callable[[Record], Record] | None = None
    """Changes a record before its columns are looked at, where a column holds more than what is wanted."""
    license: str | None = None
    gated: bool = False
    fixture: tuple[Record, ...] = ()
    """A few records of the same form, to try everything out without a network and without foreign data."""

    def load(self, *, fixture: bool = False) -> TaskSet:
        """Its tasks.

        Args:
            fixture: take the fixture's instead of the data set's.

        Raises:
            InputError: the source cannot be reached, or a record cannot be used.
        """
        if fixture and not self.fixture:
            raise InputError(f"The benchmark {self.name!r} has no fixture; leave --fixture out.")
        name = f"{self.name} fixture" if fixture else self.name
        source = self.fixture if fixture else self.source
        rows = source.rows() if isinstance(source, Hub) else _written(source, name)
        columns = Columns.of(self.columns)
        tasks = task_set(columns.applied(map(self._prepared, rows), name), name)
        if not tasks:
            raise InputError(f"{name!r} holds no task; check its split.")
        marks = {"license": self.license, "gated": self.gated}
        return TaskSet((task.model_copy(update=marks) for task in tasks), name=name)

    def _prepared(self, row: Row) -> Row:
        place, record = row
        if self.record is None:
            return row
        with boundary(InputError, f"{place.source}, {place.spot}: the benchmark's record function"):
            return place, self.record(record)


def _written(records: tuple[Record, ...], name: str) -> list[Row]:
    return [(Place(name, "row", number), deepcopy(record)) for number, record in enumerate(records, start=1)]
