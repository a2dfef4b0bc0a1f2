"""A report as a table: no score without its n and interval, every kind of error, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentmem import format as fmt

if TYPE_CHECKING:
    from agentmem.evaluation.intervals import Interval
    from agentmem.evaluation.report import EvaluationReport
    from agentmem.evaluation.spending import Spent

Row = tuple[str, str, str, str]


def report_table(report: EvaluationReport) -> fmt.Table:
    """The table of a report."""
    method = f"95 % intervals: {report.interval.method}"
    captions = (_stopped(report), _caption(report), _shared(report), _looks(report), method)
    return fmt.Table(
        title=f"{report.name}: {fmt.count(report.n, 'task')} of {report.tasks_name!r}"
        + (f", reward {report.reward}" if report.reward else "")
        + (" (partial)" if report.partial else ""),
        columns=(("", "left"), ("value", "right"), ("95 % interval", "left"), ("n", "right")),
        rows=(*_scores(report), *_failures(report), *_costs(report)),
        caption="\n".join(line for line in captions if line),
    )


def _scores(report: EvaluationReport) -> Iterator[Row]:
    yield _score(f"score (Mean@{_samples(report)})", report.score, report.interval, report.n)
    if report.errors:
        done = len(report.task_scores(completed=True))
        yield _score("  completed only", report.completed_score, report.completed_interval, done)
    if report.k > 1 and report.binary:
        for name, every in ((f"pass@{report.k}", False), (f"pass^{report.k}", True)):
            value = report.pass_hat(report.k) if every else report.pass_at(report.k)
            if value is not None:
                interval = report.pass_hat_interval(report.k) if every else report.pass_at_interval(report.k)
                yield _score(name, value, interval, report.n)
    if report.contamination is not None and report.contamination.overlaps:
        for name, part in report.clean_and_dirty().items():
            yield _score(f"  {name} tasks", part.score, part.interval, part.n)
    yield from _confidence(report)


def _confidence(report: EvaluationReport) -> Iterator[Row]:
    """What the agent's own confidence is worth, where it was asked."""
    if not any(outcome.confidence is not None and outcome.completed for outcome in report.outcomes):
        return
    from agentmem.evaluation.confidence import stated

    found = stated(report)
    ece, area = found.ece_interval, found.auroc_interval
    said = f"{fmt.percent(found.missing)} missing"
    yield "mean confidence", fmt.number(found.confidence), said, fmt.count(found.n, "answer")
    yield (
        "calibration error",
        fmt.number(found.ece),
        fmt.interval(ece.low, ece.high),
        fmt.count(found.tasks, "task"),
    )
    if area is not None:
        limits = fmt.interval(area.low, area.high)
        yield "AUROC of confidence", fmt.number(found.auroc), limits, fmt.count(found.tasks, "task")


def _failures(report: EvaluationReport) -> Iterator[Row]:
    total = fmt.count(len(report.outcomes), "attempt")
    if report.errors:
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in report.errors.items())
        yield "errors (counted as wrong)", fmt.count(sum(report.errors.values())), kinds, f"of {total}"
    if report.unverifiable:
        yield "unverifiable", fmt.count(report.unverifiable), "in no score", f"of {total}"
    if limited := sum(outcome.status == "limit" for outcome in report.outcomes):
        yield "stopped by a limit", fmt.count(limited), "scored as they stood", f"of {total}"


def _costs(report: EvaluationReport) -> Iterator[Row]:
    spent = (
        fmt.count(report.usage.tokens, "token"),
        fmt.count(report.usage.calls, "call"),
        fmt.seconds(report.seconds),
    )
    yield "cost", fmt.dollars(report.cost), ", ".join(spent), ""
    failed = sum(one.failed for one in report.spending)
    if len(report.spending) > 1 or failed:
        for one in report.spending:
            said = [fmt.count(one.tokens, "token"), fmt.count(one.calls, "call")]
            if one.failed:
                said.append(_failed(one))
            yield f"  {one.purpose}", fmt.dollars(one.dollars), ", ".join(said), ""
    if len(report.outcomes) > 1 and (latency := report.latency()):
        half, *slow = latency.items()
        tails = ", ".join(f"p{100 * level:g} {fmt.seconds(value)}" for level, value in slow)
        yield "time of an attempt, p50", fmt.seconds(half[1]), tails, ""


def _failed(one: Spent) -> str:
    """How many calls failed, and what is known of their cost."""
    said = f"{fmt.count(one.failed)} failed"
    if one.failed_tokens:
        return f"{said} (at most {fmt.count(one.failed_tokens, 'token')})"
    return f"{said} ({fmt.count(one.unknown)} of unknown cost)" if one.unknown else said


def _score(name: str, value: float | None, interval: Interval, n: int) -> Row:
    return name, fmt.number(value), fmt.interval(interval.low, interval.high), fmt.count(n, "task")


def _samples(report: EvaluationReport) -> str:
    least, most = report.attempts
    return str(most) if least == most else f"{least}–{most}"


def _stopped(report: EvaluationReport) -> str:
    if not report.partial:
        return ""
    made = f"{fmt.count(len(report.outcomes))} of {fmt.count(report.planned, 'attempt')}"
    return f"Partial ({report.stopped}): {made} are in it. The same command goes on."


def _shared(report: EvaluationReport) -> str:
    found = report.contamination
    return f"contamination: {found}" if found is not None and found.overlaps else ""


def _looks(report: EvaluationReport) -> str:
    if report.looks is None or report.looks < 2:
        return ""
    return f"look {report.looks:,} at this test split (looks.jsonl beside the run): what is chosen by it is tuned on it"


def _caption(report: EvaluationReport) -> str:
    temperature = report.settings.get("temperature")
    parts = [
        report.agent and f"agent {report.agent}",
        report.model and f"model {report.model}",
        "" if temperature is None else f"temperature {temperature}",
        "" if report.library_version is None else f"library version {report.library_version}",
        report.prior_hash and f"memory {report.prior_hash}",
        f"a failed attempt counts as {fmt.number(report.worst)}" if report.errors and report.worst else "",
    ]
    return ", ".join(part for part in parts if part)
