"""What an evaluation spent: by purpose, with failed and retried calls, and the same after a resume."""

from pathlib import Path

from agentmem.agents.agent import Agent
from agentmem.api import evaluate
from agentmem.domain.task import Task
from agentmem.errors import BadRequest, ModelTimeout
from agentmem.evaluation.report import EvaluationReport
from agentmem.evaluation.spending import Spent, merged, total
from agentmem.rewards.judge import Judge
from agentmem.settings import Budget, ModelSettings
from agentmem.testing.scripted import ScriptedModel

TASKS = [Task(id=str(i), input=f"What is {i} + 2?", answer=str(i + 2)) for i in range(4)]
QUICK = ModelSettings(attempts=3, retry_wait=0, max_in_flight=1)


def test_failed_calls_are_counted_and_named(tmp_path: Path) -> None:
    asked = []

    def answer(request):
        asked.append(request)
        return ModelTimeout("down") if len(asked) % 2 else "4"

    options = {"reward": "exact", "run": tmp_path / "r", "listeners": (), "concurrency": 1}
    agent = Agent(ScriptedModel(answer), calls=QUICK)
    report = evaluate(agent, TASKS, budget=Budget(max_tokens=1_000_000), **options)
    (act,) = report.spending
    assert (act.purpose, act.calls, act.failed, act.unknown) == ("act", 8, 4, 4)
    assert act.failed_tokens > 2048, "under a budget what only the server knows stands at the most"
    assert act.tokens > act.failed_tokens
    assert report.usage == total(report.spending)
    assert "4 failed (at most" in str(report)
    again = evaluate(agent, TASKS, **options)
    assert len(asked) == 8
    assert (again.spending, again.usage, again.score) == (report.spending, report.usage, report.score)


def test_what_a_failed_call_cost_is_not_known_without_a_budget(tmp_path: Path) -> None:
    answers = [ModelTimeout("down"), BadRequest("filtered"), "4"]
    agent = Agent(ScriptedModel(answers), calls=QUICK)
    report = evaluate(agent, TASKS[:2], reward="exact", run=tmp_path / "r", listeners=(), concurrency=1)
    (act,) = report.spending
    assert (act.calls, act.failed, act.unknown, act.failed_tokens) == (3, 2, 1, 0)
    assert "2 failed (1 of unknown cost)" in str(report)


def test_each_purpose_has_its_own_line(tmp_path: Path) -> None:
    judge = Judge(ScriptedModel(lambda request: '{"reasoning": "fine", "score": 1}', name="scripted/judge"))
    report = evaluate(Agent(ScriptedModel(["4"] * 4)), TASKS, reward=judge, run=tmp_path / "r", listeners=())
    assert [(one.purpose, one.calls) for one in report.spending] == [("act", 4), ("judge", 4)]
    assert "  judge" in str(report)
    assert EvaluationReport.from_json(report.to_json()) == report


def test_unknown_prices_stay_unknown_when_runs_are_added_up() -> None:
    one = Spent(purpose="act", calls=2, prompt_tokens=10, dollars=0.5)
    other = Spent(purpose="act", calls=1, prompt_tokens=5, dollars=None)
    (both,) = merged([one], [other])
    assert (both.calls, both.prompt_tokens, both.dollars) == (3, 15, None)
    assert [spent.purpose for spent in merged([one], [Spent(purpose="judge")])] == ["act", "judge"]
