"""One change of a bank while its transaction is open: what is written, and what was there before."""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentmem.domain.case import Case, name_of
from agentmem.domain.write_rules import Standing, WriteRules, weakest
from agentmem.errors import InputError
from agentmem.memory.case_store import CaseStore, text_hash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

LATELY = 32
"""Of many cases that did the same, those written last are looked at for near-duplicates; `audit` looks at all."""


class Change:
    """What one change does. All of it has one number, and can be undone by it.

    A change whose key wrote before is `replayed`: it has that change's number and case, and must write nothing.
    """

    def __init__(self, db: sqlite3.Connection, store: CaseStore, verb: str, key: str | None, why: str) -> None:
        self.db = db
        self.store = store
        self.case_id = ""
        self.notes: list[str] = []
        done = key and db.execute("SELECT seq, case_id FROM log WHERE key = ?", (key,)).fetchone()
        self.replayed = bool(done)
        self.seq: int
        if done:
            self.seq, self.case_id = done
        else:
            insert = "INSERT INTO log (key, verb, case_id, why, written_at) VALUES (?,?,'',?,?)"
            self.seq = db.execute(insert, (key, verb, why, time.time())).lastrowid or 0

    def finish(self) -> None:
        """Write what the change turned out to be about."""
        if not self.replayed and (self.case_id or self.notes):
            self.db.execute(
                "UPDATE log SET case_id = ?, notes = ? WHERE seq = ?",
                (self.case_id, "\n".join(self.notes), self.seq),
            )

    def rows(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """Read with any query; what this change wrote is seen."""
        return self.db.execute(sql, values).fetchall()

    def vector(self, text: str, vector: Vector, model: str) -> int:
        """Store the vector of a text, once, and give its number."""
        hash = text_hash(text)
        row = self.db.execute("SELECT id FROM vectors WHERE hash = ? AND model = ?", (hash, model)).fetchone()
        if row:
            return int(row[0])
        held = self.db.execute("SELECT value FROM meta WHERE key = 'embedder'").fetchone()
        if not held:
            about = (("embedder", model), ("dimensions", str(len(vector))))
            self.db.executemany("INSERT INTO meta VALUES (?,?)", about)
        elif held[0] != model:  # another process wrote first, or embedded all texts again
            self.store.check_embedder(model)
        insert = "INSERT INTO vectors (hash, model, text, vector) VALUES (?,?,?,?)"
        return int(self.db.execute(insert, (hash, model, text, vector.tobytes())).lastrowid or 0)

    # Cases

    def read(self, id: str, *, gone: bool = False) -> Case:
        """A case as it is now; a living one, unless a gone one is asked for.

        Raises:
            InputError: there is none.
        """
        row = self.db.execute("SELECT gone, body FROM cases WHERE id = ?", (id,)).fetchone()
        if not row:
            raise self.store.unknown(id)
        if row[0] and not gone:
            raise InputError(
                f"The case {id!r} was removed; undo that to have it back (`show` tells the change's number)."
            )
        return Case.model_validate_json(row[1])

    def add(self, case: Case, vector: int) -> Case:
        """Write a new case, under an id that was never given."""
        salt = 0
        while self.db.execute("SELECT 1 FROM cases WHERE id = ?", (case.id,)).fetchone():
            salt += 1
            case = case.model_copy(update={"id": name_of(case, salt=salt)})
        self.db.execute(
            "INSERT INTO cases (id, seq, born, trust, source, action, vector, body) VALUES (?,?,?,?,?,?,?,?)",
            (
                case.id,
                self.seq,
                self.seq,
                case.trust,
                case.provenance.source,
                action_hash(case.action),
                vector,
                case.model_dump_json(),
            ),
        )
        return case

    def write(self, case: Case, *, gone: bool = False) -> None:
        """Write over a case, and keep what was there. The vector of its state must be stored."""
        old = self.db.execute("SELECT gone, body FROM cases WHERE id = ?", (case.id,)).fetchone()
        if old == (int(gone), body := case.model_dump_json()):
            return
        self._keep("case", case.id, *old)
        self.db.execute(
            "UPDATE cases SET seq = ?, gone = ?, trust = ?, action = ?, body = ?, vector = COALESCE("
            "(SELECT id FROM vectors WHERE hash = ? AND model = (SELECT value FROM meta WHERE key = 'embedder')),"
            " vector) WHERE id = ?",
            (self.seq, int(gone), case.trust, action_hash(case.action), body, text_hash(case.state), case.id),
        )

    def twin(self, case: Case, vector: Vector, vector_id: int, rules: WriteRules) -> Case | None:
        """The living case that this one repeats: the same was done in the same state, or in one that is nearly so.

        A near copy must have ended alike, for a small difference may be the one that matters. A quarantined case is
        never merged into a trusted one; but a trusted one that says the same word for word promotes it.
        """
        import numpy as np

        action = action_hash(case.action)
        same = self.db.execute(
            "SELECT body FROM cases WHERE vector = ? AND action = ? AND NOT gone", (vector_id, action)
        )
        for old in (Case.model_validate_json(body) for (body,) in same.fetchall()):
            if (old.state, old.action) == (case.state, case.action) and not (
                old.trust == "trusted" and case.trust == "quarantined"
            ):
                return old
        if rules.merge_at is None:
            return None
        near = self.db.execute(
            "SELECT c.id, v.vector FROM cases c JOIN vectors v ON v.id = c.vector"
            " WHERE c.action = ? AND c.trust = ? AND NOT c.gone ORDER BY c.rowid DESC LIMIT ?",
            (action, case.trust, LATELY),
        ).fetchall()
        if not near:
            return None
        cosines = np.vecdot(
            np.frombuffer(b"".join(blob for _, blob in near), np.float32).reshape(len(near), -1), vector
        )
        for row in np.argsort(-cosines, kind="stable"):
            if cosines[row] < rules.merge_at:
                return None
            old = self.read(near[row][0])
            if old.action == case.action and old.succeeded == case.succeeded:
                return old
        return None

    # Uses

    def use(
        self,
        place: int,
        case_id: str,
        vector_id: int,
        *,
        value: float,
        reward: float,
        propensity: float | None,
        share: float = 1.0,
        void: int = 0,
    ) -> None:
        """Write what came of recalling a case; `case_id` is empty where none was recalled."""
        self.db.execute(
            "INSERT INTO uses (seq, place, case_id, vector, value, reward, propensity, share, void)"
            " VALUES (?,?,?,?,?,?,?,?,?)",
            (self.seq, place, case_id, vector_id, value, reward, propensity, share, void),
        )

    def move_use(self, id: int, *, void: int, case_id: str | None = None) -> None:
        """Say whether a use counts, and whose it is; what was there is kept."""
        old = self.db.execute("SELECT void, case_id FROM uses WHERE id = ?", (id,)).fetchone()
        case_id = old[1] if case_id is None else case_id
        if old == (void, case_id):
            return
        self._keep("use", str(id), *old)
        self.db.execute("UPDATE uses SET void = ?, case_id = ? WHERE id = ?", (void, case_id, id))

    def uses_of(self, case_id: str) -> list[int]:
        """The uses of a case that count."""
        rows = self.db.execute("SELECT id FROM uses WHERE case_id = ? AND NOT void", (case_id,))
        return [id for (id,) in rows.fetchall()]

    # What makes room

    def make_room(self, rules: WriteRules, source: str) -> None:
        """Let the weakest go, of one source and of all, where there are too many."""
        if rules.per_source is not None:
            living = self.db.execute("SELECT living FROM sources WHERE source = ?", (source,)).fetchone()
            if living and living[0] > rules.per_source:
                self._evict(
                    living[0] - rules.per_source, "c.source = ?", [source], f"its source has {rules.per_source}"
                )
        if rules.capacity is not None:
            living = self.db.execute("SELECT SUM(living) FROM sources").fetchone()[0] or 0
            if living > rules.capacity:
                # A hundredth more than must go: finding the weakest reads all cases.
                self._evict(
                    living - rules.capacity + rules.capacity // 100, "1", [], f"the bank has {rules.capacity}"
                )

    def _evict(self, n: int, where: str, values: Sequence[str], full: str) -> None:
        rows = self.db.execute(
            "SELECT c.id, COUNT(u.id), COALESCE(SUM(u.value), 0), ? - MAX(c.seq, COALESCE(MAX(u.seq), 0)) FROM cases c"
            f" LEFT JOIN uses u ON u.case_id = c.id AND NOT u.void WHERE NOT c.gone AND {where} GROUP BY c.id",
            (self.seq, *values),
        ).fetchall()
        uses, total = self.db.execute("SELECT n, total FROM totals WHERE name = 'values'").fetchone()
        for id in weakest(
            [Standing(*row) for row in rows], n, mean=total / uses if uses else 0.0, memory=len(rows)
        ):
            self.write(self.read(id), gone=True)
            self.notes.append(f"{id} gave way: {full}.")

    def _keep(self, kind: str, id: str, gone: int, body: str) -> None:
        """What was there before this change; of two writes in one change, before the first."""
        self.db.execute("INSERT OR IGNORE INTO edits VALUES (?,?,?,?,?)", (self.seq, kind, id, gone, body))


@contextmanager
def changing(store: CaseStore, verb: str, *, key: str | None = None, why: str = "") -> Iterator[Change]:
    """One change in one transaction."""
    with store.writing() as db:
        change = Change(db, store, verb, key, why)
        yield change
        change.finish()


def action_hash(action: str) -> int:
    """What is equal for actions that say the same but for case and white space; few others share it."""
    return zlib.crc32(" ".join(action.casefold().split()).encode())
