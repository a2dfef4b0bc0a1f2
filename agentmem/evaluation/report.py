"""What an evaluation found: one outcome per attempt, and the scores with their n, intervals and failures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from agentmem import format as fmt
from agentmem.domain.usage import Usage
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.contamination import Contamination
from agentmem.evaluation.intervals import Bounds, Interval, mean_interval
from agentmem.evaluation.outcome import OUTPUT_CHARS, Outcome
from agentmem.evaluation.spending import Spent
from agentmem.evaluation.statistics import pass_at_k, pass_hat_k

__all__ = ["OUTPUT_CHARS", "EvaluationReport", "Outcome", "bounds_of", "clusters_of", "interval_of"]

SCHEMA = 1
"""The version of the report's JSON form."""


class EvaluationReport(fmt.Shown, Value):
    """The judgement of one agent on one task set.

    Two denominators: in `score` an attempt that failed for whatever reason counts as wrong; in `completed_score`
    it does not count. Attempts that nothing can verify count in neither, and are named.

    Example:
        >>> outcomes = tuple(Outcome(task_id=str(i), score=float(i % 2)) for i in range(10))
        >>> report = EvaluationReport(name="demo", outcomes=outcomes)
        >>> report.score, report.n, round(report.interval.low, 2), round(report.interval.high, 2)
        (0.5, 10, 0.24, 0.76)
    """

    schema_version: int = Field(default=SCHEMA, alias="schema", serialization_alias="schema")
    name: str = "evaluation"
    agent: str = ""
    """The agent, in words."""
    model: str = ""
    tasks_name: str = "tasks"
    tasks_fingerprint: str = ""
    reward: str = ""
    """The reward's name."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The settings that it was made under."""
    prior_hash: str = ""
    """Hash of the memory that the agent saw, frozen during the evaluation; empty where it saw none."""
    library_version: int | None = None
    """The version of the experience library; None where there was none."""
    outcomes: tuple[Outcome, ...] = ()
    usage: Usage = Usage()
    """All that was spent: agents, judges, failed attempts and retries."""
    seconds: float = 0.0
    """Wall-clock seconds of the whole evaluation."""
    spending: tuple[Spent, ...] = ()
    """The same by purpose, with what failed calls took; empty in a report of an earlier agentmem."""
    contamination: Contamination | None = None
    """What the tasks share with what the agent learned from; None where nothing was compared."""
    looks: int | None = None
    """Which evaluation of this test split it is among the runs beside it; None where no task is in the split `test`."""
    stopped: str = ""
    """Why the evaluation ended before all attempts were made: an error's kind, or `interrupted`. Empty where it is
    complete."""
    planned: int = 0
    """Attempts that were asked for; 0 where that is not known."""
    failed_score: float = 0.0
    """What a failed attempt counts in `score`: the least that the reward gives. A lower score that is met replaces
    it, so that a failure never counts as more than the worst answer."""

    @model_validator(mode="after")
    def _attempts_are_distinct(self) -> Self:
        seen: set[tuple[str, int]] = set()
        for outcome in self.outcomes:
            if (place := (outcome.task_id, outcome.index)) in seen:
                raise ValueError(f"attempt {outcome.index} of task {outcome.task_id!r} is there twice")
            seen.add(place)
        return self

    @property
    def partial(self) -> bool:
        """Whether attempts are missing because the evaluation was stopped."""
        return bool(self.stopped)

    @property
    def score(self) -> float | None:
        """Mean over tasks of the mean over attempts (Mean@k), errors counting as wrong; None without any task."""
        return _mean(self.task_scores().values())

    @property
    def interval(self) -> Interval:
        """The 95 % interval of `score`."""
        return interval_of(self.task_scores(), self.clusters, self.bounds)

    @property
    def completed_score(self) -> float | None:
        """The same over the attempts that were made and judged; None where there is none."""
        return _mean(self.task_scores(completed=True).values())

    @property
    def completed_interval(self) -> Interval:
        """The 95 % interval of `completed_score`."""
        return interval_of(self.task_scores(completed=True), self.clusters, self.bounds)

    @property
    def n(self) -> int:
        """Tasks that `score` rests on."""
        return len(self.task_scores())

    @property
    def k(self) -> int:
        """Attempts per task; the largest number where they differ."""
        return self.attempts[1]

    @property
    def attempts(self) -> tuple[int, int]:
        """The least and the largest number of attempts at a task."""
        counts = Counter(outcome.task_id for outcome in self.outcomes).values()
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def errors(self) -> dict[str, int]:
        """How many attempts ended in an error, by its kind, most frequent first."""
        counts = Counter(kind for outcome in self.outcomes if (kind := outcome.error) is not None)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def unverifiable(self) -> int:
        """Attempts that nothing can verify; they are in no score."""
        return sum(outcome.unverifiable for outcome in self.outcomes)

    @property
    def cost(self) -> float | None:
        """US dollars for everything; None where any part has no known price."""
        return self.usage.dollars

    @property
    def clusters(self) -> dict[str, str]:
        """The cluster of each task that has one."""
        return {outcome.task_id: outcome.cluster for outcome in self.outcomes if outcome.cluster is not None}

    @property
    def worst(self) -> float:
        """What a failed attempt counts in `score`."""
        known = [o.score for o in self.outcomes if o.completed and o.score is not None]
        return min([self.failed_score, *known])

    @property
    def bounds(self) -> Bounds | None:
        """The least and the largest score possible, as far as the scores show; None where they may be anything."""
        return bounds_of(self._scores())

    @property
    def binary(self) -> bool:
        """Whether every score is 0 or 1."""
        return self._scores() <= {0.0, 1.0}

    def task_scores(self, *, completed: bool = False, worst: float | None = None) -> dict[str, float]:
        """The mean over the attempts of each task, in the order of the outcomes.

        Args:
            completed: leave out failed attempts, and tasks without another.
            worst: what a failed attempt counts otherwise; by default `self.worst`.
        """
        worst = self.worst if worst is None else worst
        scores: dict[str, list[float]] = {}
        for outcome in self.outcomes:
            if outcome.completed and outcome.score is not None:
                scores.setdefault(outcome.task_id, []).append(outcome.score)
            elif not completed and not outcome.unverifiable:
                scores.setdefault(outcome.task_id, []).append(worst)
        return {task: fmean(values) for task, values in scores.items()}

    def pass_at(self, k: int, *, threshold: float = 1.0) -> float | None:
        """The unbiased chance that at least one of `k` attempts passes, averaged over tasks.

        Args:
            k: attempts allowed.
            threshold: the score from which an attempt passes; failed attempts do not.

        Returns:
            None where a task has fewer than `k` attempts: then it is not defined.
        """
        return _mean(self._pass_values(k, threshold, every=False).values())

    def pass_at_interval(self, k: int, *, threshold: float = 1.0) -> Interval:
        """The 95 % interval of `pass_at`; it says nothing where that is None."""
        return self._pass_interval(self._pass_values(k, threshold, every=False))

    def pass_hat(self, k: int, *, threshold: float = 1.0) -> float | None:
        """The unbiased chance that all of `k` attempts pass (pass^k), over tasks; None as in `pass_at`."""
        return _mean(self._pass_values(k, threshold, every=True).values())

    def pass_hat_interval(self, k: int, *, threshold: float = 1.0) -> Interval:
        """The 95 % interval of `pass_hat`; it says nothing where that is None."""
        return self._pass_interval(self._pass_values(k, threshold, every=True))

    def latency(self, quantiles: Iterable[float] = (0.5, 0.9, 0.99)) -> dict[float, float]:
        """Wall-clock seconds of an attempt, by quantile; failed attempts are in it, because their time was waited for.

        Args:
            quantiles: between 0 and 1.

        Returns:
            Empty where no attempt was timed.
        """
        known = sorted(outcome.seconds for outcome in self.outcomes if outcome.seconds > 0)
        return {level: _quantile(known, level) for level in quantiles} if known else {}

    def subset(self, tasks: Iterable[str]) -> EvaluationReport:
        """The report of these tasks alone; what was spent stays that of all."""
        wanted = set(tasks)
        return self.model_copy(update={"outcomes": tuple(o for o in self.outcomes if o.task_id in wanted)})

    def clean_and_dirty(self) -> dict[str, EvaluationReport]:
        """The report of the tasks that share nothing with what the agent learned from, and that of the others."""
        dirty = set(self.contamination.dirty) if self.contamination is not None else set()
        clean = [outcome.task_id for outcome in self.outcomes if outcome.task_id not in dirty]
        return {"clean": self.subset(clean), "dirty": self.subset(dirty)}

    def table(self) -> fmt.Table:
        """The report as a table: no score without its n and interval, and every kind of error."""
        from agentmem.evaluation.report_table import report_table

        return report_table(self)

    def to_json(self) -> str:
        """The report as JSON, the same bytes for equal reports; its `summary` holds what the outcomes come to."""
        from agentmem.evaluation.summary import summary

        content = {"summary": summary(self), **self.model_dump(mode="json", by_alias=True)}
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "the report") -> EvaluationReport:
        """Read what `to_json` wrote.

        Raises:
            InputError: it is no report, was damaged, or was written by a newer agentmem.
        """
        try:
            report = cls.model_validate_json(_without_summary(text))
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the top level"
            raise InputError(
                f"{source} is no evaluation report: {error.errors()[0]['msg']} at {where}. "
                "Evaluate again with the same run: what was paid for is not bought twice."
            ) from None
        if report.schema_version > SCHEMA:
            raise InputError(
                f"{source} has schema {report.schema_version}, newer than this agentmem reads ({SCHEMA}); "
                "upgrade agentmem."
            )
        return report

    def _scores(self) -> set[float]:
        known = {o.score for o in self.outcomes if o.completed and o.score is not None}
        return known | {self.worst} if self.errors else known

    def _pass_values(self, k: int, threshold: float, *, every: bool) -> dict[str, float]:
        """The chance of each task; empty where any is undefined."""
        tries: dict[str, list[bool]] = {}
        for outcome in self.outcomes:
            if not outcome.unverifiable:
                passed = outcome.completed and outcome.score is not None and outcome.score >= threshold
                tries.setdefault(outcome.task_id, []).append(passed)
        chance = pass_hat_k if every else pass_at_k
        values = {task: chance(len(passed), sum(passed), k) for task, passed in tries.items()}
        known = {task: value for task, value in values.items() if value is not None}
        return known if len(known) == len(values) else {}

    def _pass_interval(self, values: dict[str, float]) -> Interval:
        return interval_of(values, self.clusters, (0.0, 1.0))


