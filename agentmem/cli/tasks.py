"""Which tasks: a file with its columns, a data set on the Hub, or a benchmark, which is a Python file."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentmem.cli.user_code import load_value
from agentmem.errors import InputError

if TYPE_CHECKING:
    from agentmem.domain.task import Task, TaskSet
    from agentmem.task_sources.benchmark import Benchmark


@dataclass(frozen=True)
class TaskOptions:
    """Which tasks are meant by a file, a name on the Hub, or a benchmark."""

    columns: tuple[str, ...] = ()
    """Which column of the task file is what, such as input=question,answer=gold,id=no; also aliases, context, files,
    choices, rubric, level, cluster, split and license."""
    fixture: bool = False
    """Of a benchmark (a .py file): its few tasks for trying it out, instead of the data set; no network."""

    def read(self, path: Path) -> TaskSet:
        """All tasks of it.

        Raises:
            InputError: it cannot be used.
        """
        from agentmem.task_files import load_tasks

        with _warnings_said():
            if (benchmark := self._benchmark(path)) is not None:
                return benchmark.load(fixture=self.fixture)
            return load_tasks(path, columns=self._columns)

    def stream(self, path: Path) -> Iterator[Task]:
        """Its tasks one at a time; `-` is standard input."""
        from agentmem.task_files import stream_tasks

        if (benchmark := self._benchmark(path)) is not None:
            with _warnings_said():
                return iter(benchmark.load(fixture=self.fixture))
        return stream_tasks(path, columns=self._columns)

    def _benchmark(self, path: Path) -> Benchmark | None:
        benchmark = benchmark_at(path)
        if benchmark is None and self.fixture:
            raise InputError(f"--fixture belongs to a benchmark, a .py file, and {path} is none; leave it out.")
        if benchmark is not None and self.columns:
            raise InputError(f"{path} says itself which column is what; leave --columns out, or change the file.")
        return benchmark

    @property
    def _columns(self) -> Mapping[str, str]:
        from agentmem.task_sources.columns import Columns

        return Columns.parse(self.columns).names


def benchmark_at(path: Path | None) -> Benchmark | None:
    """The benchmark that a Python file defines; None where the path is no Python file.

    Raises:
        InputError: there is no such file, or it has no `BENCHMARK`.
    """
    if path is None or path.suffix != ".py":
        return None
    from agentmem.task_sources.benchmark import Benchmark

    found = load_value(path, "BENCHMARK")
    if not isinstance(found, Benchmark):
        raise InputError(
            f"{path} has no BENCHMARK, so it names no tasks; write BENCHMARK = Benchmark(...) in it "
            "(agentmem.Benchmark), or name a task file."
        )
    return found


@contextmanager
def _warnings_said() -> Iterator[None]:
    """Our own warnings as sentences on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        print(f"agentmem: {warning.message}", file=sys.stderr)
