"""A report's numbers for a program: what its outcomes come to, and how far they can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentmem.evaluation.intervals import Interval
    from agentmem.evaluation.report import EvaluationReport


def summary(report: EvaluationReport) -> dict[str, Any]:
    """The numbers of a report; null where one is not defined."""
    found: dict[str, Any] = {
        "complete": not report.partial,
        "stopped": report.stopped or None,
        "attempts": len(report.outcomes),
        "planned": report.planned or None,
        "n": report.n,
        "k": report.k,
        "score": report.score,
        "interval": _limits(report.interval),
        "completed_score": report.completed_score,
        "completed_interval": _limits(report.completed_interval),
        "errors": report.errors,
        "unverifiable": report.unverifiable,
        "calls": report.usage.calls,
        "tokens": report.usage.tokens,
        "dollars": report.cost,
        "latency": {f"p{100 * level:g}": seconds for level, seconds in report.latency().items()},
    }
    if report.k > 1 and report.binary:
        found |= {"pass_at_k": report.pass_at(report.k), "pass_hat_k": report.pass_hat(report.k)}
    if report.contamination is not None:
        parts = report.clean_and_dirty()
        found |= {name: {"n": part.n, "score": part.score} for name, part in parts.items()}
    return found


def _limits(interval: Interval) -> list[float | None]:
    """JSON has no infinity: an open end is null."""
    return [None if abs(limit) == float("inf") else limit for limit in (interval.low, interval.high)]
