"""What a query recalls from a bank, and what it would have recalled but for quarantine and the leak guard."""

from __future__ import annotations

from agentmem.domain.case import Recall
from agentmem.domain.value import Value
from agentmem.memory import case_embedding
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.policies import DEFAULT


class Held(Value):
    """A case that is near, and is kept from being recalled."""

    id: str
    similarity: float
    """Cosine of the two states."""


class Search(Value):
    """A slate, and what was kept out of it."""

    recall: Recall
    quarantined: tuple[Held, ...] = ()
    """Cases in quarantine that are as near as those that were recalled, nearest first."""


def search(
    bank: CaseBank, query: str, *, k: int = 10, policy: str = DEFAULT, seed: int = 0, task_id: str = ""
) -> Search:
    """What a query recalls, and why. Writes nothing.

    Args:
        bank: where to look.
        query: the state.
        k: cases at most.
        policy: its name; the default is an agent's.
        seed: all draws depend on it.
        task_id: look as an evaluation of this task does, which may not see its own cases.

    Raises:
        InputError: the query is empty, or there is no such policy.
    """
    recall = bank.recall(query, k=k, policy=policy, seed=seed, task_id=task_id)
    furthest = min((item.similarity for item in recall.cases), default=-1.0) if len(recall.cases) == k else -1.0
    near = [held for held in _quarantined(bank, query) if held.similarity >= furthest]
    return Search(recall=recall, quarantined=tuple(near[:k]))


def _quarantined(bank: CaseBank, query: str) -> list[Held]:
    rows = bank.store.rows(
        "SELECT c.id, v.vector FROM cases c JOIN vectors v ON v.id = c.vector"
        " WHERE NOT c.gone AND c.trust = 'quarantined' ORDER BY c.id"
    )
    if not rows:
        return []
    import numpy as np

    (state,) = case_embedding.vectors(bank.store, bank.embedder, [query])
    cosines = np.frombuffer(b"".join(vector for _, vector in rows), np.float32).reshape(len(rows), -1) @ state
    return [Held(id=rows[row][0], similarity=float(cosines[row])) for row in np.argsort(-cosines, kind="stable")]
