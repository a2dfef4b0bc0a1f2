"""A report is always written: of a stopped evaluation a partial one, which says so and is compared with nothing."""

import asyncio
import json
from pathlib import Path

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate, evaluate
from agentmem.domain.task import Task
from agentmem.errors import BadRequest, BudgetExceeded, InputError, TooManyErrors
from agentmem.evaluation.comparison import compare
from agentmem.evaluation.report import EvaluationReport
from agentmem.settings import Budget
from agentmem.testing.scripted import ScriptedModel

TASKS = [Task(id=str(i), input=f"What is {i} + 2?", answer=str(i + 2)) for i in range(40)]


def written(run: Path) -> EvaluationReport:
    return EvaluationReport.from_json((run / "report.json").read_bytes())


def test_a_budget_stop_leaves_a_partial_report_and_the_rest_completes_it(tmp_path: Path) -> None:
    options = {"reward": "numeric", "run": tmp_path / "r", "listeners": ()}
    agent = Agent("scripted/coin?p=0.5")
    with pytest.raises(BudgetExceeded):
        evaluate(agent, TASKS, budget=Budget(max_calls=12), **options)
    found = written(tmp_path / "r")
    assert (found.stopped, len(found.outcomes), found.planned) == ("budget", 12, 40)
    assert "(partial)" in str(found)
    assert "Partial (budget): 12 of 40 attempts" in str(found)
    said = json.loads((tmp_path / "r" / "report.json").read_text())["summary"]
    assert (said["complete"], said["stopped"], said["attempts"], said["planned"]) == (False, "budget", 12, 40)
    whole = evaluate(agent, TASKS, **options)
    assert (whole.partial, len(whole.outcomes)) == (False, 40)
    assert written(tmp_path / "r") == whole
    direct = evaluate(agent, TASKS, **{**options, "run": tmp_path / "direct"})
    assert (whole.score, whole.interval, whole.usage.calls) == (direct.score, direct.interval, direct.usage.calls)
    with pytest.raises(InputError, match=r"'r' is partial \(budget: 12 of 40 attempts\); finish it"):
        compare(found, whole)


def test_too_many_errors_leave_a_report_that_counts_them(tmp_path: Path) -> None:
    def mostly_down(request):
        return "42" if (request.seed or 0) % 10 == 0 else BadRequest("filtered")

    agent = Agent(ScriptedModel(mostly_down))
    with pytest.raises(TooManyErrors):
        evaluate(agent, TASKS[:4], reward="numeric", run=tmp_path / "r", listeners=(), samples=16)
    found = written(tmp_path / "r")
    assert found.stopped == "too_many_errors"
    assert len(found.outcomes) >= 20
    assert found.errors["bad_request"] > 10, (
        "what failed is forgotten in the journal, and must not raise the score"
    )
    assert found.score is not None
    assert found.score < 0.5


async def test_an_interrupt_leaves_a_partial_report(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def slow(request):
        if len(model.requests) < 5:
            return "2"
        asked.set()
        await asyncio.sleep(60)
        return "2"

    model = ScriptedModel(slow)
    work = asyncio.create_task(
        aevaluate(Agent(model), TASKS, reward="numeric", run=tmp_path / "r", listeners=(), concurrency=1)
    )
    await asked.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    found = written(tmp_path / "r")
    assert (found.stopped, len(found.outcomes)) == ("interrupted", 4)
    assert found.usage.calls == 5, "the call in flight is counted"


def test_a_program_reads_the_score_from_the_report(tmp_path: Path) -> None:
    report = evaluate(
        Agent("scripted/coin?p=0.5"), TASKS, reward="numeric", run=tmp_path / "r", listeners=(), samples=3
    )
    said = json.loads(report.to_json())["summary"]
    assert (said["score"], said["n"], said["k"], said["complete"]) == (report.score, 40, 3, True)
    assert said["interval"] == [report.interval.low, report.interval.high]
    assert (said["pass_at_k"], said["pass_hat_k"]) == (report.pass_at(3), report.pass_hat(3))
    assert set(said["latency"]) == {"p50", "p90", "p99"}
