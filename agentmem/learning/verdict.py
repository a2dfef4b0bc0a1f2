"""What a gate decides from paired differences, and whether those that are still missing could decide it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from agentmem.domain.value import Value

EFFECT_SD = 0.05
"""Prior of the true effect of a candidate: N(0, 0.05^2). Most lessons do little."""

MADE_UP = 0.25
"""Variance of one made-up task, added so that a few equal differences do not pass for certainty."""

PARTS = 32
"""In how many parts the range of what is missing is looked at."""


class Verdict(Value):
    """What a gate decided, and on what evidence."""

    outcome: Literal["accepted", "rejected", "undecided"]
    reason: str
    tasks: int = 0
    rounds: int = 0
    difference: float = 0.0
    """Mean paired difference of the scores, candidate minus incumbent."""
    p_harm: float = 0.5
    """Posterior probability that the true effect is below 0."""
    details: tuple[str, ...] = ()
    """What was found of each operation, where they were tried one by one."""

    @property
    def accepted(self) -> bool:
        """Whether the candidate is taken; an undecided gate keeps the incumbent."""
        return self.outcome == "accepted"


@dataclass(frozen=True)
class Missing:
    """A task whose paired difference of this round is not known yet."""

    least: float
    """Its mean difference over the rounds, should the worst come."""
    most: float
    """Should the best come."""
    certain: bool = False
    """It counts even if an attempt fails now, because it was scored in an earlier round."""


def decide(differences: Sequence[float], rounds: int, *, risk: float, effect_sd: float = EFFECT_SD) -> Verdict:
    """The verdict on the mean differences of the tasks so far."""
    mean, p_harm = posterior(differences, effect_sd=effect_sd)
    outcome: Literal["accepted", "rejected", "undecided"] = "undecided"
    if p_harm < risk:
        outcome = "accepted"
    elif 1 - p_harm < risk:
        outcome = "rejected"
    n = len(differences)
    reason = f"{mean:+.3f} on {n} held-out tasks after {rounds} round{'s' * (rounds > 1)}, P(harm) = {p_harm:.2f}"
    return Verdict(outcome=outcome, reason=reason, tasks=n, rounds=rounds, difference=mean, p_harm=p_harm)


def posterior(differences: Sequence[float], *, effect_sd: float = EFFECT_SD) -> tuple[float, float]:
    """Mean of paired differences, and the posterior probability that the true effect is below 0.

    Normal likelihood over tasks (the unit that was drawn), prior N(0, effect_sd^2). One made-up task of standard
    deviation 0.5 is added to the variance, so that a few equal differences do not pass for certainty.

    Example:
        >>> posterior([0.0] * 24)
        (0.0, 0.5)
    """
    n = len(differences)
    mean = math.fsum(differences) / n
    error2 = (math.fsum((d - mean) ** 2 for d in differences) + MADE_UP) / n**2
    return mean, NormalDist().cdf(-_z(mean, error2, effect_sd))


def chance(
    differences: Sequence[float], rounds: int, *, of: int, risk: float, effect_sd: float = EFFECT_SD
) -> float:
    """The probability that `of` rounds in all will accept, given the mean differences after `rounds` of them.

    The predictive probability of a sequential trial: the true effect is drawn from its posterior, and what is still
    to come from its own error. What the tasks differ by is taken to shrink with the rounds; the made-up task of
    `posterior` stays.

    Example:
        >>> chance([0.5] * 8, 2, of=8, risk=0.1) > 0.5 > chance([0.0] * 8, 2, of=8, risk=0.1)
        True
    """
    n = len(differences)
    mean = math.fsum(differences) / n
    seen2 = math.fsum((d - mean) ** 2 for d in differences) / n**2
    error2, last2 = seen2 + MADE_UP / n**2, seen2 * rounds / of + MADE_UP / n**2
    needed = NormalDist().inv_cdf(1 - risk) / _z(1.0, last2, effect_sd)
    share = (of - rounds) / of
    if share <= 0:
        return float(mean > needed)
    shrink = effect_sd**2 / (effect_sd**2 + error2)
    to_come2 = shrink * error2 + error2 * rounds / (of - rounds)
    return 1 - NormalDist(mean * (1 - share * (1 - shrink)), share * math.sqrt(to_come2)).cdf(needed)


def stays_open(
    known: Sequence[float], missing: Sequence[Missing], *, risk: float, effect_sd: float = EFFECT_SD
) -> bool:
    """Whether the verdict will be undecided whatever is still missing: where it is not certain, no.

    Args:
        known: mean differences of the tasks that no score is missing of.
        missing: the others.
        risk: as for `decide`.
        effect_sd: as for `decide`.

    Example:
        >>> known, straggler = [0.0] * 80, Missing(-1.0, 1.0)
        >>> stays_open(known, [straggler], risk=0.1), stays_open(known, [straggler] * 20, risk=0.1)
        (True, False)
    """
    mirrored = [Missing(-task.most, -task.least, task.certain) for task in missing]
    clear = NormalDist().inv_cdf(1 - risk) - 1e-9
    return not any(
        z >= clear
        for seen, unseen in ((known, missing), ([-d for d in known], mirrored))
        for z in _bounds(seen, unseen, effect_sd)
    )


def _bounds(known: Sequence[float], missing: Sequence[Missing], effect_sd: float) -> Iterator[float]:
    """What z cannot exceed, for each number of missing tasks that come in, and for each part of the range of their sum.

    Of all differences with the same sum, equal ones have the least variance; so z depends on the sum alone.
    """
    total, squares = math.fsum(known), math.fsum(d * d for d in known)
    certain = [task for task in missing if task.certain]
    least = sorted(task.least for task in missing if not task.certain)
    most = sorted((task.most for task in missing if not task.certain), reverse=True)
    for scored in range(len(least), -1, -1):
        unknown = len(certain) + scored
        n = len(known) + unknown
        if not n:
            continue
        low = math.fsum(task.least for task in certain) + math.fsum(least[:scored])
        high = math.fsum(task.most for task in certain) + math.fsum(most[:scored])
        # The sum at which the missing are like the known: there the variance is least.
        alike = total * unknown / len(known) if known else 0.0
        for part in range(PARTS, 0, -1):
            start, end = (low + (high - low) * place / PARTS for place in (part - 1, part))
            nearest = min(max(alike, start), end)
            spread = squares + (nearest**2 / unknown if unknown else 0.0) - (total + nearest) ** 2 / n
            yield _z((total + end) / n, (max(spread, 0.0) + MADE_UP) / n**2, effect_sd)


def _z(mean: float, error2: float, effect_sd: float) -> float:
    """Mean of the posterior in units of its standard deviation."""
    shrink = effect_sd**2 / (effect_sd**2 + error2)
    return math.sqrt(shrink / error2) * mean
