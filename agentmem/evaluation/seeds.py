"""A method of learning over several learning seeds: what it brings on average, with an interval over seeds and tasks.

What is learned is itself a random draw. One memory that is tried a thousand times says how good that memory is, and
nothing of the method; its interval would be too short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np

from agentmem import format as fmt
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.comparison import Pairs, Verdict
from agentmem.evaluation.intervals import ROUNDING, Bounds, Interval, paired_interval, student, z_of
from agentmem.evaluation.report import EvaluationReport, clusters_of


class SeedComparison(fmt.Shown, Value):
    """What a way of learning changed, over learning seeds and tasks."""

    seeds: int
    tasks: int
    value: float
    """Mean difference, after minus before, errors counting as wrong."""
    interval: Interval
    """Over both, seeds and tasks: for another seed and other tasks of the kind."""
    differences: tuple[float, ...]
    """Of each learning seed, in the order given."""
    spread: float
    """Standard deviation of those."""
    before: float
    """Mean score before."""
    after: float

    @property
    def verdict(self) -> Verdict:
        """What the interval says."""
        return "better" if self.interval.low > 0 else "worse" if self.interval.high < 0 else "undecided"

    def table(self) -> fmt.Table:
        """The mean with its interval, and each seed."""
        limits = fmt.interval(self.interval.low, self.interval.high, signs=True)
        n = f"{fmt.count(self.seeds, 'seed')} x {fmt.count(self.tasks, 'task')}"
        rows = [
            ("before", fmt.number(self.before), "", ""),
            ("after", fmt.number(self.after), "", ""),
            ("difference", fmt.signed(self.value), limits, n),
        ]
        rows += [(f"  seed {i}", fmt.signed(d), "", "") for i, d in enumerate(self.differences, 1)]
        rows.append(("standard deviation over seeds", fmt.number(self.spread), "", ""))
        return fmt.Table(
            title=f"{self.verdict}: a way of learning over {fmt.count(self.seeds, 'seed')}",
            columns=(("", "left"), ("value", "right"), ("95 % interval", "left"), ("n", "right")),
            rows=tuple(rows),
            caption=f"interval: {self.interval.method}",
        )

    def to_json(self) -> str:
        """All numbers as JSON."""
        return self.model_dump_json(indent=1) + "\n"


def compare_seeds(
    before: EvaluationReport | Sequence[EvaluationReport],
    after: Sequence[EvaluationReport],
    *,
    confidence: float = 0.95,
) -> SeedComparison:
    """Compare a baseline with what several learning runs, one a seed, came to.

    Args:
        before: the baseline, one for all seeds or one for each.
        after: the evaluation of each seed's memory, on the same tasks.
        confidence: of the interval.

    Raises:
        InputError: fewer than two seeds, or arms that cannot be compared.
    """
    firsts = [before] * len(after) if isinstance(before, EvaluationReport) else list(before)
    if len(firsts) != len(after):
        raise InputError(
            f"{len(firsts)} baselines and {len(after)} learned arms: give one for all, or one for each."
        )
    pairs = [Pairs(one, two) for one, two in zip(firsts, after, strict=True)]
    shared = [task for task in pairs[0].strict if all(task in arms.strict for arms in pairs)] if pairs else []
    if pairs and not shared:
        raise InputError("The seeds share no task that can be scored; evaluate all of them on the same task set.")
    table = [[arms.strict[task][1] - arms.strict[task][0] for task in shared] for arms in pairs]
    limits = {arms.bounds for arms in pairs}
    bounds = limits.pop() if len(limits) == 1 else None
    reach = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    clusters = clusters_of(shared, {k: v for arms in pairs for k, v in arms.clusters.items()})
    interval = seed_interval(table, clusters, confidence=confidence, bounds=reach)
    differences = [fmean(row) for row in table]
    return SeedComparison(
        seeds=len(table),
        tasks=len(shared),
        value=fmean(differences),
        interval=interval,
        differences=tuple(differences),
        spread=stdev(differences),
        before=fmean(fmean(arms.strict[task][0] for task in shared) for arms in pairs),
        after=fmean(fmean(arms.strict[task][1] for task in shared) for arms in pairs),
    )


def seed_interval(
    table: Sequence[Sequence[float]],
    clusters: Sequence[object] | None = None,
    *,
    confidence: float = 0.95,
    bounds: Bounds | None = (-1.0, 1.0),
) -> Interval:
    """The interval of a mean over learning seeds and tasks, both of which are samples.

    The variance of the mean is that of a crossed design, (MS_seeds + MS_tasks - MS_rest)/(S T), never less than what
    either of them says alone; Student's t with Satterthwaite's degrees of freedom. With few seeds they decide, as they
    should: three seeds are three observations of the method.

    Args:
        table: a row for each seed, a column for each task.
        clusters: the cluster of each task.
        confidence: between 0 and 1.
        bounds: the least and the largest value possible; None where there are none.

    Raises:
        InputError: fewer than two seeds, or rows of different length.

    Example:
        >>> made = seed_interval([[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
        >>> made.n, round(made.low, 2), round(made.high, 2)
        (3, -0.22, 1.0)
    """
    z_of(confidence)
    if len(table) < 2:
        raise InputError(
            f"{len(table)} learning seed says nothing of the method; learn with two seeds at least (five are better)."
        )
    if len({len(row) for row in table}) != 1 or not table[0]:
        raise InputError("Each seed needs a value for each of the same tasks; some rows are longer than others.")
    data = np.array(table, dtype=np.float64)
    if clusters is not None:
        names = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
        sums = np.zeros((len(data), len(names)))
        for column, name in enumerate(clusters):
            sums[:, names[name]] += data[:, column]
        data = sums * len(names) / data.shape[1]  # so that the mean over clusters is that over tasks
    seeds, tasks = data.shape
    mean = float(data.mean())
    variance, degrees = _crossed(data)
    if variance < ROUNDING**2:
        return paired_interval(data.mean(axis=1).tolist(), confidence=confidence, bounds=bounds)
    half = student(degrees, confidence) * math.sqrt(variance)
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    over = "clusters" if clusters is not None else "tasks"
    method = f"t over {seeds} seeds x {tasks} {over}, {degrees:.1f} degrees of freedom"
    return Interval(low=low, high=high, confidence=confidence, method=method, n=seeds)


def _crossed(data: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """Variance of the mean of a table with two random margins, and its degrees of freedom."""
    seeds, tasks = data.shape
    mean, rows, columns = data.mean(), data.mean(axis=1), data.mean(axis=0)
    by_seed = tasks * float(((rows - mean) ** 2).sum()) / (seeds - 1)
    if tasks == 1:
        return by_seed / seeds, seeds - 1.0
    by_task = seeds * float(((columns - mean) ** 2).sum()) / (tasks - 1)
    rest = float(((data - rows[:, None] - columns[None, :] + mean) ** 2).sum()) / ((seeds - 1) * (tasks - 1))
    whole = by_seed + by_task - rest
    if whole <= max(by_seed, by_task):
        larger, degrees = (by_seed, seeds - 1.0) if by_seed >= by_task else (by_task, tasks - 1.0)
        return larger / (seeds * tasks), degrees
    weights = by_seed**2 / (seeds - 1) + by_task**2 / (tasks - 1) + rest**2 / ((seeds - 1) * (tasks - 1))
    return whole / (seeds * tasks), max(1.0, whole**2 / weights)
