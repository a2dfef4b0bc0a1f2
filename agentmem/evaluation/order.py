"""Does it matter in which order a learner met its tasks? The spread of the score over orders, with its interval."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Literal

import numpy as np

from agentmem import format as fmt
from agentmem.domain.seed import split_seed
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.intervals import ROUNDING, Floats, Interval, chunks
from agentmem.evaluation.report import EvaluationReport

DRAWS = 2_000
"""Permutations, where there are too many to try all."""


class Order(Value):
    """What came of one order."""

    name: str
    score: float
    """Mean over the evaluations of what was learned in this order."""
    interval: Interval
    """Of the one evaluation; of several, of the first."""
    runs: int


class OrderSensitivity(fmt.Shown, Value):
    """How much the order mattered.

    With several learnings of each order, what differs between orders is held against what differs between learnings
    of the same order. With one learning of each, it is held against the chance of the tasks alone: then a spread says
    that the libraries differ, and whether order or chance made them so is not known.
    """

    orders: tuple[Order, ...]
    over: Literal["learnings", "tasks"]
    """What the spread is held against."""
    spread: float
    """Standard deviation of the score over orders, beyond what chance alone would give; 0 where there is no more."""
    interval: Interval
    """The 95 % interval of `spread` (Williams and Tukey, from the F distribution)."""
    range: float
    """The best order's score minus the worst's, chance included."""
    p: float
    """Of no effect of the order, by permutation; never too small."""
    n: int
    """Tasks."""

    @property
    def found(self) -> bool:
        """Whether an effect is shown at 5 %."""
        return self.p <= 0.05

    def table(self) -> fmt.Table:
        """A row for each order, and the spread."""
        rows = [
            (
                each.name,
                fmt.number(each.score),
                fmt.interval(each.interval.low, each.interval.high),
                str(each.runs),
            )
            for each in self.orders
        ]
        low, high = self.interval.low, self.interval.high
        rows.append(("spread over orders (SD)", fmt.number(self.spread), fmt.interval(low, high), ""))
        rows.append(("best minus worst", fmt.number(self.range), "", ""))
        verdict = "the order matters" if self.found else "no effect of the order is shown"
        lines = [f"{verdict}: {fmt.p_value(self.p)} (permutation); spread: {self.interval.method}"]
        if self.over == "tasks":
            lines.append(
                "Each order was learned once, so the spread holds the chance of learning too: learn each order again "
                "with another seed to tell them apart."
            )
        return fmt.Table(
            title=f"{fmt.count(len(self.orders), 'order')} of the same learning on {fmt.count(self.n, 'task')}",
            columns=(("order", "left"), ("score", "right"), ("95 % interval", "left"), ("learnings", "right")),
            rows=tuple(rows),
            caption="\n".join(lines),
        )

    def to_json(self) -> str:
        """The result for a program, its verdict first."""
        return json.dumps({"found": self.found, **self.model_dump(mode="json")}, ensure_ascii=False)


def order_sensitivity(
    orders: Mapping[str, Sequence[EvaluationReport]], *, confidence: float = 0.95, seed: int = 0
) -> OrderSensitivity:
    """Compare the evaluations of what was learned in several orders.

    Args:
        orders: by the name of the order, an evaluation of each library that was learned in it; all on the same tasks.
        confidence: of the interval.
        seed: of the permutations.

    Raises:
        InputError: there are fewer than two orders, one has no evaluation, or the tasks differ.
    """
    if len(orders) < 2 or any(not reports for reports in orders.values()):
        raise InputError(f"{len(orders)} orders cannot be compared; give an evaluation for each of two or more.")
    tasks, scores = _scores(orders)
    sizes = [len(reports) for reports in orders.values()]
    repeated = max(sizes) > 1
    if repeated:
        means = scores.mean(axis=1)  # of each learning
        p = _permuted_learnings(means, sizes, seed)
        spread, interval = _components(means, sizes, confidence)
    else:
        p = _permuted_tasks(scores, seed)
        spread, interval = _two_way(scores, confidence)
    shown = [
        Order(
            name=name,
            score=fmean(report.score or 0.0 for report in reports),
            interval=reports[0].interval,
            runs=len(reports),
        )
        for name, reports in orders.items()
    ]
    known = [order.score for order in shown]
    return OrderSensitivity(
        orders=tuple(shown),
        over="learnings" if repeated else "tasks",
        spread=spread,
        interval=interval,
        range=max(known) - min(known),
        p=p,
        n=len(tasks),
    )


def _scores(orders: Mapping[str, Sequence[EvaluationReport]]) -> tuple[list[str], Floats]:
    """The tasks, and a row of scores for each evaluation, order by order."""
    reports = [report for each in orders.values() for report in each]
    known = [report.task_scores() for report in reports]
    for report, scores in zip(reports, known, strict=True):
        if scores.keys() != known[0].keys() or report.reward != reports[0].reward:
            raise InputError(
                f"{reports[0].name!r} and {report.name!r} are on different tasks, or have different rewards; evaluate "
                "what was learned in each order on the same task set with the same reward."
            )
    tasks = sorted(known[0])
    if not tasks:
        raise InputError(f"{reports[0].name!r} has no task that can be scored; evaluate on at least one.")
    return tasks, np.array([[scores[task] for task in tasks] for scores in known])


def _permuted_tasks(scores: Floats, seed: int) -> float:
    """Without an effect the orders are exchangeable within each task."""
    rng = np.random.default_rng(split_seed(seed, "order", "tasks"))
    observed = float(scores.mean(axis=1).var())
    hits = 1
    for draws in chunks(DRAWS, scores.size):
        shuffled = rng.permuted(np.broadcast_to(scores, (draws, *scores.shape)), axis=1)
        hits += int((shuffled.mean(axis=2).var(axis=1) >= observed - ROUNDING).sum())
    return hits / (DRAWS + 1)


def _permuted_learnings(means: Floats, sizes: list[int], seed: int) -> float:
    """Without an effect the learnings are exchangeable between orders."""
    observed = float(_between(means[None], sizes)[0])
    every = _assignments(len(means), sizes)
    if every is not None:
        return float((_between(means[np.array(every)], sizes) >= observed - ROUNDING).mean())
    rng = np.random.default_rng(split_seed(seed, "order", "learnings"))
    shuffled = rng.permuted(np.broadcast_to(means, (DRAWS, len(means))), axis=1)
    return (1 + int((_between(shuffled, sizes) >= observed - ROUNDING).sum())) / (DRAWS + 1)


def _assignments(n: int, sizes: list[int]) -> list[tuple[int, ...]] | None:
    """All ways to give the learnings to the orders; None where they are too many."""
    if math.factorial(n) / math.prod(math.factorial(size) for size in sizes) > DRAWS:
        return None
    ways: list[tuple[int, ...]] = [()]
    for size in sizes:
        ways = [(*way, *more) for way in ways for more in combinations(sorted(set(range(n)) - set(way)), size)]
    return ways


def _between(means: Floats, sizes: list[int]) -> Floats:
    """The sum of squares between orders, of each row of learnings."""
    parts = np.add.reduceat(means, np.cumsum([0, *sizes[:-1]]), axis=1) / np.array(sizes)
    squares: Floats = ((parts - means.mean(axis=1, keepdims=True)) ** 2) @ np.array(sizes, dtype=np.float64)
    return squares


def _components(means: Floats, sizes: list[int], confidence: float) -> tuple[float, Interval]:
    """One-way: learnings within orders."""
    parts = np.split(means, np.cumsum(sizes)[:-1])
    within = float(sum(((part - part.mean()) ** 2).sum() for part in parts))
    orders, n = len(sizes), len(means)
    each = (n - sum(size**2 for size in sizes) / n) / (orders - 1)  # learnings of an order, where they differ
    between = float(_between(means[None], sizes)[0])
    return _spread(between, within, orders - 1, n - orders, each, confidence)


def _two_way(scores: Floats, confidence: float) -> tuple[float, Interval]:
    """Orders by tasks, one score each."""
    orders, tasks = scores.shape
    between = tasks * float(((scores.mean(axis=1) - scores.mean()) ** 2).sum())
    left = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    freedom = (orders - 1) * (tasks - 1)
    return _spread(between, float((left**2).sum()), orders - 1, freedom, tasks, confidence)


def _spread(
    between: float, within: float, upper: int, lower: int, each: float, confidence: float
) -> tuple[float, Interval]:
    """The standard deviation of the effects, from the sums of squares, with the interval of Williams and Tukey."""
    from scipy.special import chdtri, fdtri  # scipy.stats has them too, and takes over a second to import

    def interval(low: float, high: float, method: str) -> Interval:
        return Interval(low=low, high=high, confidence=confidence, method=method, n=upper + 1)

    if lower < 1:
        return 0.0, interval(0.0, math.inf, "nothing to hold it against")
    noise = within / lower
    spread = math.sqrt(max(0.0, between / upper - noise) / each)
    if between <= ROUNDING:
        return 0.0, interval(0.0, math.sqrt(noise / each), "all orders alike")
    tail = (1 - confidence) / 2
    ratio = math.inf if noise <= ROUNDING else (between / upper) / noise
    least, most = (
        between / (each * float(chdtri(upper, share))) * (1 - float(fdtri(upper, lower, 1 - share)) / ratio)
        for share in (tail, 1 - tail)
    )
    low, high = (math.sqrt(max(0.0, value)) for value in (least, most))
    return spread, interval(low, high, "Williams and Tukey")
