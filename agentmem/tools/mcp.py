"""The tools of an MCP server (Model Context Protocol), by the official SDK: a process on its pipes, or an address."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentmem.errors import InputError, ToolError
from agentmem.models.model import ToolSpec
from agentmem.tools.mcp_session import Session, Target
from agentmem.tools.tool import Tool, ToolContext, ToolOutput

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from mcp.types import Tool as Listed

DESCRIPTION_CHARACTERS = 2000
"""How much a server may say about one tool."""
PAUSE_SECONDS = 30.0
"""Seconds after a failed start for which it is not tried again."""
TIMEOUTS = 2
"""Calls in a row without an answer after which a server is started anew."""


def mcp(
    server: str | Sequence[str],
    *,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> McpServer:
    """An MCP server, for the `tools` of an agent: each of its tools becomes one of the agent's.

    It is started at first use, shared by all attempts, and ended, with all that it started, when the run is over. It
    sees the variables PATH, HOME, LOGNAME, SHELL, TERM and USER and what `env` adds. It runs outside of any sandbox, as
    the user who started the run: give only servers that you trust with that. A server that cannot be started has no
    tools; one that dies or hangs fails the calls that waited for it, and is started again.

    Args:
        server: a command with its arguments (one text, as in a shell, or a list), or the address of a streamable HTTP
            endpoint.
        name: how it is named in messages, and before its tools' names where two servers have the same.
        env: environment variables of the process.
        headers: headers of every request, such as an authorization.
        cwd: the folder that the process runs in.

    Raises:
        InputError: the SDK is not installed, or there is no command.

    Example:
        >>> mcp("python weather.py --units metric").name                           # doctest: +SKIP
        'weather'
        >>> mcp("http://localhost:8000/mcp").name                                  # doctest: +SKIP
        'localhost'
    """
    if find_spec("mcp") is None:
        raise InputError('MCP servers need mcp, which is not installed: pip install "agentmem[mcp]".')
    url = server.strip() if isinstance(server, str) else ""
    if url.startswith(("http://", "https://")):
        target = Target(url=url, headers=dict(headers or {}))
        return McpServer(target, name or urlsplit(url).hostname or "server")
    try:
        command = tuple(shlex.split(server) if isinstance(server, str) else map(str, server))
    except ValueError as error:
        raise InputError(f"mcp({server!r}): {error}; write the command as in a shell, or as a list.") from None
    if not command:
        raise InputError("mcp(...) needs the command of a server, such as 'python server.py', or an http address.")
    return McpServer(Target(command=command, env=dict(env or {}), cwd=cwd), name or _called(command))


class McpServer:
    """A `ToolServer`; made by `mcp`."""

    def __init__(self, target: Target, name: str) -> None:
        self.name = name
        self._target = target
        self._session: Session | None = None
        self._failure: tuple[float, ToolError] | None = None
        self._unanswered = 0

    async def tools(self) -> Sequence[Tool]:
        """Its tools, as it lists them."""
        listed = await (await self._running()).ready()
        return [_McpTool(self, about) for about in listed]

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> CallToolResult:
        """Call one of its tools; see `Session.call`."""
        session = await self._running()
        try:
            result = await session.call(tool, arguments, seconds)
        except TimeoutError:
            self._unanswered += 1
            if self._unanswered >= TIMEOUTS:
                session.end()
                self._unanswered = 0
            raise
        self._unanswered = 0
        return result

    async def close(self) -> None:
        """End its process and the connection."""
        session, self._session = self._session, None
        self._failure = None
        if session is not None:
            await session.close()

    async def _running(self) -> Session:
        loop = asyncio.get_running_loop()
        session = self._session
        if session is None or session.over or session.loop is not loop:
            if self._failure is not None and loop.time() < self._failure[0]:
                raise ToolError(str(self._failure[1]), error_class="no_server")
            session = self._session = Session(self._target, self.name)
        try:
            await session.ready()
        except ToolError as error:
            self._failure = (loop.time() + PAUSE_SECONDS, error)
            raise
        self._failure = None
        return session

    def __repr__(self) -> str:
        return f"mcp({self.name!r})"


class _McpTool(Tool):
    """A tool that lives in a server."""

    def __init__(self, server: McpServer, about: Listed) -> None:
        self._server, self._remote = server, about.name
        self.untrusted = True
        self.name = re.sub(r"[^A-Za-z0-9_-]+", "_", about.name)[:64] or "tool"
        described = (about.description or about.title or about.name).strip()
        self.description = described[:DESCRIPTION_CHARACTERS]
        parameters = {"type": "object", "properties": {}} | about.input_schema
        self.spec = ToolSpec(name=self.name, description=self.description, parameters=parameters)

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Call it; the server checks the arguments."""
        try:
            values = json.loads(arguments.strip() or "{}")
        except ValueError as error:
            raise _no_object(self.name, str(error)) from None
        if not isinstance(values, dict):
            raise _no_object(self.name, f"it is {type(values).__name__}")
        # A little less than the call may take, so that the server is told that nobody waits any more.
        seconds = max(0.1, context.seconds - min(0.5, 0.1 * context.seconds))
        result = await self._server.call(self._remote, values, seconds)
        text = _as_text(result)
        if result.is_error:
            raise ToolError(text or f"{self.name} failed without a word.", error_class="tool")
        return ToolOutput(text or "(no output)", source=f"mcp:{self._server.name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """It is no function of this process."""
        raise TypeError(f"{self.name} lives in the MCP server {self._server.name!r}; call it through a Toolbox.")


def _no_object(name: str, why: str) -> ToolError:
    return ToolError(
        f"The arguments of {name} are no valid JSON object ({why}). Send one JSON object.", error_class="arguments"
    )


def _as_text(result: CallToolResult) -> str:
    """All text of a result; what is no text is named."""
    parts = [_part(block) for block in result.content]
    if not any(parts) and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    return "\n".join(part for part in parts if part)


def _part(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {len(block.data) * 3 // 4096} kB, which you are not shown]"
        case "resource_link":
            return f"[{block.name}: {block.uri}]"
        case "resource":
            text = getattr(block.resource, "text", None)
            return str(text) if text is not None else f"[{block.resource.uri}, binary]"
        case other:
            return f"[{other}]"


def _called(command: Sequence[str]) -> str:
    """A short name: of the script where there is one, else of the last word that is no option."""
    words = [PurePath(word) for word in command if not word.startswith("-")]
    script = next((word for word in words if word.suffix in (".py", ".js", ".ts")), None)
    return (script.stem if script else words[-1].name if words else "") or "server"
