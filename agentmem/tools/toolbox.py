"""The tools of an agent: found by name, called with what a model wrote; whatever goes wrong is told to it."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import ValidationError

from agentmem.domain.clean_text import clean
from agentmem.domain.media import Media
from agentmem.domain.trajectory import ToolCall, ToolResult
from agentmem.errors import (
    AgentMemError,
    BudgetExceeded,
    InputError,
    ModelError,
    RunError,
    SandboxError,
    ToolError,
)
from agentmem.models.model import ToolSpec
from agentmem.settings import SandboxName
from agentmem.tools.names import open_tool
from agentmem.tools.tool import Tool, ToolContext, ToolServer

OUTPUT_CHARACTERS = 16_000
"""What a model is shown of one result at most: the first and the last half."""


@dataclass(frozen=True)
class _Outcome:
    """What came of a call, before it is cut to length."""

    text: str
    status: Literal["ok", "error", "timeout"] = "ok"
    error: str = ""
    source: str = ""
    untrusted: bool = False
    media: tuple[Media, ...] = ()


class Toolbox:
    """Tools by name.

    Args:
        tools: names of tools that ship (`"python"`, see `agentmem.tools.names`), `Tool`s, servers of tools, or plain
            functions with types and a docstring.
        output_characters: what a model is shown of one result at most.

    Raises:
        InputError: a name is unknown, two tools have the same name, or a function cannot be a tool.

    Example:
        >>> Toolbox(["python"]).names
        ('python',)
    """

    def __init__(
        self,
        tools: Iterable[str | Tool | ToolServer | Callable[..., Any]] = (),
        *,
        output_characters: int = OUTPUT_CHARACTERS,
    ) -> None:
        if isinstance(tools, str):
            raise InputError(f'tools = {tools!r}: pass a list, such as ["{tools}"].')
        self._output_characters = output_characters
        self._given: list[Tool | ToolServer] = []
        self._offers: dict[int, Sequence[Tool]] = {}  # what a server, by its place, was last known to have
        self._down: dict[str, str] = {}
        for given in tools:
            tool = open_tool(given)
            if isinstance(tool, Tool) and tool.name in {t.name for t in self._given if isinstance(t, Tool)}:
                raise InputError(f"Two tools are named {tool.name!r}; give one another name: Tool(f, name=...).")
            self._given.append(tool)
        self._tools = self._by_name()

    async def prepare(self) -> tuple[str, ...]:
        """Start the servers that do not run yet and ask them for their tools; a server that fails has none.

        Returns:
            A sentence about each server that has newly failed.
        """
        import asyncio

        servers = [(n, given) for n, given in enumerate(self._given) if not isinstance(given, Tool)]
        if not servers:
            return ()
        news = await asyncio.gather(*(self._ask(place, server) for place, server in servers))
        self._tools = self._by_name()
        return tuple(told for told in news if told)

    async def close(self) -> None:
        """End the servers; they are started again where they are needed again."""
        import asyncio

        await asyncio.gather(
            *(given.close() for given in self._given if not isinstance(given, Tool)), return_exceptions=True
        )

    @property
    def has_servers(self) -> bool:
        """Whether some tools are known only after `prepare`."""
        return any(not isinstance(given, Tool) for given in self._given)

    def describe(self) -> list[str]:
        """What was given, by name, a user's function with a hash of its source; no server needs to be running."""
        return [given.fingerprint if isinstance(given, Tool) else given.name for given in self._given]

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are known, those of servers last."""
        return tuple(self._tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told."""
        return tuple(tool.spec for tool in self._tools.values())

    @property
    def sandboxed(self) -> bool:
        """Whether one of them runs programs in the sandbox."""
        return any(tool.sandboxed for tool in self)

    async def need_sandbox(self, sandbox: SandboxName = "auto") -> None:
        """Try out the sandbox, where a tool needs one; at its first use only.

        Raises:
            SandboxUnavailable: a tool runs programs, and no sandbox works here.
        """
        if self.sandboxed:
            from agentmem.sandbox.sandbox import find_sandbox

            await find_sandbox(sandbox)

    async def call(self, tool_call: ToolCall, context: ToolContext) -> ToolResult:
        """Do what a model asked for.

        Whatever goes wrong (no such tool, arguments that do not fit, a tool that raises or takes too long) comes
        back as a result with status `error` or `timeout` and a sentence for the model.

        Raises:
            SandboxError: the sandbox or the killable process could not be started, which is no doing of the agent's.
            AgentMemError: what stops the whole run, such as a spent budget, where a tool itself calls models.
        """
        if tool_call.name not in self._tools and self.has_servers:
            await self.prepare()  # a resumed attempt knows the tools of a server that does not run yet
        started = time.monotonic()
        outcome = await self._outcome(tool_call, context)
        return ToolResult(
            call=tool_call,
            content=clean(elided(outcome.text, self._output_characters)),
            status=outcome.status,
            error=outcome.error,
            source=outcome.source,
            untrusted=outcome.untrusted,
            media=outcome.media,
            seconds=time.monotonic() - started,
        )

    async def _outcome(self, call: ToolCall, context: ToolContext) -> _Outcome:
        import asyncio

        tool = self._tools.get(call.name)
        if tool is None:
            return self._unknown(call.name)
        outside = tool.untrusted or (tool.sandboxed and bool(context.files))  # programs print what files say
        clock = asyncio.timeout(context.seconds)
        try:
            async with clock:
                output = await tool.run(call.arguments, context)
            return _Outcome(output.text, source=output.source, untrusted=outside, media=output.media)
        except ValidationError as error:
            return _Outcome(_what_does_not_fit(error, tool), "error", "arguments")
        except TimeoutError as error:
            text = f"{tool.name} timed out: {error or type(error).__name__}"
            if clock.expired():
                text = f"{tool.name} took longer than {context.seconds:g} s and was given up."
            return _Outcome(text, "timeout", "timeout", untrusted=outside)
        except (SandboxError, BudgetExceeded, RunError):
            raise
        except ModelError as error:
            if error.stops_run:
                raise
            return _Outcome(f"{tool.name} failed: {error}", "error", error.kind)
        except AgentMemError as error:
            kind = error.error_class if isinstance(error, ToolError) else error.kind
            return _Outcome(str(error), "error", kind, untrusted=outside)
        except Exception as error:
            kind = type(error).__name__
            return _Outcome(f"{tool.name} failed: {kind}: {error}", "error", kind, untrusted=outside)

    def _unknown(self, name: str) -> _Outcome:
        near = get_close_matches(name, self._tools, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        down = "".join(f" {why}" for why in self._down.values())
        text = f"There is no tool named {name!r}.{hint} Tools: {', '.join(self._tools) or 'none'}.{down}"
        return _Outcome(text, "error", "no_server" if down and not near else "unknown_tool", untrusted=bool(down))

    async def _ask(self, place: int, server: ToolServer) -> str | None:
        try:
            self._offers[place] = await server.tools()
            self._down.pop(server.name, None)
        except AgentMemError as error:
            new = server.name not in self._down
            self._down[server.name] = str(error)
            return str(error) if new else None
        return None

    def _by_name(self) -> dict[str, Tool]:
        """All tools; those of servers that clash with others are called `SERVER_TOOL`."""
        offers = {
            n: (given,) if isinstance(given, Tool) else self._offers.get(n, ())
            for n, given in enumerate(self._given)
        }
        often = Counter(tool.name for offer in offers.values() for tool in offer)
        found: dict[str, Tool] = {tool.name: tool for tool in self._given if isinstance(tool, Tool)}
        for place, offer in offers.items():
            given = self._given[place]
            for tool in () if isinstance(given, Tool) else offer:
                alone = often[tool.name] == 1 and tool.name not in found
                name = tool.name if alone else _prefixed(given.name, tool.name, found)
                found[name] = tool if name == tool.name else tool.renamed(name)
        return found

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


def _prefixed(server: str, tool: str, taken: Container[str]) -> str:
    """A name that no other tool has, of the characters and the length that models accept."""
    start = re.sub(r"[^A-Za-z0-9_-]+", "_", server).strip("_")[:24] or "server"
    name, number = f"{start}_{tool}"[:64], 2
    while name in taken:
        name, number = f"{start[:20]}{number}_{tool}"[:64], number + 1
    return name


def _what_does_not_fit(error: ValidationError, tool: Tool) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "json_invalid":
        return f"The arguments of {tool.name} are no valid JSON object ({first['msg']}). Send one JSON object."
    properties = tool.spec.parameters["properties"]
    wanted = ", ".join(f"{name}: {about.get('type', 'value')}" for name, about in properties.items()) or "none"
    what = f"{place!r}: {first['msg']}" if place else first["msg"]
    return f"The arguments of {tool.name} do not fit; {what}. It takes: {wanted}."
