"""Whether confidence is worth something: Brier score and its parts, calibration error, AUROC, risk and coverage.

Each answer brings a confidence between 0 and 1 and whether it was right. Intervals are bootstraps over tasks, because
the answers to one task are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentmem import format as fmt
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.answers import Answer, Answers, Bin, risk_coverage
from agentmem.evaluation.intervals import Floats, Interval, z_of

__all__ = ["Answer", "Bin", "Calibration", "calibration", "risk_coverage"]

BINS = 10


class Calibration(fmt.Shown, Value):
    """What confidences are worth.

    The parts of the Brier score add up to it: reliability - resolution + uncertainty + within.
    """

    n: int
    """Answers with a confidence."""
    tasks: int
    asked: int
    """Answers that were asked for one."""
    accuracy: float
    confidence: float
    """Mean confidence; above the accuracy it is overconfidence."""
    brier: float
    """Mean squared distance from what happened; 0 is perfect, .25 is what "50 %" always gets."""
    reliability: float
    """Mean squared distance of the bins' confidence from their share of right answers; 0 is perfect."""
    resolution: float
    """How far the bins' shares lie apart: what makes confidence useful. More is better."""
    uncertainty: float
    """How uncertain the answers are as such: accuracy times one minus it."""
    within: float
    """What confidences that differ inside a bin contribute (Stephenson and others, 2008)."""
    ece: float
    """Expected calibration error: mean distance of the bins' confidence from their share of right answers. It is
    above 0 by chance alone; see `ece_by_chance`."""
    ece_interval: Interval
    ece_by_chance: float
    """What the calibration error would be on average if every confidence were true."""
    auroc: float | None = None
    """The chance that a right answer has more confidence than a wrong one, ties counting half; None where all answers
    are right, or all wrong."""
    auroc_interval: Interval | None = None
    risk: float
    """Area under risk over coverage: the share of wrong answers among those kept, averaged over how many are kept, the
    least confident being dropped first."""
    bins: tuple[Bin, ...]
    """Of equally many answers each, by confidence; equal confidences stay together."""

    @property
    def missing(self) -> float:
        """The share of answers whose confidence could not be read."""
        return 1 - self.n / self.asked if self.asked else 0.0

    def table(self) -> fmt.Table:
        """The numbers, and the reliability diagram below them."""
        ece = self.ece_interval
        rows = [
            ("accuracy", fmt.number(self.accuracy), ""),
            ("mean confidence", fmt.number(self.confidence), ""),
            ("confidence missing", fmt.percent(self.missing), f"of {fmt.count(self.asked, 'answer')}"),
            ("Brier score", fmt.number(self.brier), self._parts()),
            ("calibration error", fmt.number(self.ece), fmt.interval(ece.low, ece.high) + self._chance()),
        ]
        if self.auroc is not None and (interval := self.auroc_interval) is not None:
            rows.append(("AUROC", fmt.number(self.auroc), fmt.interval(interval.low, interval.high)))
        rows.append(("risk over coverage", fmt.number(self.risk), "area; less is better"))
        rows += [
            (f"  confidence {fmt.number(b.confidence)}", fmt.number(b.right), fmt.count(b.n, "answer"))
            for b in self.bins
        ]
        return fmt.Table(
            title=f"Calibration of {fmt.count(self.n, 'answer')} to {fmt.count(self.tasks, 'task')}",
            columns=(("", "left"), ("value", "right"), ("", "left")),
            rows=tuple(rows),
            caption=f"95 % intervals: {ece.method}. Below: the share of right answers at each confidence.",
        )

    def to_json(self) -> str:
        """All numbers as JSON."""
        return self.model_dump_json(indent=1) + "\n"

    def _parts(self) -> str:
        return (
            f"reliability {fmt.number(self.reliability)} - resolution {fmt.number(self.resolution)} "
            f"+ uncertainty {fmt.number(self.uncertainty)} + within {fmt.number(self.within)}"
        )

    def _chance(self) -> str:
        return f"; {fmt.number(self.ece_by_chance)} by chance"


def calibration(
    answers: Sequence[Answer],
    *,
    asked: int | None = None,
    bins: int = BINS,
    confidence: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """What confidences are worth.

    Args:
        answers: those with a confidence.
        asked: answers that were asked for one; by default all that are given.
        bins: of equally many answers each.
        confidence: of the intervals.
        seed: of the bootstrap.

    Raises:
        InputError: there is no answer, or a confidence lies outside [0, 1].

    Example:
        >>> found = calibration([Answer(str(i), 0.75, i % 4 > 0) for i in range(40)])
        >>> found.ece, round(found.brier, 4), found.auroc
        (0.0, 0.1875, 0.5)
    """
    if not answers:
        raise InputError(
            "There is no answer with a confidence; ask for it (ask_confidence), or draw more samples."
        )
    asked = len(answers) if asked is None else asked
    if asked < len(answers):
        raise InputError(f"{len(answers)} answers have a confidence, and only {asked} were asked for one.")
    outside = next((a for a in answers if not 0 <= a.confidence <= 1), None)
    if outside is not None:
        raise InputError(
            f"Task {outside.task_id!r} has the confidence {outside.confidence}; it must lie between 0 and 1."
        )
    data = Answers(answers, bins)
    drawn = data.resampled(seed)
    by_chance = data.ece_by_chance(seed)
    area = data.auroc
    right, p, y = float(data.right.mean()), data.confidence, data.right
    reliability, resolution, uncertainty, within = data.parts()
    return Calibration(
        n=len(answers),
        tasks=data.tasks,
        asked=asked,
        accuracy=right,
        confidence=float(p.mean()),
        brier=float(((p - y) ** 2).mean()),
        reliability=reliability,
        resolution=resolution,
        uncertainty=uncertainty,
        within=within,
        ece=data.ece,
        ece_interval=_reflected(data.ece, drawn[0], by_chance, confidence, data.tasks),
        ece_by_chance=float(by_chance.mean()),
        auroc=area,
        auroc_interval=None if area is None else _percentiles(drawn[1], confidence, data.tasks),
        risk=float(np.mean([risk for _, risk in risk_coverage(answers)])),
        bins=data.bins(),
    )


def _reflected(value: float, drawn: Floats, by_chance: Floats, confidence: float, n: int) -> Interval:
    """The basic bootstrap: a calibration error is too large by chance, and its resamples once more.

    An error that may be chance alone has an interval that begins at 0.
    """
    z_of(confidence)
    chance = float(np.quantile(by_chance, (1 + confidence) / 2))
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    method = "basic bootstrap over tasks"
    return Interval(
        low=max(0.0, 2 * value - float(high)) if value > chance else 0.0,
        high=min(1.0, max(0.0, 2 * value - float(low))),
        confidence=confidence,
        method=method,
        n=n,
    )


def _percentiles(drawn: Floats, confidence: float, n: int) -> Interval:
    known = drawn[~np.isnan(drawn)]
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2]) if len(known) else (0.0, 1.0)
    return Interval(
        low=float(low), high=float(high), confidence=confidence, method="percentile bootstrap over tasks", n=n
    )
