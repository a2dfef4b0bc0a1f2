"""Rows for an index: cases with a vector that their number gives, without an embedder."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from agentmem.domain.case import Case
from agentmem.memory.case_store import CaseStore

DIMENSIONS = 16


def unit(number: int) -> NDArray[np.float32]:
    """A direction that the number gives."""
    vector = np.random.default_rng(number).standard_normal(DIMENSIONS)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def put(store: CaseStore, numbers: Iterable[int], *, vector: NDArray[np.float32] | None = None) -> list[str]:
    """Write cases, in one transaction."""
    ids = []
    with store.writing() as db:
        for number in numbers:
            case = Case.of(f"state {number}", "a")
            seq = _log(db, case.id)
            row = (unit(number) if vector is None else vector).tobytes()
            of_vector = db.execute(
                "INSERT INTO vectors (hash, model, text, vector) VALUES (?, 'rows', '', ?)",
                (str(seq).encode(), row),
            ).lastrowid
            db.execute(
                "INSERT OR REPLACE INTO cases (id, seq, born, trust, source, action, vector, body)"
                " VALUES (?, ?, ?, 'trusted', '', 0, ?, ?)",
                (case.id, seq, seq, of_vector, case.model_dump_json()),
            )
            ids.append(case.id)
    return ids


def remove(store: CaseStore, *ids: str) -> None:
    """Leave only their tombstones."""
    with store.writing() as db:
        for id in ids:
            db.execute("UPDATE cases SET gone = 1, seq = ? WHERE id = ?", (_log(db, id), id))


def _log(db: sqlite3.Connection, id: str) -> int:
    sql = "INSERT INTO log (verb, case_id, why, written_at) VALUES ('add', ?, '', ?)"
    return db.execute(sql, (id, time.time())).lastrowid or 0
