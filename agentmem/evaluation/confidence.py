"""The confidences of an evaluation: what the agent said, and how far its samples agree."""

from __future__ import annotations

from collections.abc import Callable

from agentmem.errors import InputError
from agentmem.evaluation.calibration import Answer, Calibration, calibration
from agentmem.evaluation.outcome import Outcome
from agentmem.evaluation.report import EvaluationReport

Same = Callable[[str, str], bool]


def stated(report: EvaluationReport, *, threshold: float = 1.0) -> Calibration:
    """What the agent's own confidence is worth; it was asked with `ask_confidence`.

    Args:
        report: of an evaluation.
        threshold: the score from which an answer is right.

    Raises:
        InputError: no answer was asked for it, or no reply could be read.
    """
    asked = [outcome for outcome in report.outcomes if outcome.asked and outcome.completed]
    if not asked:
        raise InputError(
            f"{report.name!r} asked for no confidence; evaluate with ask_confidence (--ask-confidence)."
        )
    answers = [Answer(o.task_id, o.confidence, _right(o, threshold)) for o in asked if o.confidence is not None]
    if not answers:
        raise InputError(
            f"None of {len(asked):,} replies of {report.name!r} to the question for confidence was a whole number from "
            "0 to 100; use the agreement over samples instead."
        )
    return calibration(answers, asked=len(asked))


def agreement(report: EvaluationReport, *, threshold: float = 1.0, same: Same | None = None) -> Calibration:
    """What the agreement over a task's samples is worth as the confidence of the most frequent answer.

    Args:
        report: of an evaluation with two samples a task at least.
        threshold: the score from which an answer is right.
        same: whether two answers are the same; by default they must be the same words.

    Raises:
        InputError: no task has two answers.
    """
    answers, tasks = [], _answered(report)
    for task, outcomes in tasks.items():
        if len(outcomes) > 1:
            majority = max(_classes(outcomes, same or _same_words), key=len)  # of equals the first
            answers.append(Answer(task, len(majority) / len(outcomes), _right(majority[0], threshold)))
    if not answers:
        raise InputError(
            f"{report.name!r} has no task with two answers or more, and agreement needs them; add samples to it "
            "(samples=4): what it has is not bought again."
        )
    return calibration(answers, asked=len(tasks))


def _answered(report: EvaluationReport) -> dict[str, list[Outcome]]:
    tasks: dict[str, list[Outcome]] = {}
    for outcome in report.outcomes:
        if outcome.completed and (outcome.output or "").strip():
            tasks.setdefault(outcome.task_id, []).append(outcome)
    return tasks


def _classes(outcomes: list[Outcome], same: Same) -> list[list[Outcome]]:
    classes: list[list[Outcome]] = []
    for outcome in outcomes:
        for members in classes:
            if same(members[0].output or "", outcome.output or ""):
                members.append(outcome)
                break
        else:
            classes.append([outcome])
    return classes


def _right(outcome: Outcome, threshold: float) -> bool:
    return outcome.score is not None and outcome.score >= threshold


def _same_words(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()
