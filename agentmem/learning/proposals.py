"""What a model may answer when it distils: proposals, read leniently one by one, and turned into operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from agentmem.domain.operation import (
    Add,
    Delete,
    Keep,
    Merge,
    Modify,
    Operation,
    Promote,
    Quarantine,
    Restore,
    Unkeep,
)
from agentmem.domain.origin import Origin
from agentmem.domain.value import Value

MOST_CHARACTERS = 2_000
"""A lesson longer than this is no lesson; it is refused, whatever the model was told."""


class Lesson(Value):
    """One lesson as a model states it."""

    text: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    when: str = ""
    when_not: str = ""
    why: str = ""
    tool: str = ""
    """The tool that it is about, where it is about one."""


class Lessons(Value):
    """The answer to `contrast`."""

    lessons: tuple[Lesson, ...] = ()


class Unreadable(Value):
    """One proposal that is no operation, and why; it is logged as rejected, and the others are taken."""

    content: str
    reason: str


class Proposals(Value):
    """The answer to `distil` and `group_update`.

    An answer as a whole must be JSON with a list of `operations`. In it, each proposal stands for itself: one that
    is malformed is kept as `Unreadable`, and does not cost the others.
    """

    operations: tuple[Operation, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _one_by_one(cls, content: Any) -> Any:
        if not isinstance(content, dict) or "unreadable" in content:
            return content
        given = content.get("operations")
        if not isinstance(given, list):
            raise ValueError("'operations' must be a list")
        readable, unreadable = [], []
        for item in given:
            try:
                readable.append(read_operation(item))
            except ValueError as error:
                unreadable.append(Unreadable(content=str(item)[:500], reason=str(error)))
        return {"operations": readable, "unreadable": unreadable}


class Settled(Value):
    """What becomes of one cluster."""

    number: int
    proposals: Proposals

    @model_validator(mode="before")
    @classmethod
    def _from_operations(cls, content: Any) -> Any:
        if isinstance(content, dict) and "operations" in content:
            return {"number": content.get("number"), "proposals": {"operations": content["operations"]}}
        return content


class Consolidation(Value):
    """The answer to `consolidate`."""

    clusters: tuple[Settled, ...] = ()


_FIELDS = {
    "add": ("text", "when", "when_not", "why", "tool"),
    "modify": ("id", "text", "when", "when_not", "why"),
    "merge": ("ids", "text", "when", "when_not", "why"),
    "delete": ("id", "why"),
    "keep": ("ids", "why"),
}
_NAMES = {"update": "modify", "remove": "delete", "create": "add", "none": "keep", "noop": "keep", "no_op": "keep"}
"""Other words for the same; models use them whatever the prompt says."""
_OPERATION: TypeAdapter[Operation] = TypeAdapter(Operation)


def read_operation(item: Any) -> Operation:
    """One operation as a model wrote it.

    Raises:
        ValueError: it is none; the message says why, in one line.
    """
    if not isinstance(item, dict):
        raise ValueError(f"an operation is an object, not {type(item).__name__}")
    name = str(item.get("op") or item.get("operation") or item.get("action") or "").strip().casefold()
    name = _NAMES.get(name, name)
    if name not in _FIELDS:
        raise ValueError(f"no operation is called {name!r}" if name else "it has no 'op'")
    # Only what a model may say; origins, turns and marks are ours to set.
    said = {field: item[field] for field in _FIELDS[name] if item.get(field) is not None}
    if "text" in said and isinstance(said["text"], str):
        said["text"] = said["text"].strip()
        if len(said["text"]) > MOST_CHARACTERS:
            raise ValueError(
                f"its text has {len(said['text'])} characters, and a lesson at most {MOST_CHARACTERS}"
            )
    tool = said.get("tool")
    if not (isinstance(tool, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool)):
        said.pop("tool", None)  # no tool can have such a name, and a lesson is worth more than its label
    if name == "modify" and not said.keys() & {"text", "when", "when_not"}:
        raise ValueError("a modification that changes nothing")
    try:
        operation = _OPERATION.validate_python({"op": name, **said}, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or name
        raise ValueError(f"{place}: {first['msg']}") from None
    if isinstance(operation, Keep | Merge) and len(set(operation.ids)) < 2:
        raise ValueError(f"{name} needs two different ids")
    return operation


def with_origin(operations: Sequence[Operation], origin: Origin, *, gated: bool) -> tuple[Operation, ...]:
    """The operations, with where they come from."""

    def stamped(operation: Operation) -> Operation:
        update: dict[str, object] = {"origins": (*operation.origins, origin)}
        if isinstance(operation, Add | Modify | Merge) and gated:
            update["gated"] = True
        return operation.model_copy(update=update)

    return tuple(stamped(operation) for operation in operations)


def limited(operations: Sequence[Operation], most_additions: int) -> tuple[Operation, ...]:
    """At most so many additions, the first ones; everything else stays."""
    left = most_additions

    def fits(operation: Operation) -> bool:
        nonlocal left
        if isinstance(operation, Add):
            left -= 1
            return left >= 0
        return True

    return tuple(operation for operation in operations if fits(operation))


def touched(operation: Operation) -> tuple[str, ...]:
    """The ids of the experiences that it changes."""
    match operation:
        case Add():
            return ()
        case Modify(id=id) | Delete(id=id) | Restore(id=id) | Promote(id=id) | Quarantine(id=id):
            return (id,)
        case Merge(ids=ids) | Keep(ids=ids) | Unkeep(ids=ids):
            return ids


Refusal = Callable[[Operation], str]
"""Why an operation must not be applied; empty where it may."""
