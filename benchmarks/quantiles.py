"""The quantiles that measured times are given as."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50 and p99, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50_ms": round(cuts[49] * 1000, 2), "p99_ms": round(cuts[98] * 1000, 2)}
