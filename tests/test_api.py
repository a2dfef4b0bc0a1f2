"""The front door, from a script and from inside a running event loop."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentmem as am
from agentmem.events import Event, RunClosed
from agentmem.rewards.judge import Judge

TASKS = [am.Task(id=str(n), input=f"What is {n} + 1?", answer=str(n + 1)) for n in range(8)]


async def test_it_works_inside_a_running_loop(tmp_path: Path) -> None:
    """As in a notebook, whose loop runs already."""
    agent = am.Agent("scripted/coin?p=0.5")
    report = am.evaluate(agent, TASKS, reward="exact", run=tmp_path / "eval")
    assert report.n == 8
    library = am.learn(agent, TASKS, reward="exact", run=tmp_path / "learn", epochs=1, group_size=2)
    assert library.version == 0
    again = await am.aevaluate(agent, TASKS, reward="exact", run=tmp_path / "again")
    assert again.task_scores() == report.task_scores()


async def test_errors_come_out_of_a_running_loop_as_they_are(tmp_path: Path) -> None:
    agent = am.Agent("scripted/echo")
    with pytest.raises(am.AgentMemError, match="0 of 0 calls are spent"):
        am.evaluate(agent, TASKS, reward="exact", run=tmp_path / "r", budget=am.Budget(max_calls=0))


def test_a_run_that_is_stopped_still_says_what_it_cost(tmp_path: Path) -> None:
    heard: list[Event] = []
    agent = am.Agent("scripted/echo")
    with pytest.raises(am.AgentMemError):
        am.evaluate(
            agent,
            TASKS,
            reward="exact",
            run=tmp_path / "r",
            budget=am.Budget(max_calls=3),
            listeners=[heard.append],
        )
    closed = heard[-1]
    assert isinstance(closed, RunClosed)
    assert (closed.finished, closed.usage.calls) == (False, 3)
    am.evaluate(agent, TASKS, reward="exact", run=tmp_path / "r", listeners=[heard.append])
    assert heard[-1].finished
    assert heard[-1].usage.calls == 8  # over both processes


def test_a_judge_without_a_price_is_refused_before_any_call(tmp_path: Path) -> None:
    agent = am.Agent("scripted/echo")
    judge = Judge(am.Agent("openai/m", base_url="http://127.0.0.1:9/v1").model)
    heard: list[Event] = []
    with pytest.raises(am.AgentMemError, match="none is known for 'openai/m'"):
        am.evaluate(
            agent,
            TASKS,
            reward=judge,
            run=tmp_path / "r",
            budget=am.Budget(max_cost=1.0),
            listeners=[heard.append],
        )
    assert heard[-1].usage.calls == 0


def test_every_default_run_has_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent = am.Agent("scripted/echo")
    for _ in range(3):
        am.evaluate(agent, TASKS[:2], reward="exact")
    assert len(list((tmp_path / "runs").iterdir())) == 3