def interval_of(values: dict[str, float], clusters: dict[str, str], bounds: Bounds | None) -> Interval:
    """The 95 % interval of the mean of one value per task."""
    return mean_interval(list(values.values()), clusters_of(values, clusters), bounds=bounds)


def clusters_of(tasks: Iterable[str], clusters: dict[str, str]) -> list[tuple[str, str]] | None:
    """The cluster of each task, a task without one being its own; None where no task has one."""
    named = [("cluster", clusters[task]) if task in clusters else ("task", task) for task in tasks]
    return named if any(kind == "cluster" for kind, _ in named) else None


def bounds_of(scores: Iterable[float]) -> Bounds | None:
    """(0, 1) where all scores lie in it, two values where there are only two, else None."""
    distinct = sorted(set(scores))
    if not distinct or (distinct[0] >= 0 and distinct[-1] <= 1):
        return 0.0, 1.0
    return (distinct[0], distinct[1]) if len(distinct) == 2 else None


def _mean(values: Iterable[float]) -> float | None:
    known = sorted(values)  # so that the order of tasks does not reach the last digit
    return fmean(known) if known else None


def _without_summary(text: str | bytes) -> str | bytes:
    """A summary follows from the rest; what is no JSON is left as it is, to be refused."""
    try:
        content = json.loads(text)
    except ValueError:
        return text
    if isinstance(content, dict):
        content.pop("summary", None)
    return json.dumps(content)


def _quantile(ordered: list[float], level: float) -> float:
    """Between the two nearest, as numpy does it by default."""
    if not 0 <= level <= 1:
        raise InputError(f"A quantile lies between 0 and 1, not at {level}.")
    place = level * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
