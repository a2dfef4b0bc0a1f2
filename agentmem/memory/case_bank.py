"""The memory M of the M-MDP (2508.16153): cases that a state recalls, and that outcomes are written to."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from agentmem.domain.case import Case, Recall, Recalled
from agentmem.domain.reward import Reward
from agentmem.domain.value import fingerprint
from agentmem.memory.case_policy import POOL, Candidates, CasePolicy, Similarity, Uses
from agentmem.memory.case_store import CaseStore
from agentmem.memory.embedder import Embedder, open_embedder
from agentmem.memory.vector_index import ExactIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class CaseBank:
    """Past cases, and which of them resemble the present state.

    Args:
        path: the bank's folder; made where there is none.
        embedder: what turns states into vectors; the bank keeps to the first one.

    Example:
        >>> from agentmem.testing.hash_embedder import HashEmbedder
        >>> bank = CaseBank(tmp / "doc-bank", embedder=HashEmbedder())
        >>> _ = bank.retain(Case.of("Reset my password", "IT desk", reward=1.0))
        >>> [item.case.action for item in bank.recall("My password does not work").cases]
        ['IT desk']
    """

    def __init__(self, path: str | Path, *, embedder: str | Embedder = "minilm") -> None:
        self.path = Path(path)
        self.embedder = open_embedder(embedder)
        self.store = CaseStore(self.path)
        self._index: ExactIndex | None = None

    @property
    def seq(self) -> int:
        """The number of its last change."""
        return self.store.seq

    @property
    def snapshot(self) -> str:
        """Equal for banks with the same content; empty for an empty one."""
        return fingerprint([case.model_dump(mode="json") for case in self.store.cases()])

    def recall(
        self, state: str, *, k: int = 4, policy: CasePolicy | None = None, seed: int = 0, task_id: str = ""
    ) -> Recall:
        """The cases that this state recalls. Embedding may take milliseconds: async code calls it in a thread.

        Args:
            state: what is asked now.
            k: cases at most (the paper's K = 4).
            policy: which cases; by default `Similarity`.
            seed: all draws depend on it.
            task_id: in evaluation: the task whose own cases, and near copies of it, must not be recalled (the leak
                guard); empty for none.
        """
        import numpy as np

        policy = policy or Similarity()
        vector = self.embedder.embed([state])[0]
        seq = self._follow(len(vector))
        assert self._index is not None
        near = self._index.nearest(vector, POOL)
        cases = [c for c in self.store.cases(id for id, _ in near) if not task_id or c.task_id != task_id]
        cosine = dict(near)
        vectors = self.embedder.embed([case.state for case in cases])
        mean = self.store.mean_reward()
        candidates = Candidates(
            state=vector,
            vectors=vectors,
            cosines=np.array([cosine[case.id] for case in cases], dtype=np.float64),
            uses=tuple(self._uses(case.id, len(vector)) for case in cases),
            baseline=0.5 if mean is None else mean,
            no_case=self.store.mean_reward(without_case=True) or 0.0,
        )
        slate = policy.choose(candidates, k, seed=seed)
        return Recall(
            state=state,
            policy=policy.name,
            seq=seq,
            cases=tuple(
                Recalled(
                    case=cases[row],
                    similarity=float(candidates.cosines[row]),
                    mu0=float(slate.mu0[row]),
                    q=None if slate.q is None else float(slate.q[row]),
                    mu=float(slate.mu[row]),
                    propensity=None if slate.propensities is None else slate.propensities[place],
                )
                for place, row in enumerate(slate.rows)
            ),
            ended=slate.ended,
        )

    def retain(self, case: Case, *, why: str = "", key: str | None = None) -> Case:
        """Write a case; with a `key` that wrote before, nothing happens twice."""
        vector = self.embedder.embed([case.state])[0]
        with self.store.writing() as db:
            seq = db.execute(
                "INSERT OR IGNORE INTO log (key, verb, case_id, after, why, written_at) VALUES (?,?,?,?,?,?)",
                (key, "add", case.id, case.model_dump_json(), why, time.time()),
            ).lastrowid
            db.execute(
                "INSERT OR REPLACE INTO cases (id, seq, body, vector) VALUES (?,?,?,?)",
                (case.id, seq, case.model_dump_json(), vector.tobytes()),
            )
        return case

    def credit(self, recall: Recall, reward: Reward, *, key: str, cited: tuple[str, ...] = ()) -> None:
        """Tell the bank what an attempt with these cases was worth: one update of Q; unknown rewards write nothing."""
        if reward.score is None:
            return
        state = self.embedder.embed([recall.state])[0].tobytes()
        with self.store.writing() as db:
            seq = db.execute(
                "INSERT OR IGNORE INTO log (key, verb, case_id, why, written_at) VALUES (?,'use','','',?)",
                (key, time.time()),
            ).lastrowid
            for place, item in enumerate(recall.cases or (None,)):
                propensity = item.propensity if item else recall.ended
                db.execute(
                    "INSERT OR IGNORE INTO uses VALUES (?,?,?,?,?,?,?,?)",
                    (
                        key,
                        place,
                        item.case.id if item else "",
                        state,
                        reward.score,
                        reward.score,
                        propensity,
                        seq,
                    ),
                )

    def close(self) -> None:
        """Close its files."""
        self.store.close()

    def _follow(self, dimensions: int) -> int:
        """Bring the index up to the store's last change."""
        self._index = self._index or ExactIndex(dimensions)
        seq = self.store.seq
        if self._index.seq < seq:
            changes = list(self.store.changes(self._index.seq))
            added = {id: vector for id, gone, vector in changes if not gone}
            self._index.update(added, [id for id, gone, _ in changes if gone], seq=seq)
        return seq

    def _uses(self, id: str, dimensions: int) -> Uses:
        import numpy as np

        rows: list[tuple[NDArray[np.float32], float]] = self.store.uses(id)
        states = np.stack([state for state, _ in rows]) if rows else np.zeros((0, dimensions), np.float32)
        return Uses(states, np.array([value for _, value in rows], dtype=np.float64))
