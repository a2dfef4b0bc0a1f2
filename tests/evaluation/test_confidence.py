"""Confidence: asked in a turn of its own after the answer, read strictly, or taken from agreement over samples."""

from pathlib import Path

import pytest

from agentmem.agents.agent import Agent
from agentmem.agents.confidence import read_percent
from agentmem.api import evaluate
from agentmem.domain.task import Task
from agentmem.errors import BadRequest, InputError
from agentmem.evaluation.confidence import agreement, stated
from agentmem.evaluation.evaluate import Evaluation
from agentmem.evaluation.report import EvaluationReport, Outcome
from agentmem.rewards.reward_function import resolve_reward
from agentmem.settings import EvalSettings
from agentmem.testing.scripted import ScriptedModel

TASKS = [Task(id=str(i), input=f"What is {i} + 2?", answer=str(i + 2)) for i in range(8)]


@pytest.mark.parametrize(
    ("reply", "said"),
    [("85", 0.85), (" 85 %\n", 0.85), ("0", 0.0), ("100%", 1.0), ("101", None), ("85.5", None), ("0.85", None),
     ("about 85", None), ("85 out of 100", None), ("-5", None), ("", None), ("85\n90", None)],
)  # fmt: skip
def test_a_reply_is_a_whole_number_and_nothing_else(reply: str, said: float | None) -> None:
    assert read_percent(reply) == said


def unsure(request):
    """Right on small sums; says 90 of those, 20 of others, and of one something that is no number."""
    asked = request.messages[-1].content
    if "How likely" not in asked:
        return "4"
    first = request.messages[-3].content
    assert request.messages[-2].content == "4", "it sees its own answer"
    assert request.temperature == 0
    return "quite" if "5 + 2" in first else "90" if "2 + 2" in first else "20"


def test_the_question_comes_after_the_answer_and_is_counted_apart(tmp_path: Path) -> None:
    model = ScriptedModel(unsure)
    options = {"reward": "exact", "run": tmp_path / "r", "listeners": (), "ask_confidence": True}
    report = evaluate(Agent(model), TASKS, **options)
    assert model.calls == 16
    assert [(one.purpose, one.calls) for one in report.spending] == [("act", 8), ("confidence", 8)]
    assert {o.task_id: o.confidence for o in report.outcomes}["2"] == 0.9
    assert {o.output for o in report.outcomes} == {"4"}, "the question changes no answer"
    found = stated(report)
    assert (found.n, found.asked, found.missing, found.auroc) == (7, 8, 0.125, 1.0)
    assert "AUROC of confidence" in str(report)
    again = evaluate(Agent(model), TASKS, **options)
    assert (again.outcomes, model.calls) == (report.outcomes, 16)
    plain = evaluate(Agent(model), TASKS, **{**options, "run": tmp_path / "p", "ask_confidence": False})
    assert plain.score == report.score
    assert model.calls == 24


def test_a_question_that_fails_is_a_confidence_that_is_missing(tmp_path: Path) -> None:
    model = ScriptedModel(lambda r: BadRequest("no") if "How likely" in r.messages[-1].content else "4")
    report = evaluate(Agent(model), TASKS, reward="exact", run=tmp_path / "r", listeners=(), ask_confidence=True)
    assert (report.score, report.errors) == (1 / 8, {})
    assert all(o.asked and o.confidence is None for o in report.outcomes)
    with pytest.raises(InputError, match="None of 8 replies"):
        stated(report)


def test_who_cannot_be_asked_is_said_before_anything_is_spent() -> None:
    agent = Agent(lambda task, prior: "4")
    with pytest.raises(InputError, match="asks the agent's model"):
        Evaluation.of(agent, TASKS, resolve_reward("exact"), EvalSettings(ask_confidence=True))
    with pytest.raises(InputError, match="asked for no confidence"):
        stated(EvaluationReport(outcomes=(Outcome(task_id="a", score=1.0),)))


def test_agreement_is_the_share_of_the_most_frequent_answer() -> None:
    said = {"a": ["4", " 4", "5", "4"], "b": ["x", "y", "y", "x"], "c": ["7", "7"], "d": ["1"]}
    outcomes = tuple(
        Outcome(task_id=task, index=i, output=text, score=float(text.strip() in ("4", "x")))
        for task, texts in said.items()
        for i, text in enumerate(texts)
    )
    found = agreement(EvaluationReport(outcomes=outcomes))
    assert (found.n, found.asked) == (3, 4), "one answer agrees with nobody"
    assert {(round(b.confidence, 2), b.right) for b in found.bins} == {(0.5, 1.0), (0.75, 1.0), (1.0, 0.0)}
    loose = agreement(EvaluationReport(outcomes=outcomes), same=lambda one, other: True)
    assert loose.confidence == 1.0


def test_agreement_needs_two_samples() -> None:
    with pytest.raises(InputError, match="add samples to it"):
        agreement(EvaluationReport(outcomes=(Outcome(task_id="a", score=1.0, output="4"),)))
