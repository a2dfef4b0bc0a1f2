"""One agent with the tools that ship, over real files, a real site and a real server process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate
from agentmem.domain.rollout import Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, ToolCall, ToolResult
from agentmem.errors import BudgetExceeded
from agentmem.events import Noted, RolloutFinished
from agentmem.settings import Budget
from agentmem.testing.scripted import ScriptedModel
from agentmem.tools.fetch_page import page_fetcher
from agentmem.tools.mcp import mcp
from tests.tools import documents
from tests.tools.processes import gone

SERVER = Path(__file__).parent.parent / "tools" / "mcp_server.py"


def turn(*calls: tuple[str, dict[str, Any]]) -> Message:
    made = tuple(ToolCall(id=f"c{n}", name=name, arguments=json.dumps(a)) for n, (name, a) in enumerate(calls))
    return Message(role="assistant", content="", tool_calls=made)


async def attempt(
    agent: Agent, task: Task, run: Path, *, budget: Budget | None = None
) -> tuple[Rollout | None, list[str]]:
    heard: list[Any] = []
    await aevaluate(agent, [task], reward="exact", run=run, listeners=[heard.append], budget=budget)
    rollouts = [event.rollout for event in heard if isinstance(event, RolloutFinished)]
    return rollouts[0] if rollouts else None, [event.message for event in heard if isinstance(event, Noted)]


@pytest.fixture
async def site() -> Any:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<html><body><p>The site says 21.</p></body></html>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_an_episode_with_every_kind_of_tool(tmp_path: Path, site: str) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Answers\nThe folder says 21.")
    book = tmp_path / "book.xlsx"
    book.write_bytes(documents.xlsx())
    model = ScriptedModel(
        [
            turn(
                ("search", {"query": "answers"}),
                ("read_file", {"path": "book.xlsx", "part": "C2"}),
                ("read_file", {"path": "a.md"}),
                ("fetch_page", {"url": f"http://{site}/"}),
                ("add", {"a": 21, "b": 21}),
                ("calculator", {"expression": "21 * 2"}),
            ),
            turn(
                ("fetch_page", {"url": "http://169.254.169.254/"}),
                ("read_file", {"path": "/etc/passwd"}),
                ("die", {}),
            ),
            "42",
        ]
    )
    tools = [
        f"search:{notes}",
        f"read_file:{notes}",
        page_fetcher(allow=(site,)),
        mcp([sys.executable, str(SERVER)], name="demo"),
        "calculator",
    ]
    task = Task(id="t", input="What is it?", answer="42", files=(str(book),))
    rollout, _ = await attempt(Agent(model, tools=tools), task, tmp_path / "run")
    assert rollout is not None
    assert rollout.score == 1.0
    first, second = (step.results for step in rollout.trajectory.steps[:2])
    assert [result.status for result in first] == ["ok"] * 6
    assert [result.untrusted for result in first] == [True] * 5 + [False]
    says = ["folder says 21", "2.5", "folder says 21", "The site says 21", "42", "42"]
    assert all(text in result.content for text, result in zip(says, first, strict=True))
    assert [result.error for result in second] == ["refused", "refused", "no_server"]
    assert {spec.name for spec in model.requests[0].tools} >= {
        "search",
        "read_file",
        "fetch_page",
        "calculator",
        "add",
    }


async def test_an_attempt_that_is_gone_on_with_is_offered_what_it_was_offered(tmp_path: Path) -> None:
    task = Task(id="t", input="What is it?", answer="42")
    says = [turn(("add", {"a": 40, "b": 2})), turn(("add", {"a": 1})), "42"]
    working = Agent(ScriptedModel(list(says)), tools=[mcp([sys.executable, str(SERVER)], name="demo")])
    with pytest.raises(BudgetExceeded):
        await attempt(working, task, tmp_path / "run", budget=Budget(max_calls=1))
    vanished = Agent(ScriptedModel(says[1:]), tools=[mcp("no-such-program", name="demo")])
    rollout, _ = await attempt(vanished, task, tmp_path / "run")
    assert rollout is not None
    first, second = rollout.trajectory.steps[0].results[0], rollout.trajectory.steps[1].results[0]
    assert (first.content, second.error, rollout.output) == ("42", "no_server", "42")


async def test_a_server_that_cannot_start_is_noted_and_the_run_goes_on(tmp_path: Path) -> None:
    model = ScriptedModel([turn(("calculator", {"expression": "6*7"})), "42"])
    agent = Agent(model, tools=["calculator", "mcp:no-such-program"])
    rollout, notes = await attempt(agent, Task(id="t", input="?", answer="42"), tmp_path / "run")
    assert rollout is not None
    assert rollout.score == 1.0
    assert any("'no-such-program' could not be started" in note for note in notes)


async def test_the_end_of_a_run_is_the_end_of_its_servers(tmp_path: Path) -> None:
    agent = Agent(ScriptedModel([turn(("pid", {})), "42"]), tools=[mcp([sys.executable, str(SERVER)])])
    rollout, _ = await attempt(agent, Task(id="t", input="?", answer="42"), tmp_path / "run")
    assert rollout is not None
    assert gone([int(word) for word in rollout.trajectory.steps[0].results[0].content.split()])


def test_results_of_older_journals_load() -> None:
    old = '{"call":{"id":"c","name":"python","arguments":"{}"},"content":"4","status":"ok","seconds":0.1}'
    assert not ToolResult.model_validate_json(old).untrusted
