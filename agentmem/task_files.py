"""Tasks from a file: JSON Lines, or one JSON array."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pydantic import ValidationError

from agentmem.domain.task import Task, TaskSet
from agentmem.errors import InputError
from agentmem.text_file import BOM, decode, open_existing, refuse_foreign

MAX_LINE = 10_000_000
"""Bytes that one line may have."""
MAX_ARRAY = 200_000_000
"""Bytes that a file with one JSON array may have: it is held in memory whole, JSON Lines are not."""
ALIASES = {"input": ("question", "prompt", "problem"), "answer": ("target", "final_answer")}
"""Other names under which common data sets keep a task's input and answer."""


def load_tasks(path: str | os.PathLike[str], *, name: str | None = None) -> TaskSet:
    """Read tasks from JSON Lines (one object a line) or from one JSON array of objects, in UTF-8.

    An object has the fields of `Task`; only `input` is needed.

    - `input` may be called `question`, `prompt` or `problem`, `answer` may be called `target` or `final_answer`.
      Where the plain name is there too, it counts, and the other goes to the metadata.
    - Any other key goes to `metadata`.
    - Where no object has an `id`, the line number is the id (in an array, the place from 1).
    - An id or answer that is a number becomes text; an answer that is a list or object becomes JSON text.
    - Blank lines are passed over; paths in `files` stay as they are written.

    Args:
        path: the file.
        name: what reports call the set; by default the file's name without its ending.

    Returns:
        The tasks in the order of the file.

    Raises:
        InputError: the file, or one line of it, cannot be used; the message names the first faulty
            line and the repair.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "sums.jsonl"
        >>> _ = file.write_text('{"question": "2 + 3?", "answer": 5}')
        >>> [(task.id, task.input, task.answer) for task in load_tasks(file)]
        [('1', '2 + 3?', '5')]
    """
    tasks: list[Task] = []
    places: dict[str, _Place] = {}
    with open_existing(path, "task file") as file:
        for place, task in _tasks(file, path):
            if task.id in places:
                place.refuse(
                    f"the id {task.id!r} was used in {places[task.id].spot} already; "
                    "results are stored under the id, so give each task its own"
                )
            places[task.id] = place
            tasks.append(task)
    if not tasks:
        raise InputError(f"{path} is empty: it needs one JSON object a line, each with at least an 'input'.")
    # A file's name may hold bytes that are no text; results must be able to carry it.
    return TaskSet(
        tasks, name=name if name is not None else os.fsencode(Path(path).stem).decode("utf-8", "replace")
    )


def stream_tasks(path: str | os.PathLike[str]) -> Iterator[Task]:
    """The tasks of a file, as `load_tasks` reads them, one at a time; `-` is standard input.

    An id may come again. One line at a time is in memory, and each is read when its task is asked for.

    Args:
        path: the file, or `-`.

    Raises:
        InputError: there is no such file, or one line cannot be used; the tasks before it were given.
    """
    if str(path) == "-":
        yield from (task for _, task in _tasks(sys.stdin.buffer, "standard input"))
        return
    with open_existing(path, "task file") as file:
        yield from (task for _, task in _tasks(file, path))


class _Place:
    """Where in the file something stands, for messages."""

    def __init__(self, path: str | os.PathLike[str], unit: str, number: int) -> None:
        self.path = path
        self.unit = unit
        self.number = number

    @property
    def spot(self) -> str:
        return f"{self.unit} {self.number}"

    def refuse(self, why: str) -> NoReturn:
        raise InputError(f"{self.path}, {self.spot}: {why}.") from None


