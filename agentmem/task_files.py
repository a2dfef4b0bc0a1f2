"""Tasks from a file (JSON Lines, one JSON array, CSV, Parquet) or from the Hub."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentmem.domain.task import Task, TaskSet
from agentmem.errors import InputError
from agentmem.task_sources.columns import Columns
from agentmem.task_sources.csv_rows import csv_rows
from agentmem.task_sources.hub import SCHEME, Hub
from agentmem.task_sources.json_rows import json_rows
from agentmem.task_sources.parquet_rows import parquet_rows
from agentmem.task_sources.place import Row
from agentmem.task_sources.record import task_set, tasks_of
from agentmem.text_file import open_existing


def load_tasks(
    path: str | os.PathLike[str], *, name: str | None = None, columns: Mapping[str, str] | None = None
) -> TaskSet:
    r"""Read tasks from JSON Lines (one object a line), one JSON array, CSV, Parquet, or the Hugging Face Hub.

    What it is follows from the name: `.csv`, `.tsv` and `.parquet` are tables, `hub:OWNER/NAME@REVISION?split=test`
    (and `&config=NAME`) is a data set on the Hub, anything else is JSON in UTF-8. Parquet and the Hub need the extra
    `datasets`.

    An object, or a row, has the fields of `Task`; only `input` is needed.

    - `columns` says which column is the `id`, `input`, `answer`, `aliases` (further right answers), `context` (a text
      that stands before the input; tasks that share one are one cluster), `files`, `choices`, `rubric`, `level`,
      `cluster`, `split` or `license`. `answer.value` is the key `value` of the column `answer`, and `prompt.0` the
      first of a list. What it names must be there.
    - Otherwise `input` may be called `question`, `prompt` or `problem`, `answer` may be called `target` or
      `final_answer`. Where the plain name is there too, it counts, and the other goes to the metadata.
    - Any other key goes to `metadata`.
    - Where no object has an `id`, the line number is the id (in an array or a table, the place from 1).
    - An id or answer that is a number becomes text; an answer that is a list or object becomes JSON text.
    - Blank lines are passed over; a blank cell of a CSV file is null; paths in `files` stay as they are written.

    Args:
        path: the file, or what to take from the Hub.
        name: what reports call the set; by default the file's name without its ending.
        columns: which column is what, by field.

    Returns:
        The tasks in the order of the file.

    Raises:
        InputError: the file, or one line of it, cannot be used; the message names the first faulty
            line and the repair.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "sums.csv"
        >>> _ = file.write_text("no,ask,gold\n7,2 + 3?,5\n")
        >>> tasks = load_tasks(file, columns={"id": "no", "input": "ask", "answer": "gold"})
        >>> [(task.id, task.input, task.answer) for task in tasks]
        [('7', '2 + 3?', '5')]
    """
    tasks = task_set(_rows(path, Columns.of(columns)), name if name is not None else _name(path))
    if not tasks:
        needs = "a row for each task" if _table(path) else "one JSON object a line, each with at least an 'input'"
        raise InputError(f"{path} is empty: it needs {needs}.")
    return tasks


def stream_tasks(path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None) -> Iterator[Task]:
    """The tasks of a file, as `load_tasks` reads them, one at a time; `-` is standard input, as JSON Lines.

    An id may come again. One line at a time is in memory (a CSV file is read whole), and each is read when its task
    is asked for.

    Args:
        path: the file, or `-`.
        columns: which column is what, by field.

    Raises:
        InputError: there is no such file, or one line cannot be used; the tasks before it were given.
    """
    chosen = Columns.of(columns)
    if str(path) == "-":
        rows = chosen.applied(json_rows(sys.stdin.buffer, "standard input"), "standard input")
    else:
        rows = _rows(path, chosen)
    yield from (task for _, task in tasks_of(rows))


def _rows(path: str | os.PathLike[str], columns: Columns) -> Iterator[Row]:
    """What the source holds, under the names of a task's fields."""
    text = str(path)
    if text.startswith(SCHEME):
        yield from columns.applied(Hub.parse(text).rows(), path)
        return
    with open_existing(path, "task file") as file:
        match Path(path).suffix.lower():
            case ".csv" | ".tsv":
                rows = csv_rows(file, path, keep=columns.essential)
            case ".parquet":
                rows = parquet_rows(file, path)
            case _:
                rows = json_rows(file, path)
        yield from columns.applied(rows, path)


def _table(path: str | os.PathLike[str]) -> bool:
    return str(path).startswith(SCHEME) or Path(path).suffix.lower() in (".csv", ".tsv", ".parquet")


def _name(path: str | os.PathLike[str]) -> str:
    """What reports call the set: a file's name may hold bytes that are no text, and results must carry it."""
    if str(path).startswith(SCHEME):
        return Hub.parse(str(path)).name
    return os.fsencode(Path(path).stem).decode("utf-8", "replace")
