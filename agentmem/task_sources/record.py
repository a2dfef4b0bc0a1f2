"""A task from the object or row that describes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from agentmem.domain.task import Task, TaskSet
from agentmem.task_sources.place import Place, Row

ALIASES = {"input": ("question", "prompt", "problem"), "answer": ("target", "final_answer")}
"""Other names under which common data sets keep a task's input and answer."""


def task_set(rows: Iterable[Row], name: str) -> TaskSet:
    """The tasks of all rows; it may be empty.

    Raises:
        InputError: a row describes no task, or two rows have one id.
    """
    tasks: list[Task] = []
    places: dict[str, Place] = {}
    for place, task in tasks_of(rows):
        if task.id in places:
            place.refuse(
                f"the id {task.id!r} was used in {places[task.id].spot} already; "
                "results are stored under the id, so give each task its own"
            )
        places[task.id] = place
        tasks.append(task)
    return TaskSet(tasks, name=name)


def tasks_of(rows: Iterable[Row]) -> Iterator[tuple[Place, Task]]:
    """The tasks, each with its place. An id may come again."""
    nameless: Place | None = None
    named: Place | None = None
    for place, record in rows:
        given = _identity(record.pop("id", None), place)
        if given is None:
            nameless = nameless or place
        else:
            named = named or place
        if nameless and named:
            nameless.refuse(f"no id, but {named.spot} has one; give every task an id of its own, or none")
        yield place, _task(record, given if given is not None else place.id, place)


def _identity(value: Any, place: Place) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        place.refuse(f"the id {json.dumps(value)[:80]} is neither text nor a whole number; write it in quotes")
    if not (text := str(value)).strip():
        place.refuse("the id is empty; give the task an id, or no task any")
    return text


def _task(record: dict[str, Any], id: str, place: Place) -> Task:
    """The task that an object describes; `record` is used up."""
    question = _take(record, "input", place)
    if not isinstance(question, str):
        if question is None:
            place.refuse(
                f"no 'input' (nor {_or(ALIASES['input'])}), which is what the agent is given; add it, or say "
                "which column it is: columns={'input': ...}, --columns input=..."
            )
        place.refuse(f"'input' is {json.dumps(question)[:80]}, not text; write it in quotes")
    if not question.strip():
        place.refuse("'input' is empty; write what the agent is given")
    answer = _as_text(_take(record, "answer", place))
    if answer is not None and not answer.strip():
        place.refuse("'answer' is empty; write it, or leave 'answer' out where there is none")
    fields: dict[str, Any] = {"id": id, "input": question, "answer": answer}
    for key in ("level", "cluster", "split", "license"):
        fields[key] = _as_text(record.pop(key, None))
    for key in ("files", "gated", "untrusted"):
        if (value := record.pop(key, None)) is not None:
            fields[key] = value
    if isinstance(fields.get("files"), str):
        fields["files"] = (fields["files"],)
    metadata = record.pop("metadata", None)
    if metadata is not None and not isinstance(metadata, dict):
        place.refuse("'metadata' is not an object; rename the key, or write an object")
    if both := record.keys() & (metadata or {}).keys():
        place.refuse(f"{min(both)!r} stands in 'metadata' and beside it; remove one of the two")
    fields["metadata"] = {**(metadata or {}), **record}
    if "\0" in f"{id}{question}{answer}":
        place.refuse("id, input or answer contains the character \\u0000, which no model can be sent; remove it")
    try:
        return Task.model_validate(fields)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        place.refuse(f"{where!r} is {fault['input']!r:.80}: {fault['msg'].rstrip('.')}")


def _take(record: dict[str, Any], field: str, place: Place) -> Any:
    """The value of a field under its plain name, else under an alias."""
    if record.get(field) is not None:
        return record.pop(field)
    record.pop(field, None)
    found = [alias for alias in ALIASES[field] if record.get(alias) is not None]
    if len(found) > 1:
        place.refuse(f"{found[0]!r} and {found[1]!r} could both be the {field}; rename the right one to {field!r}")
    return record.pop(found[0]) if found else None


def _as_text(value: Any) -> str | None:
    """Text as it is, anything else as JSON writes it; null is nothing."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _or(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:-1])) + f" or {names[-1]!r}"
