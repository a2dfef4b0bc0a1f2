"""Chroma's data beside `cases.sqlite`: generations that are built aside, sealed, and never written to again.

    chroma/current            the name of the newest generation
    chroma/g-1f0c.../         Chroma's own files, and `sealed.json`: which changes they hold, and their digests

Chroma's files are not safe for several processes when one of them writes, and damaged ones can crash the process that
loads them. So a builder fills a copy, seals it and points `current` to it; readers compare the digests before Chroma
sees a file, and hold a shared lock on the generation that they use, so that nobody deletes it under them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from agentmem.atomic import atomic_write
from agentmem.domain.value import Value
from agentmem.memory.case_store import CaseStore
from agentmem.memory.chroma_index import HNSW, ChromaIndex, folder_client, send
from agentmem.memory.index_home import BATCH, Stopping, Unusable
from agentmem.memory.store_changes import Changes

COLLECTION = "cases"
FORMAT = 1
_SEAL = "sealed.json"
_DATABASE = "chroma.sqlite3"


class Seal(Value):
    """What a generation holds, written when it was complete."""

    format: int = FORMAT
    chroma: str
    """The version of Chroma that wrote it; another one may read it otherwise."""
    bank: str
    """The store's identity."""
    seq: int
    """The last change that it holds."""
    mark: str
    """The store's own mark of that change: a store that was restored from a copy has another one."""
    count: int
    churn: int
    """Changes since it was built from nothing: vectors that are deleted or replaced burden the graph."""
    dimensions: int
    files: dict[str, str] = {}
    """Digests by path."""


class ChromaFolder:
    """The generations of one bank.

    Args:
        bank: the bank's folder.
    """

    def __init__(self, bank: Path) -> None:
        self.path = bank / "chroma"

    def newest(self) -> str:
        """The name of the newest generation; empty where there is none."""
        try:
            name = (self.path / "current").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return name if name.startswith("g-") and "/" not in name else ""

    def open(self, store: CaseStore) -> ChromaIndex | None:
        """The newest generation, verified and loaded; None where there is none. This may take seconds.

        Raises:
            Unusable: there is something, and it cannot be used.
        """
        while True:
            if not (name := self.newest()):
                if self.path.is_dir() and any(self.path.iterdir()) and not self._building():
                    raise Unusable("it does not say which generation is the newest")
                return None
            try:
                return self._open(name, store)
            except Unusable:
                if name == self.newest():
                    raise  # else a builder replaced and deleted it meanwhile

    def verified(self, name: str, store: CaseStore) -> Seal:
        """The seal of a generation that is whole and belongs to this store.

        Raises:
            Unusable: it is not.
        """
        folder = self.path / name
        try:
            seal = Seal.model_validate_json((folder / _SEAL).read_bytes())
        except (OSError, ValueError):
            raise Unusable(f"{name}/{_SEAL} cannot be read") from None
        if seal.format != FORMAT or seal.chroma != _chroma_version():
            raise Unusable(f"it was written by another version (Chroma {seal.chroma})")
        if seal.bank != store.identity or seal.seq > store.seq or seal.mark != store.mark(seal.seq):
            raise Unusable("it was built from another state of the bank")
        try:
            found = _digests(folder)
        except (OSError, sqlite3.Error) as error:
            raise Unusable(f"its files cannot be read ({error})") from None
        if wrong := sorted(path for path in seal.files.keys() | found if seal.files.get(path) != found.get(path)):
            raise Unusable(f"{wrong[0]} is not what was written")
        return seal

    def build(self, store: CaseStore, *, anew: bool = False, stopping: Stopping = lambda: None) -> None:
        """Seal a new generation, made from the newest one where that is sound. One builder at a time may do this.

        Args:
            store: what it is made from.
            anew: from nothing, whatever is there.
            stopping: called before each batch; it raises to stop the work, and nothing of it is left then.
        """
        self._tidy()
        base, before = ("", None) if anew else self._base(store)
        changes = Changes(store, before.seq if before else 0)
        other = before and changes.added and before.dimensions != changes.dimensions
        if before and (other or before.churn + len(changes) > max(before.count, BATCH)):
            base, before, changes = "", None, Changes(store)
        if not changes and before and before.seq == changes.seq:
            return
        try:
            folder = self._begin(base)
            seal = Seal(
                chroma=_chroma_version(),
                bank=store.identity,
                seq=changes.seq,
                mark=changes.mark,
                count=_fill(folder, changes, new=before is None, stopping=stopping),
                churn=before.churn + len(changes) if before else 0,
                dimensions=changes.dimensions or (before.dimensions if before else 0),
            )
            self._seal(folder, seal)
        finally:
            self._tidy()

    def _base(self, store: CaseStore) -> tuple[str, Seal | None]:
        name = self.newest()
        try:
            return (name, self.verified(name, store)) if name else ("", None)
        except Unusable:
            return "", None

    def _begin(self, copy_of: str) -> Path:
        folder = self.path / f"g-{secrets.token_hex(6)}"
        self.path.mkdir(exist_ok=True)
        if copy_of:
            shutil.copytree(self.path / copy_of, folder, ignore=shutil.ignore_patterns(_SEAL))
        else:
            folder.mkdir()
        return folder

    def _seal(self, folder: Path, seal: Seal) -> None:
        """Declare it complete and the newest one. A crash before the last line leaves the one that was there."""
        for path in _files(folder):
            with (folder / path).open("rb") as file:
                os.fsync(file.fileno())
        whole = seal.model_copy(update={"files": _digests(folder)})
        atomic_write(folder / _SEAL, whole.model_dump_json())
        atomic_write(self.path / "current", folder.name + "\n")

    def _tidy(self) -> None:
        """Delete what is neither the newest generation nor in use."""
        newest = self.newest()
        for folder in self.path.glob("g-*"):
            if folder.name != newest and not _in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def _open(self, name: str, store: CaseStore) -> ChromaIndex:
        folder = self.path / name
        try:
            handle = os.open(folder / _SEAL, os.O_RDONLY)
        except OSError as error:
            raise Unusable(f"{name}/{_SEAL} cannot be read ({error.strerror})") from None
        index = None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            seal = self.verified(name, store)
            client = folder_client(str(folder))
            index = ChromaIndex(client, COLLECTION, seal.seq, seal.dimensions, release=lambda: os.close(handle))
            _load(index, seal)
        except BaseException as error:
            if index is None:
                os.close(handle)
            else:
                index.close()
            if isinstance(error, Exception) and not isinstance(error, Unusable):
                raise Unusable(f"Chroma cannot load it ({type(error).__name__}: {error})") from error
            raise
        return index

    def _building(self) -> bool:
        return any(not (folder / _SEAL).exists() for folder in self.path.glob("g-*"))


