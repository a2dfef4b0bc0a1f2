"""The interval of a mean or difference of independent estimates, from the interval of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentmem.errors import InputError
from agentmem.evaluation.intervals import Interval


def weighted(parts: Sequence[tuple[float, float, Interval]]) -> Interval:
    """The interval of a weighted sum of independent estimates (MOVER; Zou and Donner 2008, doi 10.1002/sim.3095).

    Each side's distance is the root of the sum of squares of the parts' distances on that side, so an interval that
    is not symmetric (Wilson's near 0 or 1) stays so. With one part of weight 1 it is that part's interval.

    Args:
        parts: weight, estimate and interval of each; all of one confidence.

    Raises:
        InputError: there is none, or they are of different confidences.

    Example:
        >>> same = Interval(low=0.4, high=0.6, confidence=0.95, method="t", n=30)
        >>> found = weighted([(0.5, 0.5, same), (0.5, 0.5, same)])
        >>> round(found.low, 4), round(found.high, 4)
        (0.4293, 0.5707)
    """
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][2]
    confidences = {interval.confidence for _, _, interval in parts}
    if len(confidences) != 1:
        raise InputError(f"{len(parts)} intervals of {len(confidences)} confidences cannot be combined; use one.")
    value = math.fsum(weight * estimate for weight, estimate, _ in parts)
    down = [_reach(weight, estimate, each.low if weight >= 0 else each.high) for weight, estimate, each in parts]
    up = [_reach(weight, estimate, each.high if weight >= 0 else each.low) for weight, estimate, each in parts]
    methods = sorted({interval.method for _, _, interval in parts})
    return Interval(
        low=value - math.hypot(*down),
        high=value + math.hypot(*up),
        confidence=confidences.pop(),
        method=f"MOVER of {len(parts)} ({', '.join(methods)})",
        n=min(interval.n for _, _, interval in parts),
    )


def _reach(weight: float, estimate: float, limit: float) -> float:
    return weight * (limit - estimate)
