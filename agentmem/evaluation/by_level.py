"""A GAIA-style evaluation level by level, with what each attempt did: answer, near miss, steps, addresses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from statistics import fmean

from agentmem import format as fmt
from agentmem.domain.rollout import Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import ToolResult
from agentmem.domain.usage import Usage
from agentmem.domain.value import Value
from agentmem.evaluation.report import EvaluationReport, Outcome

_ADDRESS = re.compile(r"https?://[^\s\"'<>)\\]+")

_OFFLINE = {"calculator", "python", "read_file", "shell"}
"""What reaches no network: an address in its code or text was not asked for."""


class Visit(Value):
    """An address that a tool was asked for."""

    task_id: str
    index: int
    tool: str
    address: str
    status: str
    """`ok`, or the class of the error, such as `denied`."""


class Attempt(Value):
    """What one attempt did, without its words."""

    task_id: str
    index: int = 0
    answer: str | None = None
    """What is submitted; None where there was no output."""
    marked: bool = False
    """Whether the answer stood behind `FINAL ANSWER:`."""
    near_miss: str = ""
    """What a wrong answer only just missed."""
    steps: int = 0
    """Turns of models."""
    tool_calls: int = 0
    visits: tuple[Visit, ...] = ()

    @classmethod
    def of(
        cls,
        task: Task,
        rollout: Rollout,
        *,
        read: Callable[[str], tuple[str, bool]],
        near_miss: Callable[[str, str], str],
    ) -> Attempt:
        """What is kept of a rollout.

        Args:
            task: its task.
            rollout: a finished attempt.
            read: the answer that an output gives, and whether it was marked as one.
            near_miss: what a wrong answer only just missed, given the reference answer.
        """
        steps = rollout.trajectory.steps
        results = [result for step in steps for result in step.results]
        answer, marked = read(rollout.output) if rollout.output is not None else (None, False)
        wrong = answer is not None and task.answer is not None and rollout.score == 0
        return cls(
            task_id=task.id,
            index=rollout.index,
            answer=answer,
            marked=marked,
            near_miss=near_miss(answer, task.answer) if wrong and answer and task.answer else "",
            steps=len(steps),
            tool_calls=len(results),
            visits=tuple(visit for result in results for visit in _visits(task, rollout, result)),
        )


class LevelReport(Value):
    """The judgement of one agent on a GAIA-style set."""

    report: EvaluationReport
    levels: dict[str, str]
    """The level of each task."""
    attempts: tuple[Attempt, ...]
    """One for each outcome, in the same order."""

    @classmethod
    def of(cls, report: EvaluationReport, tasks: Iterable[Task], attempts: Iterable[Attempt]) -> LevelReport:
        """Bring together what was found.

        Args:
            report: the evaluation.
            tasks: its tasks.
            attempts: what each attempt did, in any order.
        """
        found = {(attempt.task_id, attempt.index): attempt for attempt in attempts}
        return cls(
            report=report,
            levels={task.id: task.level or "" for task in tasks},
            attempts=tuple(found[outcome.task_id, outcome.index] for outcome in report.outcomes),
        )

    def level(self, level: str) -> EvaluationReport:
        """The evaluation of one level; its cost is that of the agent alone, without judges and retries."""
        return self._part([o for o in self.report.outcomes if self.levels[o.task_id] == level])

    @property
    def visits(self) -> tuple[Visit, ...]:
        """All addresses that tools were asked for."""
        return tuple(visit for attempt in self.attempts for visit in attempt.visits)

    def table(self) -> fmt.Table:
        """One row for each level and one for all: both denominators, with n and intervals, and what it took."""
        levels = sorted(set(self.levels.values()))
        rows = [self._row(f"level {level}" if level else "no level", self.level(level)) for level in levels]
        if len(rows) > 1:
            rows.append(self._row("all", self._part(self.report.outcomes)))
        report = self.report
        return fmt.Table(
            title=f"{report.name}: {fmt.count(len(self.levels), 'task')} of {report.tasks_name!r}, "
            f"reward {report.reward}, Mean@{report.k}",
            columns=(
                ("", "left"),
                ("n", "right"),
                ("score", "left"),
                ("completed only", "left"),
                ("errors", "right"),
                ("no marker", "right"),
                ("near misses", "right"),
                ("steps", "right"),
                ("tool calls", "right"),
                ("cost", "right"),
                ("time", "right"),
            ),
            rows=tuple(rows),
            caption="\n".join(self._caption()),
        )

    def to_json(self) -> str:
        """All of it, the same bytes for equal reports."""
        return self.model_dump_json(indent=1, by_alias=True) + "\n"

    def __str__(self) -> str:
        return str(self.table())

    def _part(self, outcomes: Iterable[Outcome]) -> EvaluationReport:
        kept = tuple(outcomes)
        spent = sum((outcome.usage for outcome in kept), Usage())
        seconds = sum(outcome.seconds for outcome in kept)
        worst = self.report.worst  # a level without a wrong answer must not be kinder to its failures
        return self.report.model_copy(
            update={"outcomes": kept, "usage": spent, "seconds": seconds, "failed_score": worst}
        )

    def _row(self, name: str, part: EvaluationReport) -> tuple[str, ...]:
        places = {(outcome.task_id, outcome.index) for outcome in part.outcomes}
        attempts = [attempt for attempt in self.attempts if (attempt.task_id, attempt.index) in places]
        done = len(part.task_scores(completed=True))
        whole, completed = part.interval, part.completed_interval
        return (
            name,
            fmt.count(part.n),
            fmt.score(part.score, whole.low, whole.high),
            f"{fmt.score(part.completed_score, completed.low, completed.high)}, n = {done:,}",
            fmt.count(sum(part.errors.values())),
            fmt.count(sum(not attempt.marked for attempt in attempts if attempt.answer is not None)),
            fmt.count(sum(bool(attempt.near_miss) for attempt in attempts)),
            _mean(attempt.steps for attempt in attempts),
            _mean(attempt.tool_calls for attempt in attempts),
            fmt.dollars(part.cost),
            fmt.seconds(part.seconds),
        )

    def _caption(self) -> Iterator[str]:
        report = self.report
        yield (
            "score: an attempt that failed counts as wrong; completed only: it does not count. Steps and tool calls "
            "are means over attempts; cost and time are those of the agent, summed over attempts."
        )
        yield f"95 % intervals: {report.interval.method}"
        if report.errors:
            yield "errors: " + ", ".join(f"{kind} {n:,}" for kind, n in report.errors.items())
        if report.unverifiable:
            yield f"unverifiable (in no score): {report.unverifiable:,} of {fmt.count(len(report.outcomes), 'attempt')}"
        if near := Counter(attempt.near_miss for attempt in self.attempts if attempt.near_miss):
            yield "near misses (scored as wrong): " + ", ".join(
                f"{label} {n:,}" for label, n in near.most_common()
            )
        if denied := sum(visit.status == "denied" for visit in self.visits):
            yield f"addresses that were refused as mirrors of the set: {denied:,}"


def _visits(task: Task, rollout: Rollout, result: ToolResult) -> Iterator[Visit]:
    if result.call.name in _OFFLINE:
        return
    asked = _ADDRESS.findall(result.call.arguments)
    reached = [result.source] if _ADDRESS.fullmatch(result.source) else []
    for address in dict.fromkeys([*asked, *reached]):
        yield Visit(
            task_id=task.id,
            index=rollout.index,
            tool=result.call.name,
            address=address,
            status=result.error or result.status,
        )


def _mean(values: Iterable[int]) -> str:
    known = list(values)
    return f"{fmean(known):.1f}" if known else fmt.number(None)
