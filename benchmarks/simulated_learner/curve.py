"""What a system's prompt was worth after each change, and what had been spent by then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.simulated_learner.server import Tally
from benchmarks.simulated_learner.world import World, harmful_lessons, true_lessons

TARGET = 0.9
"""The share of the best possible score that is to be reached."""


@dataclass(frozen=True)
class Point:
    """The true score of a prompt at the moment when it became the system's current one."""

    calls: int
    tokens: int
    score: float


@dataclass
class Curve:
    """One run of one system. The true score is computed, not sampled, so looking at it costs no calls."""

    world: World
    tally: Tally
    points: list[Point] = field(default_factory=list)
    prompt: str | None = None
    first_proposed: Point | None = None
    """When any candidate first reached the target, whether or not the system knew."""

    def now(self, prompt: str) -> None:
        """This is the current prompt."""
        self.proposed(prompt)
        if prompt != self.prompt:
            self.prompt = prompt
            self.points.append(self._point(prompt))

    def proposed(self, prompt: str) -> None:
        """A candidate that is not the current prompt (yet)."""
        point = self._point(prompt)
        if self.first_proposed is None and self._reaches(point):
            self.first_proposed = point

    @property
    def reached(self) -> Point | None:
        """The first point at the target."""
        return next((point for point in self.points if self._reaches(point)), None)

    def figures(self) -> dict[str, Any]:
        """The run as figures."""
        reached, proposed, prompt = self.reached, self.first_proposed, self.prompt or ""
        return {
            "calls_to_target": reached and reached.calls,
            "tokens_to_target": reached and reached.tokens,
            "calls_to_any_candidate": proposed and proposed.calls,
            "best_score": max((point.score for point in self.points), default=0.0),
            "final_score": self.world.score(prompt),
            "true_lessons": true_lessons(prompt),
            "harmful_lessons": harmful_lessons(prompt),
            "calls": self.tally.calls,
            "tokens": self.tally.tokens,
            "by_role": {role: vars(cost) for role, cost in sorted(self.tally.by_role.items())},
            "curve": [[point.calls, point.tokens, round(point.score, 4)] for point in self.points],
        }

    def _point(self, prompt: str) -> Point:
        return Point(self.tally.calls, self.tally.tokens, self.world.score(prompt))

    def _reaches(self, point: Point) -> bool:
        return point.score >= TARGET * self.world.best - 1e-9


def quartiles(values: Sequence[float | None]) -> dict[str, float | None]:
    """Lower quartile, median and upper quartile; None stands for "never", which is larger than any number.

    Example:
        >>> quartiles([1, 2, None])
        {'q1': 1.5, 'median': 2.0, 'q3': None}
    """
    ordered = sorted(math.inf if value is None else float(value) for value in values)
    return {name: _quantile(ordered, q) for name, q in (("q1", 0.25), ("median", 0.5), ("q3", 0.75))}


def _quantile(ordered: Sequence[float], q: float) -> float | None:
    """By linear interpolation; where that would reach into "never", it is never."""
    if not ordered:
        return None
    place = q * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    value = low if low == high else low + (high - low) * (place % 1)
    return None if math.isinf(value) else round(value, 3)
