"""How a case is written: what is taken out of it first, and what it is merged with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmem.domain.case import Case, Recall, name_of
from agentmem.domain.reward import Reward
from agentmem.domain.write_rules import MOST_CHARACTERS, WriteRules, admitted, inherited, lineage, storable
from agentmem.errors import InputError
from agentmem.memory.case_change import Change
from agentmem.memory.slate_credit import shares

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_STEPS = 200
"""Of a trace."""


def prepared(case: Case, reward: Reward | None = None) -> tuple[Case, tuple[str, ...]]:
    """A case as it may be written, and what was done to it, in words.

    Args:
        case: what is to be written.
        reward: what it was worth, where the case does not say so; its source decides whether it verifies the case.

    Raises:
        InputError: the state is empty, or the case says another reward.
    """
    if not case.state.strip():
        raise InputError(f"A case needs a state, what was asked; got {case.state!r}.")
    if reward is not None and reward.score is not None:
        if case.reward is not None and case.reward != reward.score:
            raise InputError(
                f"The case says that it was worth {case.reward:g}, and the reward says {reward.score:g}."
            )
        case = case.model_copy(update={"reward": reward.score})
    state, notes = storable(case.state, what="The state")
    action, more = storable(case.action, what="The action")
    trace, about_trace = _trace(case.trace)
    trust = admitted(case.trust, case.provenance, reward=reward)
    changed = case.model_copy(update={"state": state, "action": action, "trace": trace, "trust": trust})
    if (state, action) != _words(case) and case.id == name_of(case):  # an id may not depend on a secret either
        changed = changed.model_copy(update={"id": name_of(changed)})
    return changed, (*notes, *more, *about_trace)


def put(change: Change, case: Case, vector: NDArray[np.float32], *, model: str, rules: WriteRules) -> Case:
    """Write a prepared case, or add what it tells to the one that it repeats."""
    number = change.vector(case.state, vector, model)
    twin = change.twin(case, vector, number, rules)
    if twin is None:
        return change.add(case, number)
    kept = merged(twin, [case])
    change.write(kept)
    change.notes.append(f"Merged into {twin.id}, which says the same.")
    return kept


def merged(case: Case, others: Sequence[Case]) -> Case:
    """A case with what others that say the same know: the mean of the rewards, and where they went."""
    known = [one for one in (case, *others) if one.reward is not None]
    attempts = sum(one.attempts for one in known)
    mean = sum((one.reward or 0.0) * one.attempts for one in known) / attempts if known else None
    _, gated = inherited((case, *others))
    # One that is trusted and says the same word for word vouches for it; see `Change.twin`.
    vouched = any(one.trust == "trusted" and _words(one) == _words(case) for one in others)
    return case.model_copy(
        update={
            "reward": mean,
            "attempts": attempts or 1,
            "trust": "trusted" if vouched else case.trust,
            "gated": gated,
            "parents": tuple(id for id in dict.fromkeys((*case.parents, *lineage(others))) if id != case.id),
            "revision": case.revision + 1,
        }
    )


def merge_cases(change: Change, ids: Sequence[str]) -> Case:
    """Make several cases one: the oldest stays, and gets the others' rewards and uses.

    Raises:
        InputError: there are not two different ones, or one is quarantined and another is not.
    """
    ids = tuple(dict.fromkeys(ids))
    if len(ids) < 2:
        raise InputError(f"A merge needs two different cases; got {', '.join(ids) or 'none'}.")
    cases = [change.read(id) for id in ids]
    if len({case.trust for case in cases}) > 1:
        wary = next(case.id for case in cases if case.trust == "quarantined")
        raise InputError(
            f"{wary} is quarantined and the others are not; promote it, or remove it, but do not merge it."
        )
    born = dict(change.rows("SELECT id, rowid FROM cases"))
    first, *others = sorted(cases, key=lambda case: born[case.id])
    kept = merged(first, others)
    change.write(kept)
    for other in others:
        change.write(other, gone=True)
        for use in change.uses_of(other.id):
            change.move_use(use, void=0, case_id=kept.id)
    change.case_id = kept.id
    return kept


@dataclass(frozen=True)
class Credit:
    """What came of a slate, before it is written."""

    recall: Recall
    reward: Reward
    vector: NDArray[np.float32]
    """Of the state."""
    baseline: float
    """What tasks like this one brought so far: the cases are credited with the difference."""
    cited: Collection[str] = ()
    """The cases that the answer named."""
    trained: tuple[str, int, bytes] | None = None
    """A policy's name, the last use that it knows, and its new weights."""


def write_uses(change: Change, credit: Credit, *, model: str) -> None:
    """One update of Q: what came of a slate, for each of its cases; an unknown reward writes nothing."""
    recall, score = credit.recall, credit.reward.score
    if score is None:
        return
    number = change.vector(storable(recall.state, what="The state")[0], credit.vector, model)
    value = score - credit.baseline
    if not recall.cases:
        change.use(0, "", number, value=value, reward=score, propensity=recall.ended)
    parts = shares(recall.ids, credit.cited)
    for place, item in enumerate(recall.cases):
        id, share = item.case.id, parts[item.case.id]
        change.use(place, id, number, value=value, reward=score, propensity=item.propensity, share=share)
    if credit.trained:
        change.db.execute("INSERT OR REPLACE INTO policies VALUES (?,?,?)", credit.trained)


def _trace(trace: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The steps, all of them together no longer than four texts may be."""
    notes: list[str] = []
    steps = list(trace)
    if len(steps) > MOST_STEPS:
        left_out = len(steps) - MOST_STEPS
        notes.append(f"The trace has {len(steps):,} steps; the first and last {MOST_STEPS // 2} were kept.")
        half = MOST_STEPS // 2
        steps = [*steps[:half], f"[… {left_out:,} steps left out …]", *steps[-half:]]
    limit = max(400, 4 * MOST_CHARACTERS // max(4, len(steps)))
    kept = []
    for number, step in enumerate(steps, 1):
        text, about = storable(step, what=f"Step {number} of the trace", limit=limit)
        kept.append(text)
        notes += about
    return tuple(kept), tuple(notes)


def _words(case: Case) -> tuple[str, str]:
    return case.state, case.action
