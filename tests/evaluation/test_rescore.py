"""Scoring stored answers again: without the agent, with its failures, and comparable with other reports."""

import sqlite3
from pathlib import Path

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import evaluate, learn, rescore
from agentmem.domain.task import Task
from agentmem.errors import BadRequest, BudgetExceeded, InputError
from agentmem.evaluation.comparison import compare
from agentmem.evaluation.report import EvaluationReport
from agentmem.rewards.judge import Judge
from agentmem.settings import Budget
from agentmem.testing.scripted import ScriptedModel

TASKS = [Task(id=str(i), input=f"What is {i} + 2?", answer=str(i + 2), cluster=f"c{i // 2}") for i in range(8)]


def strict(task, trajectory) -> bool:
    return trajectory.output == task.answer


def answered(tmp_path: Path, **more: object) -> tuple[ScriptedModel, EvaluationReport]:
    def answer(request):
        if "What is 7" in request.messages[-1].content:
            return BadRequest("filtered")
        return "The answer is 4."

    model = ScriptedModel(answer)
    options = {"reward": strict, "run": tmp_path / "r", "listeners": (), "samples": 2, **more}
    return model, evaluate(Agent(model, name="solver"), TASKS, **options)


def test_another_reward_judges_the_same_answers(tmp_path: Path) -> None:
    model, before = answered(tmp_path)
    paid = model.calls
    assert before.score == 0
    after = rescore(tmp_path / "r", reward="numeric", to=tmp_path / "again", listeners=())
    assert model.calls == paid
    assert after.score == pytest.approx(1 / 8)
    assert after.errors == before.errors == {"bad_request": 2}
    assert [(o.task_id, o.index, o.output, o.cluster) for o in after.outcomes] == [
        (o.task_id, o.index, o.output, o.cluster) for o in before.outcomes
    ]
    assert (after.agent, after.model, after.settings, after.tasks_name) == (
        "solver", before.model, before.settings, before.tasks_name,
    )  # fmt: skip
    assert (after.reward, after.usage.calls) == ("numeric", before.usage.calls)
    assert EvaluationReport.from_json((tmp_path / "again" / "report.json").read_bytes()) == after
    assert EvaluationReport.from_json((tmp_path / "r" / "report.json").read_bytes()) == before, "it is left alone"
    assert compare(after, after).n == 8


def test_the_same_reward_gives_the_same_report(tmp_path: Path) -> None:
    _, before = answered(tmp_path)
    after = rescore(tmp_path / "r", reward=strict, to=tmp_path / "again", listeners=())
    assert after.outcomes == before.outcomes
    assert (after.score, after.interval) == (before.score, before.interval)


def test_a_judge_is_paid_once(tmp_path: Path) -> None:
    answered(tmp_path)
    judge = ScriptedModel(lambda request: '{"reasoning": "fine", "score": 1}', name="scripted/judge")
    options = {"reward": Judge(judge), "to": tmp_path / "again", "listeners": ()}
    with pytest.raises(BudgetExceeded):
        rescore(tmp_path / "r", budget=Budget(max_calls=5), **options)
    after = rescore(tmp_path / "r", **options)
    assert judge.calls == 14, "not the two that failed"
    assert after.score == pytest.approx(7 / 8)
    assert [spent.purpose for spent in after.spending] == ["act", "judge"]


def test_samples_that_are_added_later_are_scored_too(tmp_path: Path) -> None:
    answered(tmp_path)
    options = {"reward": "numeric", "to": tmp_path / "again", "listeners": ()}
    assert rescore(tmp_path / "r", **options).k == 2
    answered(tmp_path, samples=3)
    assert rescore(tmp_path / "r", **options).k == 3


def test_a_run_that_kept_no_tasks_needs_their_file(tmp_path: Path) -> None:
    answered(tmp_path)
    with sqlite3.connect(tmp_path / "r" / "journal.sqlite") as journal:
        journal.execute("DELETE FROM steps WHERE purpose='tasks'")
    journal.close()
    options = {"reward": "numeric", "to": tmp_path / "again", "listeners": ()}
    with pytest.raises(InputError, match=r"kept no tasks .* --tasks"):
        rescore(tmp_path / "r", **options)
    with pytest.raises(InputError, match="holds other tasks than"):
        rescore(tmp_path / "r", tasks=TASKS[:3], **options)
    assert rescore(tmp_path / "r", tasks=TASKS, **options).score == pytest.approx(1 / 8)


def test_what_cannot_be_scored_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        rescore(tmp_path / "none", reward="exact")
    agent = Agent(lambda task, prior: "4")
    learn(agent, TASKS, reward="exact", extractor="exemplar", epochs=1, run=tmp_path / "l", listeners=())
    with pytest.raises(InputError, match="a run of `learn`; only the answers of an evaluation"):
        rescore(tmp_path / "l", reward="exact")
    answered(tmp_path)
    with pytest.raises(InputError, match="A judge needs a model here"):
        rescore(tmp_path / "r", reward="judge")
    open_ended = [Task(id="a", input="Say something.")]
    evaluate(agent, open_ended, reward=lambda task, trajectory: 1.0, run=tmp_path / "o", listeners=())
    with pytest.raises(InputError, match="no reference answer"):
        rescore(tmp_path / "o", reward="exact")


def test_an_evaluation_that_was_stopped_is_scored_as_far_as_it_came(tmp_path: Path) -> None:
    agent = Agent("scripted/say?text=4")
    with pytest.raises(BudgetExceeded):
        evaluate(agent, TASKS, reward="exact", run=tmp_path / "r", budget=Budget(max_calls=3), listeners=())
    found = rescore(tmp_path / "r", reward="numeric", to=tmp_path / "a", listeners=())
    assert (found.stopped, len(found.outcomes)) == ("budget", 3)
    (tmp_path / "r" / "report.json").unlink()  # as after a kill
    found = rescore(tmp_path / "r", reward="numeric", to=tmp_path / "b", listeners=())
    assert (found.stopped, len(found.outcomes)) == ("unfinished", 3)
