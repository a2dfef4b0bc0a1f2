"""The tools of an agent: found by name, called with what a model wrote; whatever goes wrong is told to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import ValidationError

from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import AgentMemError, BudgetExceeded, InputError, ModelError, RunError, SandboxError
from agentmem.models.model import ToolSpec
from agentmem.tools.tool import Tool, ToolContext

OUTPUT_CHARACTERS = 16_000
"""What a model is shown of one result at most: the first and the last half."""


class Toolbox:
    """Tools by name.

    Args:
        tools: names of tools that ship (`"python"`), `Tool` objects, or plain functions with types and a
            docstring.
        output_characters: what a model is shown of one result at most.

    Raises:
        InputError: a name is unknown, two tools have the same name, or a function cannot be a tool.

    Example:
        >>> Toolbox(["python"]).names
        ('python',)
    """

    def __init__(
        self,
        tools: Iterable[str | Tool | Callable[..., Any]] = (),
        *,
        output_characters: int = OUTPUT_CHARACTERS,
    ) -> None:
        if isinstance(tools, str):
            raise InputError(f'tools = {tools!r}: pass a list, such as ["{tools}"].')
        self._tools: dict[str, Tool] = {}
        self._output_characters = output_characters
        for given in tools:
            tool = _resolved(given)
            if tool.name in self._tools:
                raise InputError(f"Two tools are named {tool.name!r}; give one another name: Tool(f, name=...).")
            self._tools[tool.name] = tool

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order given."""
        return tuple(self._tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told."""
        return tuple(tool.spec for tool in self._tools.values())

    async def call(self, tool_call: ToolCall, context: ToolContext) -> ToolResult:
        """Do what a model asked for.

        Whatever goes wrong (no such tool, arguments that do not fit, a tool that raises or takes too long) comes
        back as a result with status `error` or `timeout` and a sentence for the model.

        Raises:
            SandboxError: the killable process could not be started, which is no doing of the agent's.
            AgentMemError: what stops the whole run, such as a spent budget, where a tool itself calls models.
        """
        started = time.monotonic()
        status, content = await self._outcome(tool_call, context)
        return ToolResult(
            call=tool_call,
            content=elided(content, self._output_characters),
            status=status,
            seconds=time.monotonic() - started,
        )

    async def _outcome(
        self, call: ToolCall, context: ToolContext
    ) -> tuple[Literal["ok", "error", "timeout"], str]:
        tool = self._tools.get(call.name)
        if tool is None:
            near = get_close_matches(call.name, self._tools, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            return (
                "error",
                f"There is no tool named {call.name!r}.{hint} Tools: {', '.join(self._tools) or 'none'}.",
            )
        clock = asyncio.timeout(context.seconds)
        try:
            async with clock:
                return "ok", await tool.run(call.arguments, context)
        except ValidationError as error:
            return "error", _what_does_not_fit(error, tool)
        except TimeoutError as error:
            late = f"{tool.name} took longer than {context.seconds:g} s and was given up."
            return (
                "timeout",
                late if clock.expired() else f"{tool.name} timed out: {error or type(error).__name__}",
            )
        except (SandboxError, BudgetExceeded, RunError):
            raise
        except ModelError as error:
            if error.stops_run:
                raise
            return "error", f"{tool.name} failed: {error}"
        except AgentMemError as error:
            return "error", str(error)
        except Exception as error:
            return "error", f"{tool.name} failed: {type(error).__name__}: {error}"

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __repr__(self) -> str:
        return f"Toolbox({list(self._tools)})"


def elided(text: str, limit: int) -> str:
    """The text, or its first and last half with a line between them that says how much is missing."""
    if len(text) <= limit:
        return text
    half = max(1, limit // 2)
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _resolved(given: str | Tool | Callable[..., Any]) -> Tool:
    if isinstance(given, Tool):
        return given
    if isinstance(given, str):
        known = _shipped()
        if given not in known:
            near = get_close_matches(given, known, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"No tool named {given!r}.{hint} Known: {', '.join(sorted(known))}.")
        return known[given]
    if callable(given):
        return Tool(given)
    raise InputError(f"{given!r} is no tool; pass a name, a function or a Tool.")


def _shipped() -> dict[str, Tool]:
    from agentmem.tools.python import python

    return {"python": python}


def _what_does_not_fit(error: ValidationError, tool: Tool) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "json_invalid":
        return f"The arguments of {tool.name} are no valid JSON object ({first['msg']}). Send one JSON object."
    properties = tool.spec.parameters["properties"]
    wanted = ", ".join(f"{name}: {about.get('type', 'value')}" for name, about in properties.items()) or "none"
    what = f"{place!r}: {first['msg']}" if place else first["msg"]
    return f"The arguments of {tool.name} do not fit; {what}. It takes: {wanted}."
