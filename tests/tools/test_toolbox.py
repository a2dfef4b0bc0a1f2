"""Tools: what a model is told of them, and that nothing it does with them raises."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import BudgetExceeded, InputError, ModelTimeout, QuotaExhausted, SandboxError, ToolError
from agentmem.tools.tool import Tool, ToolContext, tool
from agentmem.tools.toolbox import Toolbox, elided


class Point(BaseModel):
    title: str
    x: float = 0


def add(a: int, b: int = 1, *, mode: Literal["plain", "loud"] = "plain") -> str:
    """Add two numbers.

    Over two lines.

    Args:
        a: the first,
            explained at length
        b (int): the second

    Returns:
        The sum.
    """
    return f"{a + b}{'!' if mode == 'loud' else ''}"


async def call(toolbox: Toolbox, name: str, arguments: Any, seconds: float = 5.0) -> ToolResult:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    context = ToolContext(folder=Path("."), seconds=seconds)
    return await toolbox.call(ToolCall(id="c1", name=name, arguments=text), context)


def test_a_model_is_told_name_description_and_schema() -> None:
    spec = Tool(add).spec
    assert (spec.name, spec.description) == ("add", "Add two numbers. Over two lines.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "the first, explained at length"},
            "b": {"type": "integer", "description": "the second", "default": 1},
            "mode": {"type": "string", "enum": ["plain", "loud"], "default": "plain"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_awkward_parameters_are_described_too() -> None:
    def awkward(
        schema: str,
        copy: int,
        _x: Annotated[int, Field(ge=0, description="own words")],
        points: list[Point] | None = None,
    ) -> None:
        """Take awkward names."""

    parameters = Tool(awkward).spec.parameters
    assert list(parameters["properties"]) == ["schema", "copy", "_x", "points"]
    assert parameters["properties"]["_x"] == {"type": "integer", "minimum": 0, "description": "own words"}
    assert parameters["$defs"]["Point"]["properties"]["title"] == {"type": "string"}
    assert Tool(lambda: None, name="nothing", description="Do nothing.").spec.parameters["properties"] == {}


def test_the_decorator_keeps_the_function_callable() -> None:
    @tool
    def shout(text: str) -> str:
        """Write in capitals."""
        return text.upper()

    @tool(name="other", description="Other words.")
    def whisper(text: str) -> str:
        return text.lower()

    assert (shout("a"), shout.name) == ("A", "shout")
    assert (whisper("A"), whisper.name, whisper.description) == ("a", "other", "Other words.")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tool(lambda: None, description="x"), "cannot be named '<lambda>'"),
        (lambda: Tool(lambda: None, name="x"), "has no description"),
        (lambda: Tool(lambda a: None, name="x", description="x"), "no type for 'a'"),
        (lambda: Tool(lambda *a: None, name="x", description="x"), r"takes \*a"),
        (lambda: Tool(_takes_an_object, description="x"), "cannot be described as JSON"),
        (lambda: Tool(_unknown_type, description="x"), "types of tool '_unknown_type' cannot be read"),
        (
            lambda: Toolbox(["pyton"]),
            r"^No tool named 'pyton'\. Did you mean 'python'\? Known: calculator, .*, python, ",
        ),
        (lambda: Toolbox(["xyz"]), r"^No tool named 'xyz'\. Known: calculator, "),
        (lambda: Toolbox([add, add]), "Two tools are named 'add'"),
        (lambda: Toolbox("python"), r'pass a list, such as \["python"\]'),
        (lambda: Toolbox([5]), "5 is no tool"),  # type: ignore[list-item]
    ],
)
def test_bad_tools_are_refused_with_the_repair(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def _takes_an_object(thing: ToolResultHolder) -> None: ...


class ToolResultHolder:
    pass


def _unknown_type(thing: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


async def test_calls_of_plain_and_async_functions() -> None:
    async def later(n: int) -> dict[str, Any]:
        """Wait."""
        await asyncio.sleep(0)
        return {"n": n, "where": Path("x")}

    def nothing() -> None:
        """Do nothing."""

    def gather(**more: Any) -> list[str]:
        """Take anything."""
        return sorted(more)

    toolbox = Toolbox([add, later, nothing, gather])
    assert toolbox.names == ("add", "later", "nothing", "gather")
    result = await call(toolbox, "add", {"a": "2", "mode": "loud"})
    assert (result.content, result.status, result.call.id) == ("3!", "ok", "c1")
    assert (await call(toolbox, "later", {"n": 1})).content == '{"n":1,"where":"x"}'
    assert (await call(toolbox, "nothing", "")).content == ""
    assert (await call(toolbox, "gather", {"b": 1, "a": 2})).content == '["a","b"]'


async def test_the_context_is_given_and_not_told(tmp_path: Path) -> None:
    def where(context: ToolContext, name: str) -> str:
        """Say where."""
        return f"{context.folder.name} {context.seconds} {name}"

    toolbox = Toolbox([where])
    assert list(toolbox.specs[0].parameters["properties"]) == ["name"]
    context = ToolContext(folder=tmp_path, seconds=3)
    result = await toolbox.call(ToolCall(id="1", name="where", arguments='{"name": "n"}'), context)
    assert result.content == f"{tmp_path.name} 3 n"
    assert (await call(toolbox, "where", {"name": "n", "context": "mine"})).status == "error"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ad", {}, "There is no tool named 'ad'. Did you mean 'add'? Tools: add."),
        ("add", "{a: 1}", "no valid JSON object"),
        ("add", "[1]", "do not fit"),
        ("add", {}, "'a': Field required. It takes: a: integer, b: integer, mode: string."),
        ("add", {"a": "x"}, "'a': Input should be a valid integer"),
        ("add", {"a": 1, "c": 2}, "'c': Extra inputs are not permitted"),
        ("add", {"a": 1, "mode": "mute"}, "'mode': Input should be 'plain' or 'loud'"),
    ],
)
async def test_what_a_model_gets_wrong_it_is_told(name: str, arguments: Any, message: str) -> None:
    result = await call(Toolbox([add]), name, arguments)
    assert result.status == "error"
    assert message in result.content


async def test_a_failing_or_slow_tool_is_a_result() -> None:
    def fail(how: str) -> None:
        """Fail."""
        raise {"key": KeyError("k"), "tool": ToolError("my words"), "late": TimeoutError("read"),
               "model": ModelTimeout("slow model")}[how]  # fmt: skip

    def slow() -> None:
        """Sleep."""
        time.sleep(0.5)

    async def slower() -> None:
        """Sleep."""
        await asyncio.sleep(60)

    toolbox = Toolbox([fail, slow, slower])
    expected = {
        "key": ("error", "fail failed: KeyError: 'k'"),
        "tool": ("error", "my words"),
        "late": ("timeout", "fail timed out: read"),
        "model": ("error", "fail failed: slow model"),
    }
    for how, outcome in expected.items():
        result = await call(toolbox, "fail", {"how": how})
        assert (result.status, result.content) == outcome
    for name in ("slow", "slower"):
        result = await call(toolbox, name, {}, seconds=0.1)
        assert (result.status, result.content) == ("timeout", f"{name} took longer than 0.1 s and was given up.")
        assert 0.09 < result.seconds < 0.45


@pytest.mark.parametrize(
    "error", [BudgetExceeded("no money"), QuotaExhausted("no quota"), SandboxError("no process")]
)
async def test_what_is_no_doing_of_the_agents_passes(error: Exception) -> None:
    async def spend() -> None:
        """Spend."""
        raise error

    with pytest.raises(type(error)):
        await call(Toolbox([spend]), "spend", {})


async def test_cancellation_passes() -> None:
    async def slow() -> None:
        """Sleep."""
        await asyncio.sleep(60)

    task = asyncio.create_task(call(Toolbox([slow]), "slow", {}))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_long_output_keeps_head_and_tail() -> None:
    def talk() -> str:
        """Talk."""
        return "first " + "x" * 10_000 + " last"

    result = await call(Toolbox([talk], output_characters=100), "talk", {})
    assert result.content == "first " + "x" * 44 + "\n[... 9911 characters left out ...]\n" + "x" * 45 + " last"
    assert elided("abc", 3) == "abc"
