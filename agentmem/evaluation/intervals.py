"""Confidence intervals of a mean over tasks, and of a mean paired difference.

The unit is the task, or the cluster of tasks that share a context; never the attempt (2411.00640). Which interval
is used where was chosen by measuring coverage: see `benchmarks/statistics_calibration.py` and its results.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from agentmem.domain.seed import split_seed
from agentmem.domain.value import Value
from agentmem.errors import InputError

Floats = NDArray[np.float64]
Bounds = tuple[float, float]
Method = Literal["auto", "t", "studentised", "bca"]


class Interval(Value):
    """A confidence interval with how it was made."""

    # An interval without a limit is data ("nothing is known"), and JSON has no infinity but as text.
    model_config = ConfigDict(allow_inf_nan=True, ser_json_inf_nan="strings")

    low: float
    """Minus infinity where the data set no limit."""
    high: float
    """Infinity where the data set no limit."""
    confidence: float
    """The share of such intervals that hold the true value, such as 0.95."""
    method: str
    """How it was made, in words."""
    n: int
    """Independent units that it rests on: clusters, or tasks where there are none."""

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def wilson(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """The Wilson score interval of a proportion.

    Args:
        successes: how many of the `n` succeeded.
        n: independent tries; with 0 the interval is all of [0, 1].
        confidence: between 0 and 1.

    Raises:
        InputError: not 0 <= successes <= n, or a confidence outside (0, 1).

    Example:
        >>> made = wilson(99, 165)
        >>> round(made.low, 3), round(made.high, 3)
        (0.524, 0.672)
    """
    if not 0 <= successes <= n:
        raise InputError(f"wilson({successes}, {n}): the successes must lie between 0 and n.")
    low, high = _wilson(successes / n if n else 0.5, n, z_of(confidence))
    return Interval(low=low, high=high, confidence=confidence, method="Wilson", n=int(n))


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    bounds: Bounds | None = None,
    method: Method = "auto",
    resamples: int = 10_000,
) -> Interval:
    """The interval of a mean over tasks.

    `auto` is Wilson where all values are 0 or 1 and there are no clusters; Wilson with the effective number of
    tasks (and Student's quantile) for other values with bounds; else a studentised bootstrap over clusters. Equal
    values and a single unit get the interval in which a share of tasks too small to have been seen may lie
    anywhere within the bounds; without bounds, nothing is known.

    Args:
        values: one mean per task.
        clusters: the cluster of each task; tasks of one cluster are not independent.
        confidence: between 0 and 1.
        seed: of the bootstrap; the order of tasks has no influence.
        bounds: the least and the largest value possible; by default (0, 1) where all values lie in it, else none.
        method: the interval to use instead.
        resamples: of the bootstrap.

    Raises:
        InputError: a value that is not finite or lies outside the bounds, or a cluster missing.
    """
    if bounds is None and all(0 <= value <= 1 for value in values):
        bounds = (0.0, 1.0)
    units = units_of(values, clusters, bounds)
    return _mean_interval(units, confidence, seed, bounds, method, resamples)


def paired_interval(
    differences: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    bounds: Bounds | None = None,
    method: Method = "auto",
    resamples: int = 10_000,
) -> Interval:
    """The interval of a mean paired difference, after minus before, over tasks.

    `auto` is Bonett and Price (one task more that was fixed and one that was broken) where all differences are -1,
    0 or 1 or all are equal; else Student's t over clusters, which held its coverage where the bootstraps did not.

    Args:
        differences: one per task.
        clusters: the cluster of each task; tasks of one cluster are not independent.
        confidence: between 0 and 1.
        seed: of the bootstrap; the order of tasks has no influence.
        bounds: the least and the largest difference possible; by default (-1, 1) where all lie in it, else none.
        method: the interval to use instead.
        resamples: of the bootstrap.

    Raises:
        InputError: a difference that is not finite or lies outside the bounds, or a cluster missing.
    """
    if bounds is None and all(-1 <= value <= 1 for value in differences):
        bounds = (-1.0, 1.0)
    units = units_of(differences, clusters, bounds)
    return _paired_interval(units, confidence, seed, bounds, method, resamples)


ROUNDING = 1e-9
"""Differences below it come from floating point."""


class Units:
    """Sums and sizes of the clusters, in an order that does not depend on that of the tasks."""

    def __init__(self, sums: Floats, sizes: Floats, clustered: bool) -> None:
        order = np.lexsort((sizes, sums))
        self.sums, self.sizes = sums[order], sizes[order]
        self.clustered = clustered
        self.key = (self.sums.tobytes(), self.sizes.tobytes(), clustered)

    def __len__(self) -> int:
        return len(self.sums)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Units) and self.key == other.key

    @property
    def mean(self) -> float:
        """Mean over tasks, not over clusters."""
        return float(math.fsum(self.sums) / self.sizes.sum())

    @property
    def error(self) -> float:
        """Standard error of the mean, linearised where clusters differ in size."""
        n = len(self)
        left = self.sums - self.mean * self.sizes
        return float(math.sqrt(n / (n - 1) * (left**2).sum()) / self.sizes.sum())

    @property
    def uniform(self) -> bool:
        """Whether there is no spread to learn from."""
        return len(self) < 2 or self.error < ROUNDING * max(1.0, abs(self.mean))

    @property
    def over(self) -> str:
        """What the units are, in words."""
        return "clusters" if self.clustered else "tasks"


def units_of(values: Sequence[float], clusters: Sequence[Hashable] | None, bounds: Bounds | None) -> Units:
    """Checked values as units."""
    data = np.asarray(values, dtype=np.float64)
    if not np.isfinite(data).all():
        raise InputError(f"Value {int(np.argmin(np.isfinite(data)))} is not finite; leave out what is not known.")
    if bounds is not None and len(data):
        if bounds[0] >= bounds[1]:
            raise InputError(f"bounds={bounds}: the first must be smaller than the second.")
        if data.min() < bounds[0] - ROUNDING or data.max() > bounds[1] + ROUNDING:
            raise InputError(f"The values reach from {data.min()} to {data.max()}, outside the bounds {bounds}.")
    if clusters is None:
        return Units(data, np.ones(len(data)), clustered=False)
    if len(clusters) != len(data):
        raise InputError(f"{len(data)} values and {len(clusters)} clusters: give each value its cluster.")
    places: dict[Hashable, int] = {}
    which = np.array([places.setdefault(name, len(places)) for name in clusters], dtype=np.intp)
    # Sorted first, so that a sum of floats does not depend on the order of tasks.
    order = np.lexsort((data, which))
    sums = np.bincount(which[order], weights=data[order], minlength=len(places)).astype(np.float64)
    sizes = np.bincount(which, minlength=len(places)).astype(np.float64)
    return Units(sums, sizes, clustered=len(places) < len(data))


@lru_cache(maxsize=256)
def _mean_interval(
    units: Units, confidence: float, seed: int, bounds: Bounds | None, method: Method, resamples: int
) -> Interval:
    n, z = len(units), z_of(confidence)
    if n == 0:
        low, high, name = *(bounds or (-math.inf, math.inf)), "no data"
    elif bounds is not None and not units.clustered and method == "auto" and set(units.sums) <= set(bounds):
        share = (units.mean - bounds[0]) / (bounds[1] - bounds[0])
        low, high, name = *_stretch(_wilson(share, n, z), bounds), "Wilson"
    elif units.uniform:
        low, high, name = *_unseen(units.mean, n, z, bounds), "no spread: unseen tasks may differ"
    elif bounds is not None and method == "auto":
        share = (units.mean - bounds[0]) / (bounds[1] - bounds[0])
        effective = share * (1 - share) * (bounds[1] - bounds[0]) ** 2 / units.error**2
        inside = _wilson(share, effective, student(n - 1, confidence))
        low, high, name = *_stretch(inside, bounds), f"Wilson, effective number of {units.over}"
    else:
        method = "studentised" if method == "auto" else method
        low, high, name = _general(units, confidence, seed, method, resamples)
    return _made(low, high, bounds, confidence, name, n)


@lru_cache(maxsize=256)
def _paired_interval(
    units: Units, confidence: float, seed: int, bounds: Bounds | None, method: Method, resamples: int
) -> Interval:
    n = len(units)
    three_valued = not units.clustered and bounds == (-1.0, 1.0) and set(units.sums) <= {-1.0, 0.0, 1.0}
    if n == 0:
        low, high, name = *(bounds or (-math.inf, math.inf)), "no data"
    elif units.uniform and bounds is None:
        low, high, name = -math.inf, math.inf, "no spread and no bounds"
    elif (three_valued and method == "auto") or (units.uniform and bounds is not None):
        assert bounds is not None
        data = np.append(units.sums / units.sizes, bounds)
        half = z_of(confidence) * float(data.std()) / math.sqrt(n + 2)
        low, high, name = float(data.mean()) - half, float(data.mean()) + half, "Bonett-Price"
    else:
        method = "t" if method == "auto" else method
        low, high, name = _general(units, confidence, seed, method, resamples)
    return _made(low, high, bounds, confidence, name, n)


def _made(low: float, high: float, bounds: Bounds | None, confidence: float, name: str, n: int) -> Interval:
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return Interval(low=low, high=high, confidence=confidence, method=name, n=n)


def _wilson(share: float, n: float, z: float) -> Bounds:
    if n == 0:
        return 0.0, 1.0
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(0.0, share * (1 - share)) / n + z * z / (4 * n * n))
    # Exactly 0 and 1 at the ends, where rounding would leave 1e-17.
    return (0.0 if share <= 0 else max(0.0, middle - half)), (1.0 if share >= 1 else min(1.0, middle + half))


def _stretch(inside: Bounds, bounds: Bounds) -> Bounds:
    """From [0, 1] to the bounds; the ends are met exactly."""
    low, high = (share * bounds[1] + (1 - share) * bounds[0] for share in inside)
    return low, high


def _unseen(value: float, n: int, z: float, bounds: Bounds | None) -> Bounds:
    """All of n units are equal: a share of the others, too small to have been seen, may lie anywhere."""
    if bounds is None:
        return -math.inf, math.inf
    unseen = _wilson(0.0, n, z)[1]
    return value - unseen * (value - bounds[0]), value + unseen * (bounds[1] - value)


def _general(
    units: Units, confidence: float, seed: int, method: Method, resamples: int
) -> tuple[float, float, str]:
    """Intervals that need no bounds."""
    n, mean, error = len(units), units.mean, units.error
    if method == "t" or n < 8:  # of fewer units, too many resamples are all alike
        half = student(n - 1, confidence) * error
        return mean - half, mean + half, f"t over {units.over}"
    means, errors = _resampled(units, seed, resamples)
    tail = (1 - confidence) / 2
    if method == "bca":
        low, high = np.quantile(means, _bca_levels(units, means, tail))
        return float(low), float(high), f"BCa bootstrap over {units.over}"
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(errors > ROUNDING, (means - mean) / errors, np.sign(means - mean) * np.inf)
    # A resample that is all alike at exactly the mean says nothing, and 0 * inf is not a number.
    ratios = np.nan_to_num(ratios, nan=0.0, posinf=np.inf, neginf=-np.inf)
    # The k-th from either end, k = (resamples + 1) tail: of 1,000 resamples a quantile would leave out 2.6 % above.
    ordered = np.sort(ratios)
    k = max(1, int((len(ordered) + 1) * tail + 1e-9))
    lower, upper = ordered[k - 1], ordered[-k]
    return float(mean - upper * error), float(mean - lower * error), f"studentised bootstrap over {units.over}"


def _resampled(units: Units, seed: int, resamples: int) -> tuple[Floats, Floats]:
    """Mean and standard error of each resample of the units."""
    rng = np.random.default_rng(split_seed(seed, "bootstrap"))
    n = len(units)
    means, errors = [], []
    for rows in chunks(resamples, n):
        drawn = rng.integers(0, n, (rows, n))
        sums, sizes = units.sums[drawn], units.sizes[drawn]
        total = sizes.sum(axis=1)
        mean = sums.sum(axis=1) / total
        left = ((sums - mean[:, None] * sizes) ** 2).sum(axis=1)
        means.append(mean)
        errors.append(np.sqrt(n / (n - 1) * left) / total)
    return np.concatenate(means), np.concatenate(errors)


def _bca_levels(units: Units, means: Floats, tail: float) -> list[float]:
    """The quantiles to read, corrected for bias and for a spread that changes with the mean."""
    normal = NormalDist()
    below = ((means < units.mean).mean() + (means <= units.mean).mean()) / 2
    bias = normal.inv_cdf(min(max(float(below), 1 / len(means)), 1 - 1 / len(means)))
    without = (units.sums.sum() - units.sums) / (units.sizes.sum() - units.sizes)
    left = without.mean() - without
    skew = float((left**3).sum() / (6 * (left**2).sum() ** 1.5))
    levels = []
    for z in (normal.inv_cdf(tail), normal.inv_cdf(1 - tail)):
        levels.append(normal.cdf(bias + (bias + z) / (1 - skew * (bias + z))))
    return levels


def chunks(rows: int, columns: int) -> list[int]:
    """Rows to draw at a time, so that a draw takes a few megabytes."""
    size = max(1, 500_000 // max(1, columns))
    return [size] * (rows // size) + ([rows % size] if rows % size else [])


def z_of(confidence: float) -> float:
    """The normal quantile of a two-sided interval."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence}: it must lie between 0 and 1, such as 0.95.")
    return NormalDist().inv_cdf((1 + confidence) / 2)


@lru_cache(maxsize=1024)
def student(degrees: float, confidence: float) -> float:
    """Student's quantile of a two-sided interval."""
    from scipy.special import stdtrit  # scipy.stats has it too, and takes over a second to import

    z_of(confidence)
    quantile: Any = stdtrit(degrees, (1 + confidence) / 2)
    return float(quantile)
