"""The objects of a JSON Lines file, or of one JSON array, each with its place."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from agentmem.errors import InputError
from agentmem.task_sources.place import Place, Row
from agentmem.text_file import BOM, decode, refuse_foreign

MAX_LINE = 10_000_000
"""Bytes that one line may have."""
MAX_ARRAY = 200_000_000
"""Bytes that a file with one JSON array may have: it is held in memory whole, JSON Lines are not."""


def json_rows(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[Row]:
    """The objects of the file, each with its place; of JSON Lines, one line at a time is in memory."""
    blank = True
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        place = Place(path, "line", number)
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


def _array(start: bytes, file: BinaryIO, place: Place) -> Iterator[Row]:
    content = start + file.read(max(0, MAX_ARRAY + 1 - len(start)))
    if len(content) > MAX_ARRAY:
        name = Path(place.source)
        raise InputError(
            f"{place.source} is one JSON array of more than {MAX_ARRAY // 1_000_000} MB; "
            f"write it as JSON Lines: jq -c '.[]' {name.name} > {name.stem}.lines.jsonl"
        )
    lines = enumerate(content.split(b"\n"), start=place.number)
    text = "\n".join(_text(line, Place(place.source, "line", number)) for number, line in lines)
    for number, item in enumerate(_parse(text, place), start=1):
        spot = Place(place.source, "item", number)
        yield spot, _object(item, spot)


def _text(line: bytes, place: Place) -> str:
    if (nul := line.find(b"\0")) >= 0:
        place.refuse(f"byte {nul + 1} is a NUL; the file is damaged or is no text, so write it again as UTF-8")
    # A line that is cut at the limit may end within a character; its length is refused, not that.
    return "" if len(line) > MAX_LINE else decode(line, path=place.source, where=place.spot).rstrip("\r\n")


def _refuse_long(size: int, file: BinaryIO, place: Place) -> NoReturn:
    while part := file.readline(1 << 20):
        size += len(part)
        if part.endswith(b"\n"):
            break
    place.refuse(
        f"{size / 1e6:.1f} MB in one line, and {MAX_LINE / 1e6:g} MB are the most; "
        "put large content into a file of its own, and name that under 'files'"
    )


def _parse(text: str, place: Place) -> Any:
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


def _object(value: Any, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(
            type(value), "a number"
        )
        place.refuse(f'this is {kind}, not an object such as {{"input": "2 + 3?", "answer": "5"}}')
    return value
