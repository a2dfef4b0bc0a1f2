"""Cases on disk: one SQLite file that is the truth, shared by several processes."""

from __future__ import annotations

import hashlib
import json
import random
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmem.domain.case import Case
from agentmem.errors import EmbedderMismatch, InputError, MemoryStoreError
from agentmem.memory.case_schema import FILE, check_file, check_folder, create

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

_PATIENCE = 30.0
"""Seconds for which a write waits for another process's."""
_PAGE = 2000
"""Rows that are read at once where there may be 100,000."""


class CaseStore:
    """The tables of one bank. Several processes, and several threads, may use it; each write is one transaction.

    Args:
        path: the bank's folder.
        create: make the bank where there is none.

    Raises:
        InputError: the folder is no bank.
        MemoryStoreError: it is damaged, was written by a newer agentmem, or may not be written.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        check_folder(path, create=create)
        self.path = path / FILE
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MemoryStoreError(f"Cannot make the case bank {path}: {error.strerror or error}.") from error
        self._lock = threading.RLock()
        self._db = self._connect()
        # Readers must not see a transaction that is under way, and so have a connection of their own.
        self._writer = self._connect()
        self._writer.execute("PRAGMA busy_timeout=0")

    # Writing

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, exclusive among all writers; all of it is on disk in the end, or nothing.

        Raises:
            MemoryStoreError: it could not be written; nothing was.
        """
        with self._lock:
            db = self._writer
            self._begin(db)
            try:
                yield db
                db.execute("COMMIT")
            except BaseException as error:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise self._failure(error) from error
                raise

    def _begin(self, db: sqlite3.Connection) -> None:
        """Take the write lock. SQLite itself would sleep for up to 100 ms between two tries."""
        waited, began = 0.0001, time.monotonic()
        while True:
            try:
                db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (
                    sqlite3.SQLITE_BUSY,
                    sqlite3.SQLITE_LOCKED,
                ):
                    raise self._failure(error) from error
                if time.monotonic() - began > _PATIENCE:
                    raise self._failure(error) from error
            time.sleep(waited * random.random())
            waited = min(2 * waited, 0.0005)  # half of what another write takes

    # Reading

    def rows(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """Read with any query; what is committed is seen."""
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._failure(error) from error

    @property
    def seq(self) -> int:
        """The number of the last change."""
        return int(self.rows("SELECT COALESCE(MAX(seq), 0) FROM log")[0][0])

    @property
    def embedder(self) -> tuple[str, int] | None:
        """Whose vectors these are, and how long; None before the first."""
        found = dict(self.rows("SELECT key, value FROM meta WHERE key IN ('embedder', 'dimensions')"))
        return (found["embedder"], int(found["dimensions"])) if "embedder" in found else None

    def check_embedder(self, name: str, dimensions: int | None = None) -> tuple[str, int] | None:
        """Refuse another embedder than the one whose vectors these are; returns that one, None before the first.

        Raises:
            EmbedderMismatch: it is another, with the repair.
        """
        held = self.embedder
        if held and (held[0] != name or (dimensions is not None and held[1] != dimensions)):
            given = name if dimensions is None else f"{name} ({dimensions} dimensions)"
            raise EmbedderMismatch(
                f"{self.path.parent} was written with the embedder {held[0]} ({held[1]} dimensions), not with {given}, "
                "and their vectors cannot be compared. Open it with that one, or embed its texts again: "
                "CaseBank(path).reembed(embedder), or `agentmem memory reembed`."
            )
        return held

    def changes(self, since: int) -> Iterator[tuple[str, bool, Vector]]:
        """Cases that changed after `since`: id, whether it cannot be recalled (any more), its vector."""
        import numpy as np

        seq, row = since, 2**63 - 1
        while page := self.rows(
            "SELECT c.seq, c.rowid, c.id, c.gone OR c.trust != 'trusted', v.vector FROM cases c"
            " JOIN vectors v ON v.id = c.vector WHERE (c.seq, c.rowid) > (?, ?) ORDER BY c.seq, c.rowid LIMIT ?",
            (seq, row, _PAGE),
        ):
            for seq, row, id, gone, vector in page:  # noqa: B007  # the last ones are where the next page begins
                yield id, bool(gone), np.frombuffer(vector, np.float32)

    def cases(self, ids: Iterable[str] | None = None) -> list[Case]:
        """The living cases, in order of creation; or those with these ids, in this order."""
        if ids is None:
            rows = self.rows("SELECT body FROM cases WHERE NOT gone ORDER BY born, rowid")
            return [Case.model_validate_json(body) for (body,) in rows]
        wanted = list(ids)
        found = dict(
            self.rows(
                "SELECT id, body FROM cases WHERE id IN (SELECT value FROM json_each(?)) AND NOT gone",
                (json.dumps(wanted),),
            )
        )
        return [Case.model_validate_json(found[id]) for id in wanted if id in found]

    def unknown(self, id: str) -> InputError:
        """What to say of an id that the bank never had."""
        alike = (
            "SELECT id FROM cases WHERE length(?1) > 2 AND substr(id, 1, min(length(?1), 6)) = substr(?1, 1, 6)"
            " OR substr(id, -4) = substr(?1, -4)"
        )
        near = get_close_matches(id, [name for (name,) in self.rows(f"{alike} LIMIT 500", (id,))], n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return InputError(f"No case {id!r} in {self.path.parent}.{hint} `list` shows those that there are.")

    @property
    def identity(self) -> str:
        """What this bank is called where something is derived from it: drawn once, and kept for life."""
        if found := self.rows("SELECT value FROM meta WHERE key = 'identity'"):
            return str(found[0][0])
        with self.writing() as db:
            db.execute("INSERT OR IGNORE INTO meta VALUES ('identity', ?)", (secrets.token_hex(8),))
        return self.identity

    def mark(self, seq: int) -> str:
        """What tells this change from another with its number, as a bank that was restored from a copy may have it."""
        found = self.rows("SELECT written_at FROM log WHERE seq = ?", (seq,))
        return repr(found[0][0]) if found else ""

    def vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of those of these cases that can be recalled, in this order."""
        import numpy as np

        sql = (
            "SELECT c.id, v.vector FROM cases c JOIN vectors v ON v.id = c.vector"
            " WHERE c.id IN (SELECT value FROM json_each(?)) AND NOT c.gone AND c.trust = 'trusted'"
        )
        found = dict(self.rows(sql, (json.dumps(list(ids)),)))
        return {id: np.frombuffer(found[id], np.float32) for id in ids if id in found}

    def vector(self, text: str, model: str) -> Vector | None:
        """The vector of a text that was embedded before."""
        import numpy as np

        rows = self.rows("SELECT vector FROM vectors WHERE hash = ? AND model = ?", (text_hash(text), model))
        return np.frombuffer(rows[0][0], np.float32) if rows else None

    def uses(self, ids: Sequence[str]) -> dict[str, list[tuple[Vector, float]]]:
        """In which states each of these cases was recalled, with the credited values, oldest first."""
        import numpy as np

        found: dict[str, list[tuple[Vector, float]]] = {id: [] for id in ids}
        sql = (
            "SELECT u.case_id, v.vector, u.value FROM uses u JOIN vectors v ON v.id = u.vector"
            " WHERE u.case_id IN (SELECT value FROM json_each(?)) AND NOT u.void ORDER BY u.seq, u.id"
        )
        for id, state, value in self.rows(sql, (json.dumps(list(ids)),)):
            found[id].append((np.frombuffer(state, np.float32), value))
        return found

    def mean_reward(self, *, without_case: bool = False) -> float | None:
        """The running mean reward of all attempts, or of those that recalled nothing; None before the first."""
        name = "without_case" if without_case else "attempts"
        n, total = self.rows("SELECT n, total FROM totals WHERE name = ?", (name,))[0]
        return total / n if n else None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._writer.close()
            self._db.close()

    def _connect(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = None
        try:
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=_PATIENCE)
            check_file(db, self.path)
            _use_wal(db)
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA cache_size=-32768")
            # A checkpoint costs several writes' time: one in about a thousand writes has to wait for it.
            db.execute("PRAGMA wal_autocheckpoint=8000")
            if not db.execute("PRAGMA user_version").fetchone()[0]:
                create(db)
            return db
        except BaseException as error:  # whatever it is, the file must not stay open
            if db:
                db.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise self._failure(error) from error
            raise

    def _failure(self, error: Exception) -> MemoryStoreError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return MemoryStoreError(
                f"{self.path} cannot be written: the disk is full. All that it had acknowledged is still in it; "
                "free some space, and write again."
            )
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return MemoryStoreError(
                f"{self.path} is being written by another process for {_PATIENCE:g} seconds already; nothing was "
                "written. End that process, or try again."
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return MemoryStoreError(
                f"{self.path} is damaged ({error}). Restore it from a copy, or import an export into a new bank."
            )
        return MemoryStoreError(
            f"{self.path} cannot be used: {error}. All that it had acknowledged is still in it; mend the file's "
            "permissions, or the disk, and try again."
        )


def text_hash(text: str) -> bytes:
    """What a text's vector is found by."""
    return hashlib.sha256(text.encode()).digest()[:16]


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch the journal. Where several processes open a new bank at once, SQLite does not wait for the others here."""
    began = time.monotonic()
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() - began > _PATIENCE:
                raise
        time.sleep(0.005)
