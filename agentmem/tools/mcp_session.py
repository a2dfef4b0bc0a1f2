"""One connection to an MCP server, held open by a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from agentmem.errors import ToolError

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as Listed

START_SECONDS = 30.0
"""Seconds that a server may take to start and to list its tools."""
CLOSE_SECONDS = 10.0
"""Seconds that its end may take; the SDK itself kills it after about 4."""
TOOLS = 500
"""Tools that one server may list."""


@dataclass(frozen=True)
class Target:
    """Where a server is: a command to start, or an address."""

    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None


class Session:
    """Starts at once; use it after `await session.ready()`.

    The SDK's connection must be opened and closed by the same task, and calls come from any, so a task is made that
    does nothing else.
    """

    def __init__(self, target: Target, name: str) -> None:
        self._target, self._name = target, name
        self.loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[tuple[Client, list[Listed]]] = self.loop.create_future()
        self._stop = asyncio.Event()
        self._task = self.loop.create_task(self._hold(), name=f"mcp-{name}")

    @property
    def over(self) -> bool:
        """Whether it has ended, or belongs to a loop that has."""
        return self._task.done() or self._stop.is_set() or self.loop.is_closed()

    async def ready(self) -> list[Listed]:
        """The server's tools, when it has started.

        Raises:
            ToolError: it could not be started, or gave no answer.
        """
        return (await asyncio.shield(self._opened))[1]

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> CallToolResult:
        """Call a tool.

        Raises:
            TimeoutError: there was no answer in time; the server is told that none is wanted any more.
            ToolError: the server refused, crashed, or answered what is no result.
        """
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        client, _ = await asyncio.shield(self._opened)
        try:
            return await client.call_tool(tool, arguments, read_timeout_seconds=seconds)
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                raise TimeoutError(f"the server {self._name!r} gave no answer within {seconds:.1f} s") from None
            if error.code != CONNECTION_CLOSED:
                raise ToolError(f"The server {self._name!r} refused: {error}", error_class="refused") from None
            problem = "ended while it was asked"
        except Exception as error:  # whatever a garbled answer makes of the SDK
            if not self._task.done() and not isinstance(error, OSError) and "Resource" not in type(error).__name__:
                told = (
                    f"The server {self._name!r} gave no valid answer ({type(error).__name__}: {str(error)[:300]})."
                )
                raise ToolError(told, error_class="unreadable") from None
            problem = "cannot be reached any more"
        self.end()
        raise ToolError(
            f"The server {self._name!r} {problem}; it is started again with the next call.",
            error_class="no_server",
        )

    def end(self) -> None:
        """Let it go; its process is killed soon."""
        self._stop.set()

    async def close(self) -> None:
        """End it, and wait until its process is gone."""
        self.end()
        if self.loop is asyncio.get_running_loop():
            done, _ = await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
            if not done:
                self._task.cancel()
                await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)

    async def _hold(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(START_SECONDS):
                        client = await self._connect(stack, errors)
                        tools = await _listed(client)
                    self._opened.set_result((client, tools))
                    await self._stop.wait()
            except BaseException as error:
                if not self._opened.done():
                    self._opened.set_exception(self._failure(error, errors))
                    self._opened.exception()  # perhaps nobody waits for it
                if isinstance(error, asyncio.CancelledError):
                    raise
                # A broken connection is noticed by whoever calls; there is nobody to tell here.

    async def _connect(self, stack: AsyncExitStack, errors: IO[str]) -> Client:
        from mcp import Client, StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        target = self._target
        if target.url:
            from mcp.shared._httpx_utils import create_mcp_http_client

            http = await stack.enter_async_context(create_mcp_http_client(headers=dict(target.headers)))
            transport = streamable_http_client(target.url, http_client=http)
        else:
            main = str(Path(__file__).with_name("mcp_main.py"))
            parameters = StdioServerParameters(
                command=sys.executable,
                args=["-I", "-S", main, *target.command],
                env=dict(target.env),
                cwd=target.cwd,
                encoding_error_handler="replace",
            )
            transport = stdio_client(parameters, errlog=errors)  # type: ignore[arg-type]
        return await stack.enter_async_context(Client(transport, cache=None))

    def _failure(self, error: BaseException, errors: IO[str]) -> ToolError:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        why = (
            f"gave no answer within {START_SECONDS:g} s"
            if isinstance(error, TimeoutError)
            else "could not be started"
        )
        with contextlib.suppress(OSError, ValueError):
            errors.seek(0)
            last = " ".join(errors.read().split())[-300:]
            return ToolError(
                f"The MCP server {self._name!r} {why}: {last or _short(error)}.", error_class="no_server"
            )
        return ToolError(f"The MCP server {self._name!r} {why}: {_short(error)}.", error_class="no_server")


async def _listed(client: Client) -> list[Listed]:
    tools: list[Listed] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) >= TOOLS:
            return tools[:TOOLS]


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}" if str(error) else type(error).__name__
