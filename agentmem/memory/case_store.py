"""Cases on disk: one SQLite file that is the truth, shared by several processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentmem.domain.case import Case

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cases (
    id TEXT PRIMARY KEY, seq INTEGER NOT NULL, gone INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL,
    vector BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS cases_by_seq ON cases (seq);
CREATE TABLE IF NOT EXISTS uses (
    key TEXT NOT NULL, place INTEGER NOT NULL, case_id TEXT NOT NULL, state BLOB NOT NULL, value REAL NOT NULL,
    reward REAL NOT NULL, propensity REAL, seq INTEGER NOT NULL, PRIMARY KEY (key, place));
CREATE INDEX IF NOT EXISTS uses_by_case ON uses (case_id, seq);
CREATE TABLE IF NOT EXISTS log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, verb TEXT NOT NULL, case_id TEXT NOT NULL,
    before TEXT, after TEXT, why TEXT NOT NULL DEFAULT '', written_at REAL NOT NULL);
"""
# `log` gives every change its sequence number and holds what was there before, so that any of them can be undone.
# `key` names the attempt that wrote, so that an attempt which is replayed does not write twice.


class CaseStore:
    """The tables of one bank. Several processes may hold it open; each write is one transaction."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path / "cases.sqlite"
        self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(_TABLES)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, exclusive among all writers; all of it is stored or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @property
    def seq(self) -> int:
        """The number of the last change."""
        return int(self._db.execute("SELECT COALESCE(MAX(seq), 0) FROM log").fetchone()[0])

    def changes(self, since: int) -> Iterator[tuple[str, bool, NDArray[np.float32]]]:
        """Cases that changed after `since`: id, whether it is gone, its vector."""
        import numpy as np

        rows = self._db.execute("SELECT id, gone, vector FROM cases WHERE seq > ? ORDER BY seq", (since,))
        for id, gone, vector in rows:
            yield id, bool(gone), np.frombuffer(vector, np.float32)

    def cases(self, ids: Iterable[str] | None = None) -> list[Case]:
        """The living cases, in order of their last change; or those with these ids, in this order."""
        if ids is None:
            rows = self._db.execute("SELECT body FROM cases WHERE NOT gone ORDER BY seq")
            return [Case.model_validate_json(body) for (body,) in rows]
        found = []
        for id in ids:
            row = self._db.execute("SELECT body FROM cases WHERE id = ? AND NOT gone", (id,)).fetchone()
            if row:
                found.append(Case.model_validate_json(row[0]))
        return found

    def uses(self, id: str) -> list[tuple[NDArray[np.float32], float]]:
        """In which states a case was recalled, with the credited values, oldest first."""
        import numpy as np

        rows = self._db.execute("SELECT state, value FROM uses WHERE case_id = ? ORDER BY seq", (id,))
        return [(np.frombuffer(state, np.float32), value) for state, value in rows]

    def mean_reward(self, *, without_case: bool = False) -> float | None:
        """The running mean reward of all attempts, or of those that recalled nothing; None before the first."""
        where = "WHERE case_id = ''" if without_case else "WHERE place = 0"
        return self._db.execute(f"SELECT AVG(reward) FROM uses {where}").fetchone()[0]  # type: ignore[no-any-return]  # sqlite3 is untyped

    def close(self) -> None:
        """Close the file."""
        self._db.close()
