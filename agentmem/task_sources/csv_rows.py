"""The rows of a CSV file, each with its place."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from agentmem.errors import InputError
from agentmem.task_sources.place import Place, Row
from agentmem.text_file import BOM, decode, refuse_foreign

MAX_CSV = 200_000_000
"""Bytes that a file may have: it is held in memory whole."""
MAX_CELL = 10_000_000
"""Characters that a cell may have."""


def csv_rows(file: BinaryIO, path: str | os.PathLike[str], *, keep: Collection[str] = ()) -> Iterator[Row]:
    """The rows under a header line; a blank cell is nothing, but for those of the columns in `keep`.

    The cells stand between commas, semicolons or tabs, whichever the header line has most; in `.tsv` between tabs.

    Raises:
        InputError: it is no CSV file in UTF-8 with a header, or a row has too few or too many cells.
    """
    text = _text(file, path)
    # Python's own limit, 131,072, is below what a long context takes; it is one for the whole process.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, path), strict=True)
    header: list[str] = []
    count = last = 0
    try:
        for cells in lines:
            place = Place(path, "line", last + 1, id=count)
            last = lines.line_num
            if not any(cell.strip() for cell in cells):
                continue
            count += 1
            if not header:
                header = _header(cells, place)
                count = 0
                continue
            if len(cells) != len(header):
                place.refuse(
                    f"{len(cells)} cells, and the header has {len(header)}; "
                    "put a cell that holds the separator, or a line break, in quotes"
                )
            record = {
                name: cell if cell.strip() or name in keep else None
                for name, cell in zip(header, cells, strict=True)
            }
            yield Place(path, "line", place.number, id=count), record
    except csv.Error as error:
        Place(path, "line", last + 1).refuse(
            f"broken CSV: {error}; close each quote, and write a quote within a quoted cell twice"
        )


def _text(file: BinaryIO, path: str | os.PathLike[str]) -> str:
    content = file.read(MAX_CSV + 1)
    refuse_foreign(content[:64], path)
    if len(content) > MAX_CSV:
        raise InputError(f"{path} has more than {MAX_CSV // 1_000_000} MB; write it as JSON Lines or Parquet.")
    content = content.removeprefix(BOM)
    if (nul := content.find(b"\0")) >= 0:
        line = content.count(b"\n", 0, nul) + 1
        Place(path, "line", line).refuse("a NUL; the file is damaged or is no text, so write it again as UTF-8")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        line = content.count(b"\n", 0, start) + 1
        return decode(content[start : error.end], path=path, where=f"line {line}")  # which says what is wrong


def _delimiter(text: str, path: str | os.PathLike[str]) -> str:
    first = text.lstrip().partition("\n")[0]
    return "\t" if Path(path).suffix.lower() == ".tsv" else max(",;\t", key=first.count)


def _header(cells: list[str], place: Place) -> list[str]:
    names = [cell.strip() for cell in cells]
    for number, name in enumerate(names, start=1):
        if not name:
            place.refuse(f"column {number} has no name; the first line names the columns, such as input,answer")
        if name in names[: number - 1]:
            place.refuse(f"two columns are called {name!r}; rename one")
    return names
