"""Two agents on the same tasks: the paired difference with its interval, and every task that it fixed or broke."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from agentmem import format as fmt
from agentmem.domain.usage import Usage
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.intervals import Bounds, Interval, mean_interval, paired_interval
from agentmem.evaluation.report import EvaluationReport, bounds_of, clusters_of
from agentmem.evaluation.statistics import Test, mcnemar, sign_flip

SHOWN = 10
"""Tasks named in each direction; the rest are counted."""
Verdict = Literal["better", "worse", "undecided"]


class Arm(Value):
    """One side of a comparison, over the tasks of both."""

    name: str
    score: float
    interval: Interval
    samples: int
    """Attempts per task."""
    errors: dict[str, int]
    """Attempts that ended in an error, by kind."""
    usage: Usage
    """All that the whole evaluation cost."""
    seconds: float


class Flip(Value):
    """A task on which the arms differ."""

    task_id: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """After minus before."""
        return self.after - self.before


class Difference(Value):
    """A mean paired difference, after minus before, over the same tasks."""

    n: int
    """Tasks."""
    before: float
    after: float
    before_interval: Interval
    after_interval: Interval
    value: float
    interval: Interval
    test: Test


class Comparison(fmt.Shown, Value):
    """What changed from one agent to another on the same tasks.

    Example:
        >>> from agentmem.evaluation.report import Outcome
        >>> def report(*scores):
        ...     outcomes = (Outcome(task_id=str(i), score=score) for i, score in enumerate(scores))
        ...     return EvaluationReport(outcomes=tuple(outcomes))
        >>> found = compare(report(0, 0, 0, 1), report(1, 1, 0, 0))
        >>> found.difference, [flip.task_id for flip in found.fixed], [flip.task_id for flip in found.broken]
        (0.25, ['0', '1'], ['3'])
    """

    before: Arm
    after: Arm
    tasks_name: str
    reward: str
    strict: Difference
    """Failed attempts count as wrong in both arms."""
    completed: Difference | None = None
    """Over the attempts that were made and judged, on tasks where both arms have one; None where nothing
    failed, or no such task is left."""
    fixed: tuple[Flip, ...] = ()
    """Tasks that the second arm does better, largest change first. With one 0/1 attempt: that it alone solves."""
    broken: tuple[Flip, ...] = ()
    """Tasks that it does worse, in the same way."""
    single: bool = False
    """Whether each task has one 0/1 attempt in each arm."""
    unpaired: tuple[str, ...] = ()
    """Tasks that cannot be verified in one of the arms; they are left out of both."""

    @property
    def difference(self) -> float:
        """After minus before, errors counting as wrong."""
        return self.strict.value

    @property
    def interval(self) -> Interval:
        """The interval of `difference`."""
        return self.strict.interval

    @property
    def test(self) -> Test:
        """The test of no difference."""
        return self.strict.test

    @property
    def n(self) -> int:
        """Tasks that both arms tried."""
        return self.strict.n

    @property
    def worse(self) -> bool:
        """Whether the second arm is shown to be worse: the whole interval lies below 0."""
        return self.interval.high < 0

    @property
    def better(self) -> bool:
        """Whether the second arm is shown to be better: the whole interval lies above 0."""
        return self.interval.low > 0

    @property
    def verdict(self) -> Verdict:
        """What the interval of the difference says."""
        return "better" if self.better else "worse" if self.worse else "undecided"

    def table(self) -> fmt.Table:
        """Both arms, their difference, what it cost, and the tasks that changed sides."""
        before, after, strict = self.before, self.after, self.strict
        level = f"  {100 * self.interval.confidence:g} % interval"
        rows = [
            (f"score (Mean@{_samples(before, after)}), n = {self.n:,}", *_numbers(strict)),
            (level, *_all_limits(strict)),
        ]
        if (done := self.completed) is not None:
            rows.append((f"completed only, n = {done.n:,}", *_numbers(done)))
            rows.append((level, *_all_limits(done)))
        if before.errors or after.errors:
            rows.append(("errors (counted as wrong)", _total(before.errors), _total(after.errors), ""))
        words = ("fixed", "broken") if self.single else ("improved", "worsened")
        rows.append((f"tasks {words[0]}", "", "", fmt.count(len(self.fixed))))
        rows.append((f"tasks {words[1]}", "", "", fmt.count(len(self.broken))))
        rows.append(("cost", fmt.dollars(before.usage.dollars), fmt.dollars(after.usage.dollars), ""))
        rows.append(("tokens", fmt.count(before.usage.tokens), fmt.count(after.usage.tokens), ""))
        rows.append(("time", fmt.seconds(before.seconds), fmt.seconds(after.seconds), ""))
        lines = [
            f"{self.verdict}: {fmt.p_value(self.test.p)}, mid-p {fmt.probability(self.test.mid_p)} "
            f"({self.test.method}); interval of the difference: {self.interval.method}",
            _named(words[0], self.fixed, changes=not self.single),
            _named(words[1], self.broken, changes=not self.single),
        ]
        lines += [f"errors of {arm.name}: {_kinds(arm.errors)}" for arm in (before, after) if arm.errors]
        if self.unpaired:
            lines.append(
                f"left out, as nothing can verify them in one arm ({len(self.unpaired):,}): "
                f"{fmt.some(self.unpaired, SHOWN)}"
            )
        return fmt.Table(
            title=f"{before.name} → {after.name}: {fmt.count(self.n, 'task')} of {self.tasks_name!r}"
            + (f", reward {self.reward}" if self.reward else ""),
            columns=(("", "left"), (before.name, "right"), (after.name, "right"), ("difference", "right")),
            rows=tuple(rows),
            caption="\n".join(lines),
        )

    def to_json(self) -> str:
        """The comparison for a program, its verdict first."""
        said = {"verdict": self.verdict, "n": self.n, "difference": self.difference, "p": self.test.p}
        return json.dumps({**said, **self.model_dump(mode="json")}, ensure_ascii=False, indent=1)


def compare(before: EvaluationReport, after: EvaluationReport, *, confidence: float = 0.95) -> Comparison:
    """Compare two agents task by task.

    Args:
        before: the first arm.
        after: the second arm, on the same tasks with the same reward.
        confidence: of all intervals.

    Raises:
        InputError: the arms are on different tasks, have different rewards, or share no task that can be verified.
    """
    pairs = Pairs(before, after)
    strict = pairs.difference(confidence, completed=False)
    if strict is None:
        raise InputError(
            f"{before.name!r} and {after.name!r} share no task that can be scored; evaluate both on at least one."
        )
    names = (before.name, after.name) if before.name != after.name else ("before", "after")
    fixed, broken = pairs.flips()
    return Comparison(
        before=_arm(before, names[0], strict.before, strict.before_interval),
        after=_arm(after, names[1], strict.after, strict.after_interval),
        tasks_name=before.tasks_name,
        reward=before.reward,
        strict=strict,
        completed=pairs.difference(confidence, completed=True) if before.errors or after.errors else None,
        fixed=fixed,
        broken=broken,
        single=pairs.single,
        unpaired=pairs.unpaired,
    )


class Pairs:
    """Two reports, task by task."""

    def __init__(self, before: EvaluationReport, after: EvaluationReport) -> None:
        _check_comparable(before, after)
        self.worst = min(before.worst, after.worst)
        self.strict = self._paired(before, after, completed=False)
        self.completed = self._paired(before, after, completed=True)
        everything = dict.fromkeys(outcome.task_id for outcome in (*before.outcomes, *after.outcomes))
        self.unpaired = tuple(task for task in everything if task not in self.strict)
        self.clusters = before.clusters | after.clusters
        failed = {self.worst} if before.errors or after.errors else set()
        scores = {o.score for o in (*before.outcomes, *after.outcomes) if o.completed and o.score is not None}
        self.bounds = bounds_of(scores | failed)
        self.single = before.k == after.k == 1 and scores | failed <= {0.0, 1.0}
        """Whether each task has one 0/1 result in each arm."""

    def difference(self, confidence: float, *, completed: bool) -> Difference | None:
        """The mean paired difference; None where no task was completed, or scored, on both sides."""
        pairs = self.completed if completed else self.strict
        if not pairs:
            return None
        clusters = clusters_of(pairs, self.clusters)
        return difference_of(list(pairs.values()), clusters, self.bounds, confidence, single=self.single)

    def flips(self) -> tuple[tuple[Flip, ...], tuple[Flip, ...]]:
        """The tasks that got better and those that got worse, largest change first."""
        flips = [Flip(task_id=task, before=b, after=a) for task, (b, a) in self.strict.items() if a != b]
        flips.sort(key=lambda flip: -abs(flip.change))  # a stable sort: equal changes stay in the order of tasks
        return tuple(f for f in flips if f.change > 0), tuple(f for f in flips if f.change < 0)

    def _paired(
        self, before: EvaluationReport, after: EvaluationReport, *, completed: bool
    ) -> dict[str, tuple[float, float]]:
        first = before.task_scores(completed=completed, worst=self.worst)
        second = after.task_scores(completed=completed, worst=self.worst)
        return {task: (first[task], second[task]) for task in first if task in second}


def _check_comparable(before: EvaluationReport, after: EvaluationReport) -> None:
    arms = f"{before.name!r} and {after.name!r}"
    for report in (before, after):
        if report.partial:
            made = f"{len(report.outcomes):,} of {report.planned:,} attempts"
            raise InputError(
                f"{report.name!r} is partial ({report.stopped}: {made}); finish it by starting its command again, then "
                "compare."
            )
    if before.reward != after.reward:
        raise InputError(
            f"{arms} were judged by different rewards, {before.reward!r} and {after.reward!r}; use one for both."
        )
    ids = [list(dict.fromkeys(outcome.task_id for outcome in report.outcomes)) for report in (before, after)]
    only = [[id for id in ids[i] if id not in set(ids[1 - i])] for i in (0, 1)]
    if only[0] or only[1]:
        named = zip((before, after), only, strict=True)
        parts = [f"only {arm.name!r} has {fmt.some(missing, SHOWN)}" for arm, missing in named if missing]
        raise InputError(f"{arms} are on different tasks: {'; '.join(parts)}. Evaluate both on the same task set.")
    prints = {before.tasks_fingerprint, after.tasks_fingerprint} - {""}
    # The fingerprint depends on the order too: it tells of changed content only where the order is the same.
    if len(prints) == 2 and ids[0] == ids[1]:
        raise InputError(
            f"{arms} are on tasks with the same ids and different content "
            f"({before.tasks_fingerprint} and {after.tasks_fingerprint}); evaluate both on the same task set."
        )


def difference_of(
    pairs: Sequence[tuple[float, float]],
    clusters: list[tuple[str, str]] | None,
    bounds: Bounds | None,
    confidence: float,
    *,
    single: bool,
) -> Difference:
    """The mean paired difference of (before, after) pairs, with its interval and its test."""
    changes = [after - before for before, after in pairs]
    reach = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    if single and clusters is None:
        test = mcnemar(sum(change > 0 for change in changes), sum(change < 0 for change in changes))
    else:
        test = sign_flip(changes, clusters)
    arms = tuple(zip(*pairs, strict=True))
    intervals = [mean_interval(arm, clusters, confidence=confidence, bounds=bounds) for arm in arms]
    return Difference(
        n=len(pairs),
        before=fmean(sorted(arms[0])),
        after=fmean(sorted(arms[1])),
        before_interval=intervals[0],
        after_interval=intervals[1],
        value=fmean(sorted(changes)),
        interval=paired_interval(changes, clusters, confidence=confidence, bounds=reach),
        test=test,
    )


def _arm(report: EvaluationReport, name: str, score: float, interval: Interval) -> Arm:
    return Arm(
        name=name,
        score=score,
        interval=interval,
        samples=report.k,
        errors=report.errors,
        usage=report.usage,
        seconds=report.seconds,
    )


def _numbers(found: Difference) -> tuple[str, str, str]:
    return fmt.number(found.before), fmt.number(found.after), fmt.signed(found.value)


def _all_limits(found: Difference) -> tuple[str, str, str]:
    return (
        _limits(found.before_interval),
        _limits(found.after_interval),
        _limits(found.interval, signs=True),
    )


def _limits(interval: Interval, *, signs: bool = False) -> str:
    return fmt.interval(interval.low, interval.high, signs=signs)


def _samples(before: Arm, after: Arm) -> str:
    return str(before.samples) if before.samples == after.samples else f"{before.samples} and {after.samples}"


def _total(errors: dict[str, int]) -> str:
    return fmt.count(sum(errors.values()))


def _kinds(errors: dict[str, int]) -> str:
    return ", ".join(f"{kind} {n:,}" for kind, n in errors.items())


def _named(what: str, flips: tuple[Flip, ...], *, changes: bool) -> str:
    names = [f"{flip.task_id} {fmt.signed(flip.change)}" if changes else flip.task_id for flip in flips]
    return f"{what} ({len(flips):,}): {fmt.some(names, SHOWN) or 'none'}"
