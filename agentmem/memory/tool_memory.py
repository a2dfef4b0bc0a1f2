"""Tool memory: every call with its outcome, and what is known of a tool by it (2508.16153, section 4)."""

from __future__ import annotations

import re
import sqlite3
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentmem.domain.trajectory import ToolResult
from agentmem.domain.value import Value
from agentmem.domain.write_rules import storable
from agentmem.errors import MemoryStoreError

ARGUMENTS = 300
"""Characters of a call's arguments that are kept."""
RECENT = 200
"""Calls of a tool that count: a tool that was mended is not blamed for ever."""
_NO_CALL = frozenset({"unknown_tool"})
"""What a model only made up is no call of a tool."""

_TABLE = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, tool TEXT NOT NULL, arguments TEXT NOT NULL, status TEXT NOT NULL, error TEXT NOT NULL,
    seconds REAL NOT NULL, task_id TEXT NOT NULL, written_at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS calls_by_tool ON calls (tool, written_at);
"""


class Called(Value):
    """One call of a tool, as it is remembered: its arguments without secrets, and shortened."""

    key: str
    tool: str
    arguments: str
    status: str
    error: str
    """The class of the error; empty where there was none."""
    seconds: float
    task_id: str


class ToolRecord(Value):
    """How a tool did in its recent calls.

    Example:
        >>> str(ToolRecord(tool="fetch", calls=4, ok=2, seconds=0.31, failure="timeout"))
        'fetch: 4 calls, 50 % ok, 0.3 s each; it fails mostly with timeout'
    """

    tool: str
    calls: int
    ok: int
    seconds: float
    """Median."""
    failure: str = ""
    """The commonest class of error."""

    def __str__(self) -> str:
        calls = f"{self.calls} call{'s' * (self.calls != 1)}"
        fails = f"; it fails mostly with {self.failure}" if self.failure else ""
        return f"{self.tool}: {calls}, {self.ok / self.calls:.0%} ok, {self.seconds:.1f} s each{fails}".replace(
            "%", " %"
        )


class ToolMemory:
    """The calls of tools, in one SQLite file that several processes may use.

    Args:
        path: the file; made at the first call that is kept.

    Example:
        >>> from agentmem.domain.trajectory import ToolCall
        >>> memory = ToolMemory(tmp / "doc-tools.sqlite")
        >>> memory.retain([("a", ToolResult(call=ToolCall(id="1", name="add"), content="3"))], task_id="t")
        >>> [str(record) for record in memory.about(["add", "fetch"])]
        ['add: 1 call, 100 % ok, 0.0 s each']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def retain(self, results: Iterable[tuple[str, ToolResult]], *, task_id: str) -> None:
        """Keep calls, each under a key that names it: one that is written again changes nothing.

        Raises:
            MemoryStoreError: the file cannot be written.
        """
        now = time.time()
        rows = [
            (
                key,
                one.call.name,
                _short(one.call.arguments),
                one.status,
                _word(one.error),
                one.seconds,
                task_id,
                now,
            )
            for key, one in results
            if one.error not in _NO_CALL
        ]
        if rows:
            with self._using() as db, db:
                db.executemany("INSERT OR IGNORE INTO calls VALUES (?,?,?,?,?,?,?,?)", rows)

    def about(self, tools: Sequence[str]) -> tuple[ToolRecord, ...]:
        """How these tools did, of those that were called before, in this order."""
        return tuple(record for tool in tools if (record := self._about(tool)) is not None)

    def calls(self, tool: str | None = None, *, limit: int = 100) -> tuple[Called, ...]:
        """The newest calls, of one tool or of all, newest first."""
        rows = self._rows(
            "SELECT key, tool, arguments, status, error, seconds, task_id FROM calls WHERE ?1 IS NULL OR tool = ?1"
            " ORDER BY written_at DESC, key DESC LIMIT ?2",
            (tool, limit),
        )
        return tuple(Called(**dict(zip(Called.model_fields, row, strict=True))) for row in rows)

    @property
    def snapshot(self) -> str:
        """Another one whenever a call was added."""
        count = self._rows("SELECT COUNT(*), COALESCE(MAX(written_at), 0) FROM calls")
        return ":".join(str(value) for value in count[0]) if count and count[0][0] else ""

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _about(self, tool: str) -> ToolRecord | None:
        rows = self._rows(
            "SELECT status, error, seconds FROM calls WHERE tool = ? ORDER BY written_at DESC, key DESC LIMIT ?",
            (tool, RECENT),
        )
        if not rows:
            return None
        errors = Counter(error or status for status, error, _ in rows if status != "ok")
        return ToolRecord(
            tool=tool,
            calls=len(rows),
            ok=sum(status == "ok" for status, _, _ in rows),
            seconds=statistics.median(seconds for _, _, seconds in rows),
            failure=errors.most_common(1)[0][0] if errors else "",
        )

    def _rows(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        if self._db is None and not self.path.exists():
            return []  # a memory that is only read makes no file
        with self._using() as db:
            return db.execute(sql, values).fetchall()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The open file, for one thread at a time."""
        try:
            with self._lock:
                if self._db is None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self._db = sqlite3.connect(self.path, check_same_thread=False, timeout=30)
                    self._db.execute("PRAGMA journal_mode=WAL")
                    self._db.executescript(_TABLE)
                yield self._db
        except (sqlite3.Error, OSError) as error:
            raise MemoryStoreError(f"The memory of tools {self.path} cannot be used: {error}.") from error


def _short(arguments: str) -> str:
    """Without secrets, on one line; redacted before it is cut, or half a secret would stay at the cut."""
    return storable(" ".join(arguments.split()), what="The arguments", limit=ARGUMENTS)[0]


def _word(error: str) -> str:
    """The class of an error as a prompt may hold it: one word."""
    return re.sub(r"\W+", "_", error)[:40]
