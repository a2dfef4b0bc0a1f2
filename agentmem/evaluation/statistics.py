"""What numbers from few tasks can say: pass@k, paired tests, intervals, the smallest effect that would show."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from agentmem.domain.seed import split_seed
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.intervals import (
    ROUNDING,
    Floats,
    Interval,
    chunks,
    mean_interval,
    paired_interval,
    units_of,
    wilson,
    z_of,
)

__all__ = [
    "Interval",
    "Test",
    "holm",
    "mcnemar",
    "mean_interval",
    "paired_interval",
    "pass_at_k",
    "pass_hat_k",
    "sign_flip",
    "smallest_detectable",
    "wilson",
]


class Test(Value):
    """A two-sided test of "no difference"."""

    __test__ = False  # pytest collects classes of this name

    p: float
    """The probability of a difference at least this large where there is none; never too small."""
    mid_p: float
    """The same, counting half of the differences just as large: less conservative with few tasks."""
    method: str
    """Which test it is, in words."""
    n: int
    """Units that moved at all; the others say nothing."""


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The unbiased chance that at least one of `k` tries succeeds, 1 - C(n-c, k)/C(n, k) (2107.03374).

    Args:
        n: tries made.
        c: tries that succeeded.
        k: tries allowed.

    Returns:
        None where n < k: then it is not defined.

    Example:
        >>> pass_at_k(4, 1, 2), pass_at_k(4, 1, 8)
        (0.5, None)
    """
    _check_tries(n, c, k)
    return None if n < k else 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """The unbiased chance that all of `k` tries succeed, C(c, k)/C(n, k) (2406.12045); None where n < k.

    Example:
        >>> pass_hat_k(4, 2, 2)
        0.16666666666666666
    """
    _check_tries(n, c, k)
    return None if n < k else math.comb(c, k) / math.comb(n, k)


def mcnemar(b: int, c: int) -> Test:
    """McNemar's exact test of two arms with one 0/1 result per task.

    Args:
        b: tasks that only the second arm solved.
        c: tasks that only the first arm solved.

    Example:
        >>> mcnemar(9, 1).p, round(mcnemar(9, 1).mid_p, 4)
        (0.021484375, 0.0117)
    """
    if b < 0 or c < 0:
        raise InputError(f"mcnemar({b}, {c}): counts cannot be negative.")
    n, few = b + c, min(b, c)
    term = tail = 1
    for i in range(few):
        term = term * (n - i) // (i + 1)
        tail += term
    # Whole numbers until the end: their ratio is exact also where they are too large for a float.
    return Test(p=min(1.0, 2 * tail / 2**n), mid_p=(2 * tail - term) / 2**n, method="McNemar exact", n=n)


def sign_flip(
    differences: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
    resamples: int = 20_000,
) -> Test:
    """The sign-flip permutation test of a mean paired difference; a cluster flips as one.

    Exact where the differences are multiples of a common fraction (all scores from k tries are) or few; else Monte
    Carlo, where p counts the data themselves and so is never 0. With one 0/1 result a task it is McNemar's test.

    Args:
        differences: one per task.
        clusters: the cluster of each task.
        seed: of the Monte Carlo draws; the order of tasks has no influence.
        resamples: Monte Carlo draws.

    Example:
        >>> sign_flip([1, 1, 1, 1, 1, 0]).p
        0.0625
    """
    sums = units_of(differences, clusters, None).sums
    sizes = np.sort(np.abs(sums[np.abs(sums) > ROUNDING]))
    observed = abs(float(sums.sum()))
    exact = _lattice_tail(sizes, observed) or _enumerated_tail(sizes, observed)
    if exact is not None:
        above, equal = exact
        p, mid, method = above + equal, above + equal / 2, "sign-flip exact"
    else:
        rng = np.random.default_rng(split_seed(seed, "sign-flip"))
        totals = np.concatenate(
            [(rng.integers(0, 2, (rows, len(sizes))) * 2 - 1) @ sizes for rows in chunks(resamples, len(sizes))]
        )
        hits = (np.abs(totals) >= observed - ROUNDING).sum() / 2
        p, mid = (hits + 0.5) / (resamples + 1), hits / resamples
        method = f"sign-flip, {resamples:,} draws"
    return Test(p=float(min(1, 2 * p)), mid_p=float(min(1, 2 * mid)), method=method, n=len(sizes))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values adjusted for their number by Holm's method, in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        (0.03, 0.06, 0.06)
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return tuple(adjusted)


def smallest_detectable(
    n_tasks: int,
    *,
    samples: int = 1,
    discordance: float = 0.2,
    power: float = 0.8,
    confidence: float = 0.95,
) -> float | None:
    """The smallest true difference of two arms on the same tasks that a comparison would show.

    A normal approximation for 0/1 rewards. An effect of d needs tasks that change, so it brings a discordance of
    d at least, however steady the arms are.

    Args:
        n_tasks: tasks, tried by both arms.
        samples: tries per task and arm; they average out the chance part of the discordance, all of it here.
        discordance: share of tasks on which one try of each arm disagrees by chance.
        power: the wanted chance to show it.
        confidence: of the interval that must exclude 0.

    Returns:
        A difference between 0 and 1; None where not even the largest would show.

    Example:
        >>> round(smallest_detectable(165), 3), round(smallest_detectable(30), 3), smallest_detectable(4)
        (0.098, 0.262, None)
    """
    if n_tasks < 0 or samples < 1 or not 0 <= discordance <= 1 or not 0 < power < 1:
        raise InputError(
            f"smallest_detectable({n_tasks}, samples={samples}, discordance={discordance}, power={power}): "
            "samples must be 1 or more, discordance lie in [0, 1] and power in (0, 1)."
        )
    if n_tasks == 0:
        return None
    needed = (z_of(confidence) + NormalDist().inv_cdf(power)) ** 2 / n_tasks
    effect = max(math.sqrt(needed * discordance / samples), needed)
    return effect if effect < 1 else None


def _lattice_tail(sizes: Floats, observed: float) -> tuple[float, float] | None:
    """P(sum > observed) and P(sum = observed) over all signs, for multiples of a common fraction."""
    fractions = [Fraction(float(size)).limit_denominator(1000) for size in sizes]
    if any(abs(float(f) - size) > ROUNDING for f, size in zip(fractions, sizes, strict=True)):
        return None
    scale = math.lcm(1, *(f.denominator for f in fractions))
    steps = [int(f * scale) for f in fractions]
    reach = sum(steps)
    if reach > 2_000_000 or reach * len(steps) > 100_000_000:
        return None
    chance = np.zeros(2 * reach + 1)
    chance[reach] = 1.0
    for step in steps:
        moved = np.zeros_like(chance)
        moved[step:] = chance[: len(chance) - step]
        moved[: len(chance) - step] += chance[step:]
        chance = moved / 2
    at = reach + round(observed * scale)
    return float(chance[at + 1 :].sum()), float(chance[at])


def _enumerated_tail(sizes: Floats, observed: float) -> tuple[float, float] | None:
    """The same by trying all signs, where they are few."""
    if len(sizes) > 16:
        return None
    totals = np.zeros(1)
    for size in sizes:
        totals = np.concatenate([totals + size, totals - size])
    above = totals > observed + ROUNDING
    equal = np.abs(totals - observed) <= ROUNDING
    return float(above.mean()), float(equal.mean())


def _check_tries(n: int, c: int, k: int) -> None:
    if k < 1 or not 0 <= c <= n:
        raise InputError(f"n={n}, c={c}, k={k}: k must be 1 or more, and c lie between 0 and n.")
