"""Which column of a data set is which field of a task."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from agentmem.domain.value import fingerprint
from agentmem.errors import InputError
from agentmem.task_sources.place import Place, Row
from agentmem.task_sources.record import ALIASES

FIELDS = (
    "id",
    "input",
    "answer",
    "aliases",
    "context",
    "files",
    "choices",
    "rubric",
    "level",
    "cluster",
    "split",
    "license",
)
"""What a column can be. Aliases, choices and rubric go to the task's metadata, where rewards look for them."""
REQUIRED = ("id", "input", "answer")
"""Where a column is named for one of these, every row must fill it."""
LISTS = ("aliases", "choices", "files")
"""What may be several; a cell of a CSV file holds one text, or a JSON list."""


@dataclass(frozen=True)
class Columns:
    """A column for each field that is named, none for the others. Use `Columns.of` or `Columns.parse`."""

    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, str] | None) -> Columns:
        """The columns of these fields.

        Raises:
            InputError: a field is none, or its column is not named by a text.
        """
        for name, column in (columns or {}).items():
            if name not in FIELDS:
                near = _near(name, FIELDS)
                raise InputError(
                    f"columns: a task has no field {name!r}.{f' Did you mean {near!r}?' if near else ''} "
                    f"It has: {', '.join(FIELDS)}; any other column goes to the metadata by itself."
                )
            if not isinstance(column, str) or not column:
                raise InputError(f"columns: {name!r} is {column!r}, not the name of a column; write it in quotes.")
        return cls(dict(columns or {}))

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Columns:
        """The columns that texts such as `input=question,answer=gold` name.

        Raises:
            InputError: a part names no field, no column, or a field twice.

        Example:
            >>> dict(Columns.parse(["input=question,answer=gold"]).names)
            {'input': 'question', 'answer': 'gold'}
        """
        names: dict[str, str] = {}
        for pair in (part for text in texts for part in text.split(",")):
            name, equals, column = (part.strip() for part in pair.partition("="))
            if not (name and equals and column):
                raise InputError(f"columns: {pair!r} is not FIELD=COLUMN, such as input=question.")
            if name in names:
                raise InputError(
                    f"columns: {name!r} is named twice, as {names[name]!r} and as {column!r}; keep one."
                )
            names[name] = column
        return cls.of(names)

    @property
    def essential(self) -> frozenset[str]:
        """The columns that hold the id, the input or the answer; a blank there is a fault, not nothing."""
        usual = (*REQUIRED, *(alias for aliases in ALIASES.values() for alias in aliases))
        return frozenset((*usual, *(self.names[name] for name in REQUIRED if name in self.names)))

    def applied(self, rows: Iterable[Row], source: str | os.PathLike[str]) -> Iterator[Row]:
        """The rows with their fields under the names that a task has for them.

        Raises:
            InputError: a row lacks a column that every row must have, or no row has one of the others.
        """
        missing = {name: column for name, column in self.names.items() if name not in REQUIRED}
        seen: dict[str, None] = {}
        for place, row in rows:
            missing = {name: column for name, column in missing.items() if not _has(row, column)}
            seen |= dict.fromkeys(row)
            yield place, self._renamed(row, place) if self.names else row
        if seen and missing:
            name, column = next(iter(missing.items()))
            raise InputError(f"{source}: no row has {column!r}, the column of {name!r}; {_offer(column, seen)}.")

    def _renamed(self, row: dict[str, Any], place: Place) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for name, column in self.names.items():
            if name in REQUIRED and not _has(row, column):
                place.refuse(f"no {column!r}, the column of {name!r}; {_offer(column, row)}")
            value = _at(row, column)
            if name in REQUIRED and (value is None or (isinstance(value, str) and not value.strip())):
                place.refuse(f"{column!r}, the column of {name!r}, is empty; fill it in, or take the row out")
            if value is not None:
                taken[name] = _several(value, name, column, place) if name in LISTS else value
        rest = {key: value for key, value in row.items() if key not in self.names.values()}
        # What has the name of a field that is taken from elsewhere, or of the metadata, is metadata.
        more = {key: rest.pop(key) for key in list(rest) if key in self.names}
        metadata = rest.pop("metadata", None) or {}
        if not isinstance(metadata, dict):
            metadata = {"metadata": metadata}
        rest["metadata"] = {**metadata, **more}
        return _in_context({**rest, **taken}, place)


def _in_context(record: dict[str, Any], place: Place) -> dict[str, Any]:
    """The context stands before the input, and those that share one are a cluster."""
    context = record.pop("context", None)
    if context is None or not isinstance(record.get("input"), str):
        return record
    if isinstance(context, list) and all(isinstance(part, str) for part in context):
        context = "\n\n".join(context)
    if not isinstance(context, str):
        place.refuse(f"the context is {json.dumps(context)[:80]}, not text; name the column that holds the text")
    if context.strip():
        record["input"] = f"{context}\n\n{record['input']}"
        if record.get("cluster") is None:
            record["cluster"] = f"context {fingerprint(context, length=12)}"
    return record


def _several(value: Any, name: str, column: str, place: Place) -> Any:
    """One or several texts; a text that is a JSON list is one."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            value = json.loads(value)
        except ValueError as error:
            place.refuse(f"{column!r}, the column of {name!r}, begins like a JSON list and is none: {error}")
    if isinstance(value, str):
        return [value]
    if name == "choices" and isinstance(value, dict):
        return value
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        place.refuse(
            f"{column!r}, the column of {name!r}, is {json.dumps(value)[:80]}; it must be one text or a list of texts"
        )
    return value


def _has(row: dict[str, Any], column: str) -> bool:
    return _at(row, column, missing := object()) is not missing


def _at(row: dict[str, Any], column: str, default: Any = None) -> Any:
    """The value of a column; `answer.value` is within `answer`, unless there is a column of that very name."""
    if column in row:
        return row[column]
    value: Any = row
    for step in column.split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return default
    return value


def _offer(column: str, there: Collection[str]) -> str:
    names = list(there)
    near = _near(column, names)
    meant = f", did you mean {near!r}" if near else ", name one of them"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"there is {', '.join(map(repr, names[:12])) or 'nothing'}{more}{meant}"


def _near(name: str, known: Iterable[str]) -> str:
    lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lower, n=1)
    return lower[near[0]] if near else ""
