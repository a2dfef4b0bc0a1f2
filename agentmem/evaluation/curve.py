"""The learning curve: the score against tasks, tokens or dollars, of one run or of several that learned alike."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from agentmem import format as fmt
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.answered import Answered, Course
from agentmem.evaluation.combined import weighted
from agentmem.evaluation.intervals import Interval, mean_interval
from agentmem.evaluation.report import bounds_of

Axis = Literal["tasks", "tokens", "dollars"]
WINDOWS = 8
"""Points of a curve, where nothing else is asked for."""


class Point(Value):
    """A stretch of the axis, and how good the answers in it were."""

    start: float
    end: float
    score: float | None
    """Mean over tasks; of several runs, the mean of theirs. None where nothing was answered in the stretch."""
    band: Interval
    """Of one run over its tasks; of several over the runs, which is what learning again would give."""
    tasks: int
    """Tasks answered in it, over all runs."""
    runs: int
    """Runs that answered something in it."""


class Curve(fmt.Shown, Value):
    """How the score went along an axis.

    Example:
        >>> course = Course("run", tuple(Answered(str(n), float(n > 4), 10 * n, None) for n in range(10)))
        >>> [point.score for point in curve([course], windows=2).points]
        [0.0, 1.0]
    """

    axis: Axis
    points: tuple[Point, ...]
    runs: tuple[str, ...]
    area: float | None
    """The mean score over the axis (the area under the curve, per unit of it); gaps are left out."""
    area_band: Interval
    gain: float | None
    """The last point's score minus the first's; None where one of them is not known."""
    uneven: bool = False
    """Whether some run went on beyond the end of the axis, which is the shortest run's."""

    def table(self) -> fmt.Table:
        """A row for each stretch, every score with its n and band."""
        rows = [
            (
                _stretch(self.axis, point),
                fmt.number(point.score),
                fmt.interval(point.band.low, point.band.high) if point.tasks else "",
                fmt.count(point.tasks),
                fmt.count(point.runs),
            )
            for point in self.points
        ]
        band = self.area_band
        rows.append(
            ("mean over the axis", fmt.number(self.area), fmt.interval(band.low, band.high), *self._counts)
        )
        unit = "runs" if len(self.runs) > 1 else "tasks"
        methods = sorted({point.band.method.replace("tasks", unit) for point in self.points if point.tasks})
        lines = [
            f"95 % bands over {unit}: {', '.join(methods)}; the score of a stretch is of the attempts made in it",
            f"last minus first: {fmt.signed(self.gain)}",
        ]
        if self.uneven:
            lines.append("The axis ends where the shortest run does; what longer ones did beyond it is left out.")
        return fmt.Table(
            title=f"score against {self.axis}: {fmt.some(self.runs, 4)}",
            columns=(
                (self.axis, "left"),
                ("score", "right"),
                ("95 % band", "left"),
                ("tasks", "right"),
                ("runs", "right"),
            ),
            rows=tuple(rows),
            caption="\n".join(lines),
        )

    @property
    def _counts(self) -> tuple[str, str]:
        return fmt.count(sum(point.tasks for point in self.points)), fmt.count(len(self.runs))

    def to_json(self) -> str:
        """The curve for a program."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False)


def curve(courses: Sequence[Course], *, axis: Axis = "tasks", windows: int = WINDOWS) -> Curve:
    """The curve of one run, or of several of the same learning (other seeds, other orders).

    The axis is cut into stretches of equal length, from 0 to where the shortest run ends.

    Args:
        courses: what the runs scored; see `Course.of`.
        axis: what was spent: tasks, tokens, or dollars.
        windows: stretches.

    Raises:
        InputError: there is no run, or what one cost in dollars is not known.
    """
    if not courses or windows < 1:
        raise InputError(f"{len(courses)} runs and {windows} windows make no curve; give at least one of each.")
    placed = [_placed(course, axis) for course in courses]
    ends = [places[-1][0] for places in placed]
    end = min(ends)
    if end <= 0:
        raise InputError(f"No {axis} were spent in a run, so nothing can be set against them; take tasks instead.")
    worlds = bounds_of(answer.score for places in placed for _, answer in places)
    cuts = [[_window(places, n, windows, end) for n in range(windows)] for places in placed]
    points = []
    for number in range(windows):
        answers = [window[number] for window in cuts]
        points.append(_point(answers, end * number / windows, end * (number + 1) / windows, worlds, len(courses)))
    areas = [fmean(known) for window in cuts if (known := [_mean(each) for each in window if each])]
    if len(courses) > 1:
        area_band = mean_interval(areas, bounds=worlds)
    else:
        answered = [point for point in points if point.score is not None]
        area_band = weighted([(1 / len(answered), point.score or 0.0, point.band) for point in answered])
    first, last = points[0].score, points[-1].score
    return Curve(
        axis=axis,
        points=tuple(points),
        runs=tuple(course.name for course in courses),
        area=fmean(areas),
        area_band=area_band,
        gain=last - first if first is not None and last is not None else None,
        uneven=max(ends) > end * (1 + 1e-9),
    )


def _placed(course: Course, axis: Axis) -> list[tuple[float, Answered]]:
    """Where on the axis each answer was complete."""
    match axis:
        case "tasks":
            return [(float(n), answer) for n, answer in enumerate(course.answered, start=1)]
        case "tokens":
            return [(float(answer.tokens), answer) for answer in course.answered]
        case "dollars":
            unpriced = next((answer for answer in course.answered if answer.dollars is None), None)
            if unpriced is not None:
                raise InputError(
                    f"What {course.name} cost is not known in dollars: some call had no price. Use --axis tokens, or "
                    "learn again with --prompt-price and --completion-price."
                )
            return [(answer.dollars or 0.0, answer) for answer in course.answered]


def _window(places: list[tuple[float, Answered]], number: int, windows: int, end: float) -> list[Answered]:
    """What was completed in a stretch, its end included and its start not."""
    return [
        answer
        for place, answer in places
        if place <= end * (1 + 1e-9)
        and min(max(math.ceil(place * windows / end - 1e-9) - 1, 0), windows - 1) == number
    ]


def _point(
    answers: list[list[Answered]], start: float, end: float, bounds: tuple[float, float] | None, runs: int
) -> Point:
    means = [_mean(each) for each in answers if each]
    tasks = sum(len(each) for each in answers)
    band = mean_interval(means, bounds=bounds) if runs > 1 else _over_tasks(answers[0], bounds)
    score = fmean(means) if means else None
    return Point(start=start, end=end, score=score, band=band, tasks=tasks, runs=len(means))


def _over_tasks(answers: list[Answered], bounds: tuple[float, float] | None) -> Interval:
    """A task that comes again is one cluster."""
    return mean_interval([a.score for a in answers], [a.task for a in answers] or None, bounds=bounds)


def _mean(answers: Sequence[Answered]) -> float:
    return fmean(answer.score for answer in answers)


def _stretch(axis: Axis, point: Point) -> str:
    match axis:
        case "tasks":  # the first and the last of it
            return f"{fmt.count(math.floor(point.start + 1e-9) + 1)} to {fmt.count(math.floor(point.end + 1e-9))}"
        case "tokens":
            return f"{fmt.count(round(point.start))} to {fmt.count(round(point.end))}"
        case "dollars":
            return f"{fmt.dollars(point.start)} to {fmt.dollars(point.end)}"
