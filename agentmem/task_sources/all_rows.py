"""All rows of a data set's table, the broken ones among them, so that all faults can be told at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentmem.task_sources.parquet_rows import parquet_rows
from agentmem.text_file import BOM, open_existing, refuse_foreign


@dataclass(frozen=True)
class Row:
    """One row of a table, or what is wrong with it."""

    place: str
    """Such as `tasks.jsonl, line 3`."""
    record: dict[str, Any]
    broken: str = ""
    """Why it could not be read, with the repair; the record is empty then."""


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a table; one that is broken is told as such, and the others are read all the same.

    Args:
        path: `*.jsonl`, one object a line, or `*.parquet`.

    Raises:
        InputError: there is no such file, it is none of the two, or Parquet cannot be read here.
    """
    yield from _parquet(path) if path.suffix == ".parquet" else _json_lines(path)


def _json_lines(path: Path) -> Iterator[Row]:
    with open_existing(path, "table of tasks") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                refuse_foreign(line, path)
                line = line.removeprefix(BOM)
            if line.strip():
                yield _row(line, f"{path.name}, line {number}")


def _row(line: bytes, place: str) -> Row:
    try:
        record = json.loads(line.decode("utf-8").rstrip())
    except UnicodeDecodeError as error:
        return Row(place, {}, f"byte {error.start + 1} is not UTF-8; save the file as UTF-8")
    except (ValueError, RecursionError) as error:
        why = getattr(error, "msg", "it is nested too deeply")
        return Row(
            place, {}, f"broken JSON at column {getattr(error, 'colno', 1)}: {why}; write one object a line"
        )
    if not isinstance(record, dict):
        return Row(place, {}, "no JSON object; write one object a line")
    return Row(place, record)


def _parquet(path: Path) -> Iterator[Row]:
    with open_existing(path, "table of tasks") as file:
        for place, record in parquet_rows(file, path):
            yield Row(f"{path.name}, {place.spot}", record)
