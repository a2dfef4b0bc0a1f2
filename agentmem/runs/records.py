"""The records of a run, to be read by anyone at any time, also while the run is under way."""

from __future__ import annotations

import os
import sqlite3
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentmem.errors import InputError, JournalError
from agentmem.runs.journal import SCHEMA, Journal
from agentmem.runs.run import take_lock


@dataclass(frozen=True)
class Records:
    """A run directory that is read, and but for `revise` never changed.

    Args:
        folder: the run's directory.

    Raises:
        InputError: it holds no run.
        JournalError: its journal is damaged, or was written by a newer agentmem.
    """

    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            what = "is a file" if self.folder.exists() else "does not exist"
            raise InputError(f"{self.folder} {what}; name the folder of a run, such as runs/learn-1a2b3c4d.")
        if not self.journal.is_file():
            raise InputError(f"{self.folder} holds no run (no journal.sqlite); name the folder of a run.")
        with self._reading() as connection:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if found > SCHEMA:
            raise JournalError(
                f"{self.journal} has schema {found}, newer than this agentmem reads ({SCHEMA}); upgrade agentmem."
            )
        if not {"steps", "libraries"} <= tables:
            raise InputError(f"{self.journal} is no journal of agentmem; name the folder of a run.")

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self.folder / "journal.sqlite"

    @property
    def asked(self) -> dict[str, Any]:
        """What the run was asked for, as `run.toml` has it; empty where that is gone or damaged."""
        try:
            return tomllib.loads((self.folder / "run.toml").read_text("utf-8"))
        except (OSError, ValueError):
            return {}

    def rows(self, *queries: tuple[str, tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
        """The rows of each query (SQL and values), all as of one moment.

        Raises:
            JournalError: the journal is damaged.
        """
        with self._reading() as connection:
            connection.execute("BEGIN")
            return [connection.execute(sql, values).fetchall() for sql, values in queries]

    def has(self, table: str) -> bool:
        """Whether the journal has this table; one from an earlier agentmem may lack some."""
        return bool(self.rows(("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", (table,)))[0])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep learning processes out meanwhile.

        Raises:
            RunBusy: one is at work.
        """
        lock = take_lock(self.folder)
        try:
            yield
        finally:
            os.close(lock)

    def revise(self, *, step: int, version: int, library: str, record: str) -> None:
        """Note a revision that a person made; it is on disk when this returns. Call it while `locked`.

        Raises:
            JournalError: it cannot be written; nothing is changed.
        """
        Journal(self.journal).close()  # adds the table to a journal from an earlier agentmem
        sql = "INSERT INTO revisions (step, version, library, record, written_at) VALUES (?,?,?,?,?)"
        try:
            with closing(sqlite3.connect(self.journal, timeout=30)) as connection, connection:
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(sql, (step, version, library, record, time.time()))
        except sqlite3.Error as error:
            raise JournalError(
                f"{self.journal} cannot be written: {error}. Nothing was changed; free some disk space or mend the "
                "file's permissions, and try again."
            ) from error

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connect()) as connection:
                yield connection
        except sqlite3.Error as error:
            raise JournalError(
                f"{self.journal} cannot be read: {error}. If it is damaged, restore it from a copy of the folder."
            ) from error

    def _connect(self) -> sqlite3.Connection:
        address = f"{self.journal.absolute().as_uri()}?mode=ro"
        try:
            return _open(address)
        except sqlite3.OperationalError:
            if os.access(self.folder, os.W_OK):
                raise
            # On a medium that cannot be written to, WAL needs to be told that nobody else writes either.
            return _open(f"{address}&immutable=1")


def _open(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=30, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
