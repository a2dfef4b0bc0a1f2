"""A planner with the tools that ship: a whole episode, and the same where everything goes wrong. Scripted, no model."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, ToolCall
from agentmem.testing.scripted import ScriptedModel
from agentmem.tools.fetch_page import page_fetcher
from agentmem.tools.mcp import mcp
from agentmem.tools.tool import tool
from tests.agents.planning import answer, asked, attempt, call, is_planner, plan, planner, team
from tests.agents.test_real_tools import SERVER, site
from tests.tools import documents

__all__ = ["site"]


def says(*turns: Any) -> Any:
    """An executor that says these in order, told apart by how many results it has seen."""
    return lambda request: turns[sum(m.role == "tool" for m in request.messages)]


def by_subtask(**scripts: Any) -> Any:
    """Each subtask has a script of its own; its name is the last word of its description."""
    return lambda request: scripts[asked(request).split()[-1].rstrip(".")](request)


def python(code: str) -> Message:
    return call("python", code=code)


async def test_an_episode_with_real_tools(tmp_path: Path, site: str) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Answers\nThe folder says 7.")
    book = tmp_path / "book.xlsx"
    book.write_bytes(documents.xlsx())
    moves = [
        plan(
            ("folder", "Search the notes for answers, folder."),
            ("page", "Read the page, page."),
            ("book", "Read the book, book."),
            ("sum", "Add the two numbers, sum.", ["folder", "page"]),
        ),
        plan(("check", "Add 14 and 14 on the server, check.", ["p1.sum"])),
        answer("28"),
    ]
    does = by_subtask(
        folder=says(call("search", query="answers"), call("read_file", path="a.md"), "7"),
        page=says(call("fetch_page", url=f"http://{site}/"), "21"),
        book=says(call("read_file", path="book.xlsx", part="C2"), "2.5"),
        sum=says(python("print(7 + 21)"), "28"),
        check=says(call("add", a=14, b=14), "28"),
    )
    tools = [
        "python",
        f"search:{notes}",
        f"read_file:{notes}",
        page_fetcher(allow=(site,)),
        mcp([sys.executable, str(SERVER)], name="demo"),
    ]
    task = Task(id="t", input="What is it?", answer="28", files=(str(book),))
    rollout = await attempt(planner(team(moves, does), tools=tools), tmp_path, task=task)
    assert rollout.score == 1.0
    subtasks = {s.id: s for p in rollout.trajectory.plans for s in p.subtasks}
    assert {s.status for s in subtasks.values()} == {"solved"}
    results = [r for step in rollout.trajectory.steps for r in step.results]
    assert [(r.call.name, r.status) for r in results] == [
        (name, "ok") for name in ("search", "read_file", "fetch_page", "read_file", "python", "add")
    ]
    assert "The site says 21" in results[2].content
    assert results[4].content.strip() == "28"
    assert [subtasks[id].untrusted for id in ("p1.page", "p1.sum", "p2.check")] == [True] * 3
    assert rollout.trajectory.untrusted


async def test_an_episode_in_which_everything_goes_wrong(tmp_path: Path) -> None:
    """Tool failures, an unknown tool, a tool that hangs, bad arguments, a dead server, 10 MB, an empty reply, a broken
    plan, a cycle in a plan: each is data, and the episode ends with its answer."""

    @tool
    async def hang() -> str:
        """Wait for ever."""
        await asyncio.sleep(3600)
        return ""

    @tool
    def raises() -> str:
        """Fail."""
        raise ValueError("no luck")

    @tool
    def endless() -> str:
        """Say very much."""
        return "x" * 10_000_000

    moves = iter(
        [
            "I think we should first",
            plan(
                *(
                    (name, f"Try {name}.")
                    for name in ("hang", "raises", "unknown", "arguments", "endless", "dead")
                ),
                ("empty", "Say nothing, empty."),
                ("after", "Go on, after.", ["empty"]),
            ),
            plan(("a", "One, a.", ["b"]), ("b", "Two, b.", ["a"])),
            plan(("calc", "Compute, calc.", ["p1.endless"])),
            answer("42"),
        ]
    )
    does = by_subtask(
        hang=says(call("hang"), "it hangs"),
        raises=says(call("raises"), "it raises"),
        unknown=says(call("no_such_tool"), "there is none"),
        arguments=says(
            Message(role="assistant", tool_calls=(ToolCall(id="c", name="python", arguments="{x"),)), "no"
        ),
        endless=says(call("endless"), "42"),
        dead=says(call("python", code="import os; os.kill(os.getpid(), 9)"), "it died"),
        empty=says(""),
        calc=says(python("print(6 * 7)"), "42"),
    )

    def script(request: Any) -> Any:
        return next(moves) if is_planner(request) else does(request)

    model = ScriptedModel(script)
    tools = ["python", hang, raises, endless, "mcp:no-such-program"]
    task = Task(id="t", input="What is 6 times 7?", answer="42")
    rollout = await attempt(planner(model, tools=tools, tool_seconds=3), tmp_path, task=task)
    assert (rollout.score, rollout.status) == (1.0, "ok")
    subtasks = {s.id: s for p in rollout.trajectory.plans for s in p.subtasks}
    assert {id: s.status for id, s in subtasks.items() if s.status != "solved"} == {
        "p1.empty": "failed",
        "p1.after": "skipped",
    }
    results = {
        r.call.name: r for step in rollout.trajectory.steps for r in step.results if step.subtask != "p2.calc"
    }
    assert results["hang"].status == "timeout"
    assert (results["raises"].status, results["raises"].error) == ("error", "ValueError")
    assert results["no_such_tool"].status == "error"
    assert len(results["endless"].content) < 20_000
    assert json.loads(rollout.model_dump_json())["status"] == "ok"