def _fill(folder: Path, changes: Changes, *, new: bool, stopping: Stopping) -> int:
    # Chroma writes its graph to disk after so many changes, and keeps the rest in a queue that every reader would have
    # to work through. So the number is set to what comes now; it holds from the next opening on.
    threshold = {"sync_threshold": max(2, len(changes))}
    client = folder_client(str(folder))
    if new:
        client.create_collection(
            COLLECTION, embedding_function=None, configuration={"hnsw": {**HNSW, **threshold}}
        )
    else:
        client.get_collection(COLLECTION, embedding_function=None).modify(configuration={"hnsw": threshold})
    client.close()
    client = folder_client(str(folder))
    try:
        return send(changes, client.get_collection(COLLECTION, embedding_function=None), stopping=stopping)
    finally:
        client.close()


def _load(index: ChromaIndex, seal: Seal) -> None:
    """Load the graph with a first query, so that no reader waits for it."""
    import numpy as np

    if index.count != seal.count:
        raise Unusable(f"it holds {index.count} cases where {seal.count} were written")
    if seal.count and not index.nearest(np.zeros(seal.dimensions, np.float32), 1):
        raise Unusable("it finds nothing")


def _chroma_version() -> str:
    from importlib.metadata import version

    return version("chromadb")


def _in_use(folder: Path) -> bool:
    try:
        handle = os.open(folder / _SEAL, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _files(folder: Path) -> list[str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != _SEAL)
    return [path.relative_to(folder).as_posix() for path in paths]


def _digests(folder: Path) -> dict[str, str]:
    """What each file says. Opening Chroma counts up a number in its database, so of that the content counts."""
    found = {}
    for path in _files(folder):
        if path == _DATABASE:
            found[path] = _rows_digest(folder / path)
        elif not path.startswith(_DATABASE):  # else its journal
            with (folder / path).open("rb") as file:
                found[path] = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    return found


def _rows_digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        for line in _rows(db):
            digest.update(repr(line).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _rows(db: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    for (table,) in tables.fetchall():
        # `acquire_write` is what opening writes to; the full-text tables are empty, and SQLite's own.
        if table != "acquire_write" and "fulltext" not in table:
            yield (table,)
            yield from db.execute(f'SELECT * FROM "{table}"')
