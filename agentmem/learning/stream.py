"""Tasks that arrive one by one, and what became of each."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Any, Literal

from agentmem.domain.rollout import Rollout
from agentmem.domain.task import Task
from agentmem.domain.value import Value
from agentmem.errors import AgentMemError, InputError, StreamError
from agentmem.sandbox.thread import in_thread

Tasks = Iterable[Task] | AsyncIterable[Task]
"""A source of tasks of any length; it is asked for one more only when that can be answered at once."""

Role = Literal["teaches", "held out", "skipped"]
"""What an arrival is for, beside its answer. `skipped`: learning was too far behind to take it."""


class Arrival(Value):
    """What was decided when a task arrived, as the journal keeps it."""

    position: int
    """The how-many-th of the stream, from 1."""
    task_id: str
    """As it came. A second arrival with an id is another one: its results are stored as `ID@POSITION`."""
    cluster: str | None = None
    """The task's cluster."""
    step: int
    """The learning step whose library answers it; -1 is the library that the stream began with."""
    version: int
    """Of that library."""
    role: Role

    async def itself(self) -> Arrival:
        """For a durable step whose result is known already."""
        return self


class Answer(Value):
    """A task's answer, scored before anything was learned from it (prequentially)."""

    arrival: Arrival
    rollout: Rollout
    """The attempt with its reward."""

    @property
    def task_id(self) -> str:
        """The task's id, as it came."""
        return self.arrival.task_id

    @property
    def output(self) -> str | None:
        """What the agent answered; None where the attempt failed."""
        return self.rollout.output

    @property
    def score(self) -> float | None:
        """What it is worth; None where that is not known."""
        return self.rollout.score

    def brief(self) -> dict[str, Any]:
        """What a program wants to know of it first, in plain types."""
        rollout, arrival = self.rollout, self.arrival
        why = rollout.failure.message if rollout.failure else ""
        if rollout.score is None and not why:
            why = rollout.reward.feedback
        return {
            "position": arrival.position,
            "task_id": arrival.task_id,
            "output": rollout.output,
            "score": rollout.score,
            "status": rollout.status,
            "why": why,
            "version": arrival.version,
            "role": arrival.role,
        }


_END = object()


class Source:
    """The tasks of a stream, one at a time, with what goes wrong in it named.

    Args:
        tasks: a plain or an asynchronous iterable. A plain one is asked in a thread, because it may have to wait.
    """

    def __init__(self, tasks: Tasks) -> None:
        if not isinstance(tasks, AsyncIterable | Iterable) or isinstance(tasks, str | bytes):
            raise InputError(f"A stream is an iterable of tasks, plain or asynchronous, not {tasks!r:.80}.")
        self._waits = isinstance(tasks, AsyncIterable)
        self._tasks: Any = aiter(tasks) if isinstance(tasks, AsyncIterable) else iter(tasks)
        self.given = 0
        """Tasks so far."""

    async def next(self) -> Task | None:
        """The next task; None at the end.

        Raises:
            StreamError: the source raised.
            InputError: it gave something else than a task.
        """
        try:
            if self._waits:
                task = await anext(self._tasks, _END)
            else:
                task = await in_thread(lambda: next(self._tasks, _END), name="agentmem-stream")
        except AgentMemError:
            raise
        except Exception as error:
            raise StreamError(
                f"The stream raised {type(error).__name__}: {error}, when it was asked for task {self.given + 1}."
            ) from error
        if task is _END:
            return None
        if not isinstance(task, Task):
            raise InputError(
                f"The stream gave {task!r:.80} as task {self.given + 1}; it must give Task(id=..., input=...)."
            )
        self.given += 1
        return task
