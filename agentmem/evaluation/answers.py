"""Answers with their confidence: in bins, by level, and resampled by task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agentmem.domain.seed import split_seed
from agentmem.domain.value import Value
from agentmem.evaluation.intervals import Floats

RESAMPLES = 2_000


class Answer(NamedTuple):
    """One answer with its confidence."""

    task_id: str
    confidence: float
    right: bool


class Bin(Value):
    """Answers of about the same confidence: a point of the reliability diagram."""

    confidence: float
    """Their mean confidence."""
    right: float
    """The share of them that is right."""
    n: int


def risk_coverage(answers: Sequence[Answer]) -> tuple[tuple[float, float], ...]:
    """The share of wrong answers among those kept, for each number of them, the most confident being kept first.

    Of answers with equal confidence, which go first is open; the share is what is expected.

    Returns:
        (coverage, risk) for one answer kept, two, ..., all.

    Example:
        >>> risk_coverage([Answer("a", 0.9, True), Answer("b", 0.2, False)])
        ((0.5, 0.0), (1.0, 0.5))
    """
    points: list[tuple[float, float]] = []
    wrong = 0.0
    levels: dict[float, list[bool]] = {}
    for answer in answers:
        levels.setdefault(answer.confidence, []).append(answer.right)
    for level in sorted(levels, reverse=True):
        share = levels[level].count(False) / len(levels[level])
        for _ in levels[level]:
            wrong += share
            points.append(((len(points) + 1) / len(answers), wrong / (len(points) + 1)))
    return tuple(points)


class Answers:
    """Answers as arrays; tasks in the order of their names, so that the order given has no influence."""

    def __init__(self, answers: Sequence[Answer], bins: int) -> None:
        ordered = sorted(answers)
        self.confidence: Floats = np.array([a.confidence for a in ordered], dtype=np.float64)
        self.right: Floats = np.array([a.right for a in ordered], dtype=np.float64)
        names = sorted({a.task_id for a in ordered})
        place = {name: number for number, name in enumerate(names)}
        self.tasks = len(names)
        self._task = np.array([place[a.task_id] for a in ordered], dtype=np.intp)
        self.levels, self._level, counts = np.unique(self.confidence, return_inverse=True, return_counts=True)
        # By rank, with equal confidences at their middle rank: so they stay in one bin.
        middle = np.cumsum(counts) - counts / 2
        self._bin = np.minimum((bins * middle / len(ordered)).astype(np.intp), bins - 1)[self._level]
        self._bins = bins

    @property
    def ece(self) -> float:
        """The calibration error."""
        return float(np.abs(self._in_bins(self.confidence - self.right)).sum() / len(self.right))

    @property
    def auroc(self) -> float | None:
        """The area under the curve; None where all answers are alike."""
        right = np.bincount(self._level, weights=self.right, minlength=len(self.levels))[None, :]
        wrong = np.bincount(self._level, weights=1 - self.right, minlength=len(self.levels))[None, :]
        area = float(areas(right.astype(np.float64), wrong.astype(np.float64))[0])
        return None if np.isnan(area) else area

    def parts(self) -> tuple[float, float, float, float]:
        """What the Brier score is made of: reliability, resolution, uncertainty, and what is within the bins."""
        n, total = len(self.right), float(self.right.mean())
        size = np.maximum(self._in_bins(np.ones(n)), 1)
        mean_p, mean_y = self._in_bins(self.confidence) / size, self._in_bins(self.right) / size
        size = self._in_bins(np.ones(n))
        inside = self.confidence - mean_p[self._bin]
        return (
            float((size * (mean_p - mean_y) ** 2).sum() / n),
            float((size * (mean_y - total) ** 2).sum() / n),
            total * (1 - total),
            float((inside**2).mean() - 2 * (inside * (self.right - mean_y[self._bin])).mean()),
        )

    def bins(self) -> tuple[Bin, ...]:
        """The points of the reliability diagram."""
        n = self._in_bins(np.ones(len(self.right)))
        p, y = self._in_bins(self.confidence), self._in_bins(self.right)
        return tuple(Bin(confidence=p[b] / n[b], right=y[b] / n[b], n=int(n[b])) for b in np.flatnonzero(n))

    def ece_by_chance(self, seed: int, draws: int = 1_000) -> Floats:
        """Calibration errors of answers that are right as often as they say, those to one task together."""
        rng = np.random.default_rng(split_seed(seed, "by-chance"))
        happened = rng.random((draws, self.tasks))[:, self._task] < self.confidence
        gaps = np.zeros((draws, self._bins))
        for place in range(self._bins):
            inside = self._bin == place
            gaps[:, place] = (self.confidence[inside] - happened[:, inside]).sum(axis=1)
        errors: Floats = np.abs(gaps).sum(axis=1) / len(self.right)
        return errors

    def resampled(self, seed: int) -> tuple[Floats, Floats]:
        """Calibration error and area of resamples of the tasks."""
        rng = np.random.default_rng(split_seed(seed, "calibration"))
        weights = rng.multinomial(self.tasks, np.full(self.tasks, 1 / self.tasks), size=RESAMPLES).astype(
            np.float64
        )
        gaps = weights @ self._by_task(self._bin, self.confidence - self.right, self._bins)
        sizes = weights @ np.bincount(self._task, minlength=self.tasks).astype(np.float64)
        right = weights @ self._by_task(self._level, self.right, len(self.levels))
        wrong = weights @ self._by_task(self._level, 1 - self.right, len(self.levels))
        return np.abs(gaps).sum(axis=1) / sizes, areas(right, wrong)

    def _in_bins(self, values: Floats) -> Floats:
        return np.bincount(self._bin, weights=values, minlength=self._bins).astype(np.float64)

    def _by_task(self, column: Any, values: Floats, columns: int) -> Floats:
        table = np.zeros((self.tasks, columns))
        np.add.at(table, (self._task, column), values)
        return table


def areas(right: Floats, wrong: Floats) -> Floats:
    """AUROC of each row of counts, by level of confidence from the least on; not a number where one kind is missing."""
    below = np.cumsum(wrong, axis=1) - wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        pairs = right.sum(axis=1) * wrong.sum(axis=1)
        areas: Floats = (right * (below + wrong / 2)).sum(axis=1) / np.where(pairs > 0, pairs, np.nan)
    return areas
