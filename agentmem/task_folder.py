"""A data set as a folder in GAIA's form: `dataset.toml`, `tasks.jsonl` with GAIA's columns, `files/`.

A copy of GAIA itself (`2023/validation/metadata.parquet`, or the older `metadata.jsonl`, beside the attachments) is
read as it is. All faults of a folder are found at once, each with its row and its repair.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from agentmem.domain.task import Task, TaskSet
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.task_sources.all_rows import Row, read_rows

COLUMNS = ("task_id", "Question", "Level", "Final answer", "file_name", "file_path", "Annotator Metadata")
"""GAIA's own; `cluster`, `split` and `sha256` have a meaning too, and any other goes to a task's metadata."""
PRIVATE = "answer_is_private"
"""In a task's metadata: it has an answer, which is not published."""
_DUMMY = "0-0-0-0-0"  # a row of the older metadata.jsonl that is no task


class Dataset(Value):
    """What `dataset.toml` says of a data set."""

    name: str
    version: str = "1"
    license: str = ""
    gated: bool = False
    """Whether its terms forbid passing it on; all that is learned from it is marked."""
    canary: str = ""
    """A text that tells the data set's pages and files from others; an address that holds it is not read."""
    scorer: str = "gaia"
    """The reward that scores it."""
    private: tuple[str, ...] = ()
    """Splits whose answers are not published."""
    web: str = ""
    """A folder of pages, one folder a host, that is served to the agent in place of the Internet."""
    mirrors: tuple[str, ...] = ()
    """Parts of addresses that hold the data set or its answers, and are not to be read."""


class Fault(Value):
    """What is wrong with one row, or with the folder."""

    place: str
    task_id: str = ""
    what: str
    repair: str

    def __str__(self) -> str:
        task = f" (task {self.task_id!r})" if self.task_id else ""
        return f"{self.place}{task}: {self.what}; {self.repair}."


