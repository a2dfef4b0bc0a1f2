"""What is decided when a task of a stream arrives, so that a run that is gone on with decides the same."""

from __future__ import annotations

from agentmem.domain.task import Task
from agentmem.domain.value import Value, fingerprint
from agentmem.errors import RunMismatch, SlotMismatch
from agentmem.learning.stream import Arrival
from agentmem.runs.run import Run
from agentmem.runs.slot import Slot


class First(Value):
    """The first arrival with an id."""

    position: int

    async def itself(self) -> First:
        """For a durable step whose result is known already."""
        return self


async def stored_arrival(run: Run, decided: Arrival, task: Task) -> Arrival:
    """What was decided when this task arrived: now, or in an earlier process of the run.

    Raises:
        RunMismatch: another task arrived there then.
    """
    place = run.at("online", step=decided.position)
    try:
        return await place.step("arrival", decided.itself, returns=Arrival, request=fingerprint(task))
    except SlotMismatch:
        raise RunMismatch(
            f"{run.path}: task {decided.position} of the stream, {task.id!r}, is not the one that arrived there when "
            "this run was begun. Go on with the same stream from its start, or name another run."
        ) from None


async def name_of_arrival(run: Run, id: str, position: int) -> str:
    """The id under which an arrival's results are stored: its own, unless an earlier arrival had that.

    The journal remembers the ids, so memory does not grow with the stream.
    """
    first = First(position=position)
    while (await run.step(Slot("names", task=id), first.itself, returns=First)).position != position:
        id = f"{id}@{position}"
    return id