def _tasks(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[tuple[_Place, Task]]:
    """The tasks of the file, each with its place."""
    nameless: _Place | None = None
    named: _Place | None = None
    for place, record in _records(file, path):
        given = _identity(record.pop("id", None), place)
        if given is None:
            nameless = nameless or place
        else:
            named = named or place
        if nameless and named:
            nameless.refuse(f"no id, but {named.spot} has one; give every task an id of its own, or none")
        yield place, _task(record, given if given is not None else str(place.number), place)


def _records(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[tuple[_Place, dict[str, Any]]]:
    """The objects of the file, each with its place; of JSON Lines, one line at a time is in memory."""
    blank = True
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        place = _Place(path, "line", number)
        if number == 1:
            refuse_foreign(line, path)
            line = line.removeprefix(BOM)
        if blank and line.lstrip()[:1] == b"[":
            yield from _array(line, file, place)
            return
        text = _text(line, place)
        if len(line) > MAX_LINE and not line.endswith(b"\n"):
            _refuse_long(len(line), file, place)
        if text.strip():
            blank = False
            yield place, _object(_parse(text, place), place)


def _array(start: bytes, file: BinaryIO, place: _Place) -> Iterator[tuple[_Place, dict[str, Any]]]:
    content = start + file.read(max(0, MAX_ARRAY + 1 - len(start)))
    if len(content) > MAX_ARRAY:
        name = Path(place.path)
        raise InputError(
            f"{place.path} is one JSON array of more than {MAX_ARRAY // 1_000_000} MB; "
            f"write it as JSON Lines: jq -c '.[]' {name.name} > {name.stem}.lines.jsonl"
        )
    lines = enumerate(content.split(b"\n"), start=place.number)
    text = "\n".join(_text(line, _Place(place.path, "line", number)) for number, line in lines)
    for number, item in enumerate(_parse(text, place), start=1):
        spot = _Place(place.path, "item", number)
        yield spot, _object(item, spot)


def _text(line: bytes, place: _Place) -> str:
    if (nul := line.find(b"\0")) >= 0:
        place.refuse(f"byte {nul + 1} is a NUL; the file is damaged or is no text, so write it again as UTF-8")
    # A line that is cut at the limit may end within a character; its length is refused, not that.
    return "" if len(line) > MAX_LINE else decode(line, path=place.path, where=place.spot).rstrip("\r\n")


def _refuse_long(size: int, file: BinaryIO, place: _Place) -> NoReturn:
    while part := file.readline(1 << 20):
        size += len(part)
        if part.endswith(b"\n"):
            break
    place.refuse(
        f"{size / 1e6:.1f} MB in one line, and {MAX_LINE / 1e6:g} MB are the most; "
        "put large content into a file of its own, and name that under 'files'"
    )


def _parse(text: str, place: _Place) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        hint = ""
        if error.msg == "Extra data":
            hint = "; one line holds one object, and nothing after it"
        elif text.lstrip()[:1] not in "{[":
            hint = '; each line is a JSON object such as {"input": "2 + 3?", "answer": "5"}'
        elif error.pos >= len(text.rstrip()):
            hint = "; it ends too early: an object must stand on one line, whole"
        where = f"{line}column {error.colno}"
        place.refuse(f"broken JSON at {where}: {error.msg}{hint}")
    except RecursionError:
        place.refuse("the JSON is nested too deeply; flatten it")
    except ValueError as error:
        place.refuse(str(error))
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            place.refuse("an escape \\ud800 to \\udfff stands alone and is half a character; remove it")
    return value


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object; remove one of the two")
    return record


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number; write null, or leave the key out")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:40]} is too large for a number; write it as text, in quotes")
    return number


def _object(value: Any, place: _Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(
            type(value), "a number"
        )
        place.refuse(f'this is {kind}, not an object such as {{"input": "2 + 3?", "answer": "5"}}')
    return value


def _identity(value: Any, place: _Place) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        place.refuse(f"the id {json.dumps(value)[:80]} is neither text nor a whole number; write it in quotes")
    if not (text := str(value)).strip():
        place.refuse("the id is empty; give the task an id, or no task any")
    return text


def _task(record: dict[str, Any], id: str, place: _Place) -> Task:
    """The task that an object describes; `record` is used up."""
    question = _take(record, "input", place)
    if not isinstance(question, str):
        if question is None:
            place.refuse(f"no 'input' (nor {_or(ALIASES['input'])}), which is what the agent is given; add it")
        place.refuse(f"'input' is {json.dumps(question)[:80]}, not text; write it in quotes")
    if not question.strip():
        place.refuse("'input' is empty; write what the agent is given")
    answer = _as_text(_take(record, "answer", place))
    if answer is not None and not answer.strip():
        place.refuse("'answer' is empty; leave the key out where there is no reference answer")
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


def _take(record: dict[str, Any], field: str, place: _Place) -> Any:
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