@dataclass(frozen=True)
class TaskFolder:
    """A data set that was read: its card, its tasks, and whatever is wrong with it."""

    path: Path
    dataset: Dataset
    tasks: TaskSet
    """Those that are sound."""
    faults: tuple[Fault, ...] = ()

    def chosen(self, *, level: str | None = None, split: str | None = None) -> TaskSet:
        """The tasks of one level, one split, or both.

        Raises:
            InputError: the folder has faults (the first is named), or no such task.
        """
        if self.faults:
            more = f" And {len(self.faults) - 1} more faults:" if len(self.faults) > 1 else " See"
            raise InputError(f"{self.path}: {self.faults[0]}{more} agentmem bench validate {self.path}")
        kept = [t for t in self.tasks if level in (None, t.level) and split in (None, t.split)]
        if not kept:
            levels = ", ".join(sorted({task.level or "none" for task in self.tasks}))
            splits = ", ".join(sorted({task.split or "none" for task in self.tasks}))
            asked = ", ".join(f"{k} {v!r}" for k, v in (("level", level), ("split", split)) if v is not None)
            raise InputError(f"{self.path} holds no task of {asked}. Levels: {levels}; splits: {splits}.")
        return TaskSet(kept, name=self.dataset.name)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many tasks there are of each split and level."""
        return dict(sorted(Counter((task.split or "", task.level or "") for task in self.tasks).items()))


def load_task_folder(
    path: str | os.PathLike[str], *, faults_of: Callable[[str], str] = lambda truth: ""
) -> TaskFolder:
    """Read a data set in GAIA's form, or a copy of GAIA, with all its faults.

    Args:
        path: the folder.
        faults_of: why a reference answer cannot be scored, empty where it can; for the scorer that will be used.

    Raises:
        InputError: it is no such folder, or its `dataset.toml` cannot be used.

    Example:
        >>> folder = tmp / "set"
        >>> folder.mkdir()
        >>> _ = (folder / "tasks.jsonl").write_text('{"task_id": "a", "Question": "2 + 3?", "Level": 1}')
        >>> [str(fault) for fault in load_task_folder(folder).faults]
        ["tasks.jsonl, line 1 (task 'a'): there is no 'Final answer'; write it."]
    """
    root = Path(path)
    if not root.is_dir():
        raise InputError(f"There is no folder {str(path)!r}; name one with a tasks.jsonl, or a copy of GAIA.")
    dataset = _dataset(root)
    reader = _Reader(root, dataset, faults_of)
    tasks = [task for split, table in _tables(root) for task in reader.tasks(table, split)]
    if not tasks and not reader.faults:
        reader.faults.append(Fault(place=str(root), what="it holds no task", repair="write one row a task"))
    return TaskFolder(root, dataset, TaskSet(tasks, name=dataset.name), tuple(reader.faults))


def _dataset(root: Path) -> Dataset:
    card = root / "dataset.toml"
    if not card.is_file():
        # What has GAIA's columns and says nothing of itself is taken for GAIA, whose terms forbid passing it on.
        return Dataset(name="GAIA", version="2023", license="gated", gated=True, private=("test",))
    try:
        return Dataset.model_validate(tomllib.loads(card.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f'{card} is no TOML: {error}. Mend it; it needs at least: name = "...".') from None
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        near = get_close_matches(key, Dataset.model_fields, n=1)
        hint = f" Did you mean {near[0]!r}?" if near and near[0] != key else ""
        known = ", ".join(Dataset.model_fields)
        raise InputError(f"{card}: {key!r}: {first['msg']}.{hint} Known: {known}.") from None


def _tables(root: Path) -> list[tuple[str, Path]]:
    """The tables of the folder, each with the split that its place names; empty where a column does."""
    if (root / "tasks.jsonl").is_file():
        return [("", root / "tasks.jsonl")]
    years = [root, *sorted(place for place in root.glob("20[0-9][0-9]") if place.is_dir())]
    found = [(split, place / split) for place in years for split in ("validation", "test")]
    found += [(root.name, root)] if root.name in ("validation", "test") else [("", root)]
    for name in ("metadata.parquet", "metadata.jsonl"):
        if tables := [(split, place / name) for split, place in found if (place / name).is_file()]:
            return tables
    raise InputError(
        f"{root} holds neither tasks.jsonl nor a copy of GAIA (2023/validation/metadata.parquet); name the folder "
        "that does."
    )


class _Reader:
    """Turns rows into tasks, and notes what is wrong with them."""

    def __init__(self, root: Path, dataset: Dataset, faults_of: Callable[[str], str]) -> None:
        self.root = root
        self.dataset = dataset
        self.faults_of = faults_of
        self.faults: list[Fault] = []
        self.places: dict[str, str] = {}

    def tasks(self, table: Path, split: str) -> Iterator[Task]:
        for row in read_rows(table):
            if row.record.get("task_id") != _DUMMY and (task := self._task(row, table.parent, split)) is not None:
                yield task

    def _task(self, row: Row, beside: Path, split: str) -> Task | None:
        if row.broken:
            what, _, repair = row.broken.rpartition("; ")
            self.faults.append(Fault(place=row.place, what=what, repair=repair))
            return None
        before = len(self.faults)
        record = {key: value for key, value in row.record.items() if value is not None}
        id = self._text(row, record, "task_id")
        if id and id in self.places:
            self._fault(row, id, f"the task_id was used in {self.places[id]} already", "give each task its own")
        self.places.setdefault(id, row.place)
        question, level = self._text(row, record, "Question", id), self._text(row, record, "Level", id)
        split = str(record.pop("split", "") or split)
        answer, private = self._answer(row, record, id, split)
        file, digest = self._file(row, record, id, beside)
        cluster = record.pop("cluster", None)
        metadata = {**record, **({PRIVATE: True} if private else {}), **({"sha256": digest} if digest else {})}
        if len(self.faults) > before:
            return None
        return Task(
            id=id,
            input=question,
            answer=answer,
            files=(file,) if file else (),
            level=level,
            cluster=None if cluster is None else str(cluster),
            split=split or None,
            license=self.dataset.license or None,
            gated=self.dataset.gated,
            metadata=metadata,
        )

    def _text(self, row: Row, record: dict[str, Any], column: str, id: str = "") -> str:
        value = record.pop(column, None)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)  # levels of the older metadata are numbers
        if isinstance(value, str) and value.strip():
            return value
        near = get_close_matches(column.lower(), [key.lower() for key in record], n=1, cutoff=0.7)
        hint = f"; is it the column {near[0]!r}" if near else ""
        self._fault(row, id, f"there is no {column!r}{hint}", f"write it as {column!r}" if near else "write it")
        return ""

    def _answer(self, row: Row, record: dict[str, Any], id: str, split: str) -> tuple[str | None, bool]:
        value = record.pop("Final answer", None)
        if split in self.dataset.private:
            return None, True  # whatever stands there is a placeholder, such as "?"
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if value is None:
            self._fault(row, id, "there is no 'Final answer'", "write it")
        elif not isinstance(value, str) or not value.strip():
            repair = "write it, or name the split under 'private' in dataset.toml if its answers are not published"
            self._fault(row, id, f"its 'Final answer' is {value!r}", repair)
        elif why := self.faults_of(value):
            self._fault(row, id, f"its 'Final answer' is {value!r:.80}, and {why}", "write one that can be scored")
        return value, False

    def _file(self, row: Row, record: dict[str, Any], id: str, beside: Path) -> tuple[str, str]:
        """The path of the attachment and its SHA-256; both empty where there is none."""
        name, path = str(record.pop("file_name", "") or ""), str(record.pop("file_path", "") or "")
        wanted = record.pop("sha256", None)
        if not (name or path):
            return "", ""
        for given in filter(None, (name, path)):
            if given.startswith(("/", "\\")) or ".." in PurePosixPath(given.replace("\\", "/")).parts:
                self._fault(row, id, f"its file {given!r} leads out of the folder", "name one inside of it")
                return "", ""
        tried = [self.root / path] if path else []
        tried += [self.root / "files" / name, beside / name] if name else []
        found = next((place for place in tried if place.is_file()), None)
        if found is None:
            self._fault(row, id, f"there is no file {path or name!r}", self._near(name, beside))
            return "", ""
        if not self._inside(found):
            self._fault(row, id, f"its file {name!r} is a link that leads out of the folder", "put the file there")
            return "", ""
        digest = hashlib.sha256(found.read_bytes()).hexdigest()
        if wanted and wanted != digest:
            self._fault(row, id, f"its file {name!r} is not the one that 'sha256' names", "restore the file")
        return str(found), digest

    def _inside(self, file: Path) -> bool:
        # The cache that Hugging Face's client makes holds links to its `blobs`, two folders above a revision.
        homes = [Path(os.path.realpath(self.root))]
        homes += [homes[0].parent.parent / "blobs"] if homes[0].parent.name == "snapshots" else []
        return any(Path(os.path.realpath(file)).is_relative_to(home) for home in homes)

    def _near(self, name: str, beside: Path) -> str:
        folder = self.root / "files" if (self.root / "files").is_dir() else beside
        near = get_close_matches(name, [entry.name for entry in folder.iterdir()], n=1)
        return f"put it into {folder.name}/" + (f", or did you mean {near[0]!r}" if near else "")

    def _fault(self, row: Row, id: str, what: str, repair: str) -> None:
        self.faults.append(Fault(place=row.place, task_id=id, what=what, repair=repair))
