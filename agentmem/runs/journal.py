"""All that was paid for and all that was decided, durably, in one SQLite file.

One thread writes. It takes whatever is waiting and commits it as a group (WAL, synchronous=FULL), so that sixty
concurrent calls share one fsync. A result is in the file before anyone uses it.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentmem.errors import JournalError
from agentmem.runs.slot import Slot

SCHEMA = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS steps (
    seq INTEGER PRIMARY KEY,
    phase TEXT NOT NULL, step INTEGER NOT NULL, task TEXT NOT NULL, rollout INTEGER NOT NULL,
    purpose TEXT NOT NULL, ordinal INTEGER NOT NULL,
    request TEXT NOT NULL, failure TEXT, result TEXT NOT NULL, written_at REAL NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS steps_by_slot ON steps (phase, step, task, rollout, purpose, ordinal);
CREATE TABLE IF NOT EXISTS attempts (
    id INTEGER PRIMARY KEY, purpose TEXT NOT NULL, model TEXT NOT NULL, outcome TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, dollars REAL, sent_at REAL NOT NULL,
    seconds REAL);
CREATE TABLE IF NOT EXISTS libraries (step INTEGER PRIMARY KEY, version INTEGER NOT NULL, library TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS revisions (
    id INTEGER PRIMARY KEY, step INTEGER NOT NULL, version INTEGER NOT NULL, library TEXT NOT NULL,
    record TEXT NOT NULL, written_at REAL NOT NULL);
"""
# In `libraries`, step -1 is the library that learning began with. `revisions` holds what people did to the library
# after `step`; learning itself never writes there.

_GROUP = 512  # rows in one commit at most


@dataclass(frozen=True, slots=True)
class Stored:
    """What a slot holds: the request's fingerprint, and the result or the kind of failure with its message."""

    request: str
    failure: str | None
    result: str


Values = tuple[Any, ...] | dict[str, Any]
"""What stands for the placeholders of a statement."""


@dataclass(slots=True)
class _Write:
    sql: str
    values: Values
    done: asyncio.Future[None] | None


class Journal:
    """The journal of one run directory, opened by one process.

    Raises:
        JournalError: the file is damaged, was written by a newer agentmem, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = self._connect()
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._broken: JournalError | None = None
        self._thread = threading.Thread(target=self._write_all, name="agentmem-journal", daemon=True)
        self._thread.start()

    def read(self, slot: Slot) -> Stored | None:
        """What is stored at this place."""
        row = next(
            self.rows(
                "SELECT request, failure, result FROM steps WHERE phase=? AND step=? AND task=? AND rollout=?"
                " AND purpose=? AND ordinal=?",
                slot,
            ),
            None,
        )
        return Stored(*row) if row else None

    async def store(self, slot: Slot, stored: Stored) -> None:
        """Store a result; returns when it is on disk."""
        await self.write(
            "INSERT INTO steps (phase, step, task, rollout, purpose, ordinal, request, failure, result, written_at)"
            " VALUES (?,?,?,?,?,?,?,?,?,?)",
            (*slot, stored.request, stored.failure, stored.result, time.time()),
        )

    async def write(self, sql: str, values: Values) -> None:
        """Run one statement in the next group commit; returns when it is on disk."""
        if self._broken:
            raise self._broken
        done = asyncio.get_running_loop().create_future()
        self._queue.put(_Write(sql, values, done))
        await done

    def post(self, sql: str, values: tuple[Any, ...]) -> None:
        """Run one statement in the next group commit, without waiting for it."""
        self._queue.put(_Write(sql, values, None))

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Read with any query; what is committed is seen."""
        try:
            yield from self._reader.execute(sql, values)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def count(self) -> int:
        """How many results are stored, but for what is of the whole run and was not bought."""
        return int(next(self.rows("SELECT count(*) FROM steps WHERE phase != 'run'"))[0])

    def close(self) -> None:
        """Write what is waiting, and close the file."""
        self._queue.put(None)
        self._thread.join()
        self._reader.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            # Autocommit: the writer groups by hand; check_same_thread off: opened here, used in one thread each.
            connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._failure(error) from error
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found > SCHEMA:
                raise JournalError(
                    f"{self.path} has schema {found}, newer than this agentmem reads ({SCHEMA}); upgrade agentmem."
                )
            connection.executescript(_TABLES)
            connection.execute(f"PRAGMA user_version={SCHEMA}")
            return connection
        except sqlite3.Error as error:
            connection.close()
            raise self._failure(error) from error
        except JournalError:
            connection.close()
            raise

    def _failure(self, error: Exception) -> JournalError:
        if isinstance(error, sqlite3.OperationalError):
            repair = (
                "All that it had acknowledged is still in it; free some disk space or mend the file's permissions, "
                "and start the same command again."
            )
        else:
            repair = "It is damaged; restore it from a copy, or name another run."
        failure = JournalError(f"{self.path} cannot be used: {error}. {repair}")
        failure.__cause__ = error
        return failure

    def _write_all(self) -> None:
        connection = self._connect()
        stopping = False
        while not stopping:
            group = [self._queue.get()]
            while len(group) < _GROUP and group[-1] is not None:
                try:
                    group.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            if group[-1] is None:
                stopping = True
                group.pop()
            writes = [write for write in group if write is not None]
            if writes:
                self._commit(connection, writes)
        connection.close()

    def _commit(self, connection: sqlite3.Connection, writes: list[_Write]) -> None:
        failure = self._broken
        try:
            if failure is None:
                connection.execute("BEGIN IMMEDIATE")
                for write in writes:
                    connection.execute(write.sql, write.values)
                connection.execute("COMMIT")
        except Exception as error:  # whatever it is, somebody waits for an answer
            failure = self._broken = self._failure(error)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        waiting = [write.done for write in writes if write.done is not None]
        if waiting:
            with suppress(RuntimeError):  # the loop was closed while we wrote; nobody waits any more
                waiting[0].get_loop().call_soon_threadsafe(_resolve, waiting, failure)


def _resolve(waiting: list[asyncio.Future[None]], failure: JournalError | None) -> None:
    for done in waiting:
        if done.done():  # its task was cancelled
            continue
        if failure is None:
            done.set_result(None)
        else:
            done.set_exception(failure)
