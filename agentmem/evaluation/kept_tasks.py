"""The tasks of an evaluation, kept in its run, so that its answers can be scored again without their file."""

from __future__ import annotations

from collections.abc import Iterable

from agentmem.domain.task import Task, TaskSet
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.runs.records import Records
from agentmem.runs.run import Run
from agentmem.runs.slot import Slot

_PLACE = Slot("run", purpose="tasks")


class KeptTasks(Value):
    """A task set as a value."""

    name: str
    tasks: tuple[Task, ...]


async def keep_tasks(run: Run, tasks: TaskSet) -> None:
    """Store the tasks in the run, once."""

    async def themselves() -> KeptTasks:
        return KeptTasks(name=tasks.name, tasks=tuple(tasks))

    await run.step(_PLACE, themselves, returns=KeptTasks, request=tasks.fingerprint)


def tasks_of(records: Records, given: Iterable[Task] | None = None) -> TaskSet:
    """The tasks that a run is about.

    Args:
        records: of the run.
        given: the tasks, for a run of an earlier agentmem, which kept none.

    Raises:
        InputError: the run kept none and none are given, or those that are given are not the run's.
    """
    wanted = records.asked.get("fingerprints", {}).get("tasks")
    if given is not None:
        tasks = TaskSet.of(given)
        if wanted is not None and tasks.fingerprint != wanted:
            raise InputError(
                f"{tasks.name!r} holds other tasks than {records.folder} is about (fingerprint {tasks.fingerprint}, "
                f"not {wanted}); give the file that it was run on, with the same --limit."
            )
        return tasks
    sql = "SELECT result FROM steps WHERE phase=? AND purpose=?"
    rows = records.rows((sql, (_PLACE.phase, _PLACE.purpose)))[0]
    if not rows:
        raise InputError(
            f"{records.folder} kept no tasks (it is of an earlier agentmem, or no evaluation); name their file with "
            "--tasks."
        )
    kept = KeptTasks.model_validate_json(rows[0][0])
    return TaskSet(kept.tasks, name=kept.name)
