"""Who among the recalled cases made the difference: what a slate's outcome says of each of its cases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from agentmem.domain.case import Recall
from agentmem.domain.seed import split_seed
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.memory.case_policy import Candidates, CasePolicy, Slate


def shares(ids: Sequence[str], cited: Collection[str] = ()) -> dict[str, float]:
    """Which part of an outcome is whose: the cited cases', in equal parts; of all, where none of them is cited.

    Args:
        ids: the recalled cases.
        cited: those that the model says it used; ids that were not recalled are passed over.

    Example:
        >>> shares(["c-1", "c-2", "c-3"], cited=["c-3"])
        {'c-1': 0.0, 'c-2': 0.0, 'c-3': 1.0}
    """
    named = [id for id in ids if id in cited] or ids
    return {id: (1 / len(named) if id in named else 0.0) for id in ids}


@dataclass(frozen=True)
class DropOne:
    """Leaves one case, drawn at random, out of some slates: the only way to learn what each is worth in company.

    Cases that are always recalled together share their credit for ever; what happens without one of them tells
    which it was. `effects` turns the outcomes into unbiased estimates.

    Args:
        policy: what chooses the slate.
        chance: the share of slates that lose a case; slates of a single case lose none.
    """

    policy: CasePolicy
    chance: float = 0.25

    def __post_init__(self) -> None:
        if not 0 < self.chance < 1:
            raise InputError(
                f"chance={self.chance}: which share of slates loses a case; between 0 and 1, such as 0.25."
            )

    @property
    def name(self) -> str:
        """The policy, with what determines it."""
        return f"drop_one({self.policy.name}, chance={self.chance:g})"

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """The policy's slate, or all of it but one."""
        import numpy as np

        slate = self.policy.choose(candidates, k, seed=seed)
        rng = np.random.default_rng(split_seed(seed, "drop_one"))
        if len(slate.rows) < 2:
            return slate
        # The shown slate may come of several full ones, so its probability is not known, and no off-policy estimate
        # is made of such a log.
        slate = replace(slate, whole=1 - self.chance, propensities=None, ended=None)
        if rng.random() >= self.chance:
            return slate
        place = int(rng.integers(len(slate.rows)))
        return replace(slate, rows=slate.rows[:place] + slate.rows[place + 1 :], dropped=slate.rows[place])


class Trial(Value):
    """One slate of `DropOne` and what came of it."""

    ids: tuple[str, ...]
    """All cases that were chosen, the dropped one too."""
    dropped: str | None
    """The one that was left out; None where all were shown."""
    whole: float
    """The probability with which all were shown."""
    value: float
    """Reward minus baseline; the baseline must not depend on this attempt."""

    @classmethod
    def of(cls, recall: Recall, value: float) -> Trial:
        """The trial that a recall was."""
        dropped = recall.dropped or None
        ids = (*recall.ids, dropped) if dropped else recall.ids
        return cls(ids=ids, dropped=dropped, whole=recall.whole, value=value)


def effects(trials: Iterable[Trial]) -> dict[str, float]:
    """What each case added to the reward in the company it was recalled in, on average over its slates; unbiased.

        mean of value ([all shown]/p - [this one left out] n/(1 - p)),    p the probability that all are shown

    Slates that another case was left out of count in the mean, with a weight of 0: to compare with them too would
    charge a case with the absence of the others.
    """
    weighted: dict[str, list[float]] = {}
    for trial in (trial for trial in trials if trial.whole < 1):  # of the others nothing could be left out
        for id in trial.ids:
            weight = 0.0
            if trial.dropped is None:
                weight = 1 / trial.whole
            elif trial.dropped == id:
                weight = -len(trial.ids) / (1 - trial.whole)
            weighted.setdefault(id, []).append(trial.value * weight)
    return {id: fmean(values) for id, values in weighted.items()}
