"""What a bank knows of the cases near a state: gathered from disk once, then followed use by use."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agentmem.memory.case_index import Near
from agentmem.memory.case_policy import POOL, Candidates
from agentmem.memory.case_store import CaseStore
from agentmem.memory.past_uses import RECENT, USES, Attempt, PastUses
from agentmem.memory.value_network import BUFFER, Replay

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

LEAK = 0.97
"""Tasks at this cosine are nearly the same task."""
_FURTHEST = 16 * POOL
"""Nearest cases that are looked at where many are withheld."""

Nearest = Callable[[int], Near]


@runtime_checkable
class LearningPolicy(Protocol):
    """A policy with weights, which are trained on the log and kept in the bank."""

    @property
    def name(self) -> str:
        """What its weights are kept under."""
        ...

    every: int
    """Attempts between two trainings."""
    seen: int
    """The last use that its weights know."""

    def learn(self, replay: Replay) -> object:
        """Train on the latest uses."""
        ...

    def saved(self) -> bytes:
        """Its weights."""
        ...

    def load(self, saved: bytes) -> None:
        """Go on from these weights."""
        ...


@dataclass(frozen=True)
class Pool:
    """The cases that a state may recall."""

    ids: tuple[str, ...]
    candidates: Candidates
    withheld: int
    """Cases that were nearer than the last of the pool and were not to be recalled."""
    seq: int
    """The last change that was looked at."""


class CaseReading:
    """Reads a bank's uses, and keeps in memory what the next reads need.

    Args:
        store: of the bank.
    """

    def __init__(self, store: CaseStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._past: PastUses | None = None
        self._last = 0
        self._seq = 0

    def pool(self, state: Vector, nearest: Nearest, *, task_id: str = "") -> Pool:
        """The candidates for a state, and what is known of them.

        Args:
            state: what is compared.
            nearest: gives so many ids with their cosines, most similar first.
            task_id: in evaluation: neither cases of this task nor of nearly the same ones are let in.
        """
        import numpy as np

        wanted = POOL
        while True:
            found = nearest(wanted)
            about = self._about(found.ids)
            living = [row for row, id in enumerate(found.ids) if id in about]
            kept = [row for row in living if not task_id or self._may_be_seen(found, row, about, task_id)]
            if len(kept) >= POOL or len(found.ids) < wanted or wanted >= _FURTHEST:
                break
            wanted *= 2
        withheld, kept = len(living) - len(kept), kept[:POOL]
        ids = [found.ids[row] for row in kept]
        with self._lock:
            past = self._followed(len(state))
            self._load(past, ids)
            means, uses = past.baselines(state), past.of(ids, state)
        candidates = Candidates(
            state=state,
            vectors=found.vectors[kept],
            cosines=found.cosines[kept],
            rewards=np.array([about[id][1] for id in ids], dtype=np.float64),  # None becomes NaN
            uses=uses,
            baseline=means.reward,
            no_case=means.without,
            no_case_mass=means.without_mass,
        )
        return Pool(tuple(ids), candidates, withheld, found.seq)

    @staticmethod
    def _may_be_seen(found: Near, row: int, about: dict[str, tuple[str, float | None]], task_id: str) -> bool:
        return bool(found.cosines[row] < LEAK) and about[found.ids[row]][0] != task_id

    def baseline(self, state: Vector) -> float:
        """What tasks like this one have brought so far."""
        with self._lock:
            return self._followed(len(state)).baselines(state).reward

    def refresh(self, policy: LearningPolicy) -> None:
        """Give a policy the weights that the bank has for it, where those are newer."""
        row = self._store.rows("SELECT last FROM policies WHERE name = ? AND last > ?", (policy.name, policy.seen))
        if row:
            last, weights = self._store.rows("SELECT last, weights FROM policies WHERE name = ?", (policy.name,))[
                0
            ]
            policy.load(weights)
            policy.seen = last

    def train(self, policy: LearningPolicy) -> tuple[str, int, bytes] | None:
        """Train a policy where enough attempts came since it was: not with each write, which has to be quick.

        Returns:
            Its name, the last use that it knows, and its new weights; None where it was not yet time.
        """
        self.refresh(policy)
        since = self._store.rows("SELECT COUNT(*) FROM uses WHERE id > ? AND place = 0", (policy.seen,))[0][0]
        if since < policy.every:
            return None
        rows = self._store.rows(
            "SELECT u.id, s.vector, c.vector, u.reward, u.reward - u.value, u.share FROM uses u"
            " JOIN vectors s ON s.id = u.vector JOIN cases k ON k.id = u.case_id JOIN vectors c ON c.id = k.vector"
            " WHERE u.void = 0 ORDER BY u.id DESC LIMIT ?",
            (BUFFER,),
        )
        if not rows:
            return None
        policy.learn(_replay(rows[::-1]))
        policy.seen = self._store.rows("SELECT MAX(id) FROM uses")[0][0]
        return policy.name, policy.seen, policy.saved()

    def forget(self) -> None:
        """Read everything anew, as after a change of embedder."""
        with self._lock:
            self._past = None

    def _about(self, ids: Sequence[str]) -> dict[str, tuple[str, float | None]]:
        """Task and reward of those cases that may be recalled."""
        rows = self._store.rows(
            "SELECT c.id, json_extract(c.body, '$.task_id'), json_extract(c.body, '$.reward')"
            " FROM json_each(?) j JOIN cases c ON c.id = j.value WHERE NOT c.gone AND c.trust = 'trusted'",
            (json.dumps(list(ids)),),
        )
        return {id: (task, reward) for id, task, reward in rows}

    def _followed(self, dimensions: int) -> PastUses:
        """Up to the last committed use."""
        seq = self._store.seq
        if self._past is not None and seq == self._seq:
            return self._past
        undone = "SELECT 1 FROM edits WHERE seq > ? AND kind = 'use' LIMIT 1"
        if self._past is None or self._store.rows(undone, (self._seq,)):  # it cannot be taken out of running sums
            self._past, self._seq = self._read(dimensions), seq
            return self._past
        rows = self._store.rows(_USES + " WHERE u.id > ? AND u.void != 1 ORDER BY u.id", (self._last,))
        for attempt in _attempts(rows):
            self._past.add(attempt)
        self._last, self._seq = (rows[-1][0] if rows else self._last), seq
        return self._past

    def _read(self, dimensions: int) -> PastUses:
        past = PastUses(dimensions)
        self._last = self._store.rows("SELECT COALESCE(MAX(id), 0) FROM uses")[0][0]
        for kind, sign in (("attempts", 1), ("without_case", -1)):
            n, total = self._store.rows("SELECT n, total FROM totals WHERE name = ?", (kind,))[0]
            past.total(sign * total, without=False, count=sign * n)
            if kind == "without_case":
                past.total(total, without=True, count=n)
        recent = " WHERE u.id <= ? AND u.place = 0 AND u.void != 1 ORDER BY u.id DESC LIMIT ?"
        rows = self._store.rows(_USES + recent, (self._last, RECENT))
        past.recent(_attempts(rows[::-1]))
        return past

    def _load(self, past: PastUses, ids: Sequence[str]) -> None:
        """The latest uses of the cases that were not asked for yet."""
        import numpy as np

        if missing := past.missing(ids):
            uses: dict[str, list[tuple[Vector, float, float]]] = {id: [] for id in missing}
            rows = self._store.rows(_LATEST, (json.dumps(missing), self._last, USES))
            for id, state, value, share in rows:
                uses[id].append((np.frombuffer(state, np.float32), value, share))
            for id in missing:
                past.load(id, uses[id])


_USES = (
    "SELECT u.id, u.place, u.case_id, u.value, u.reward, u.share, u.void, v.vector"
    " FROM uses u JOIN vectors v ON v.id = u.vector"
)
_LATEST = (
    "SELECT case_id, state, value, share FROM (SELECT u.id, u.case_id, v.vector AS state, u.value, u.share,"
    " ROW_NUMBER() OVER (PARTITION BY u.case_id ORDER BY u.id DESC) AS nth"
    " FROM json_each(?) j JOIN uses u ON u.case_id = j.value JOIN vectors v ON v.id = u.vector"
    " WHERE u.void = 0 AND u.share > 0 AND u.id <= ?) WHERE nth <= ? ORDER BY id"
)


def _attempts(rows: Sequence[tuple[Any, ...]]) -> Iterator[Attempt]:
    """Rows of uses as attempts: one begins at every place 0."""
    import numpy as np

    attempt: Attempt | None = None
    for _, place, case_id, value, reward, share, void, vector in rows:
        if place == 0 or attempt is None:
            if attempt is not None:
                yield attempt
            shares: dict[str, float] = {}
            state = np.frombuffer(vector, np.float32)
            attempt = Attempt(state, reward, reward - value, without=not case_id, shares=shares)
        if case_id and share > 0 and not void:
            shares[case_id] = share
    if attempt is not None:
        yield attempt


def _replay(rows: Sequence[tuple[Any, ...]]) -> Replay:
    import numpy as np

    _, states, cases, *columns = zip(*rows, strict=True)
    rewards, baselines, shares = (np.array(column, dtype=np.float64) for column in columns)
    return Replay(
        np.stack([np.frombuffer(state, np.float32) for state in states]),
        np.stack([np.frombuffer(case, np.float32) for case in cases]),
        rewards,
        baselines,
        shares,
    )
