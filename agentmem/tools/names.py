"""Tools by the names under which a user asks for them."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from agentmem.errors import InputError
from agentmem.tools.tool import Tool, ToolServer

NAMES = ("calculator", "fetch_page", "mcp:COMMAND", "python", "read_file", "search:FOLDER", "shell")
"""The tools that ship; what stands in capitals is the user's."""


def open_tool(given: str | Tool | ToolServer | Callable[..., Any]) -> Tool | ToolServer:
    """The tool, or the server of tools, that is meant.

    Args:
        given: `python`, `shell`, `calculator`, `fetch_page`; `read_file`, or `read_file:FOLDER` for files beside the
            task's; `search:FOLDER`, or `search:ADDRESS` of a SearxNG server; `mcp:COMMAND ARGUMENTS`, or
            `mcp:ADDRESS`; a `Tool`; a server of tools; or a function with types and a docstring.

    Raises:
        InputError: there is no such tool, or what stands behind its colon cannot be used.

    Example:
        >>> open_tool("calculator").name
        'calculator'
    """
    if isinstance(given, Tool):
        return given
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, ToolServer) and not isinstance(given, type):
        return given
    if callable(given):
        return Tool(given)
    raise InputError(f"{given!r} is no tool; pass a name, a function or a Tool.")


def _named(given: str) -> Tool | ToolServer:
    kind, colon, about = given.partition(":")
    about = about.strip()
    match kind.strip():
        case "python" if not colon:
            from agentmem.tools.python import python

            return python
        case "shell" if not colon:
            from agentmem.tools.shell import shell

            return shell
        case "calculator" if not colon:
            from agentmem.tools.calculator import calculator

            return calculator
        case "fetch_page" if not colon:
            from agentmem.tools.fetch_page import page_fetcher

            return page_fetcher()
        case "read_file" if bool(colon) == bool(about):
            from agentmem.tools.read_file import file_reader

            return file_reader(*([about] if about else []))
        case "search" if about:
            from agentmem.tools.search import search_in

            return search_in(about)
        case "mcp" if about:
            from agentmem.tools.mcp import mcp

            return mcp(about)
        case "search" | "mcp":
            wanted = next(name for name in NAMES if name.startswith(kind.strip()))
            raise InputError(f"Tool {given!r} does not say which; write {wanted!r}.")
    near = get_close_matches(kind, [name.partition(":")[0] for name in NAMES], n=1, cutoff=0.5)
    hint = next((f" Did you mean {name!r}?" for name in NAMES if near and name.partition(":")[0] == near[0]), "")
    raise InputError(f"No tool named {given!r}.{hint} Known: {', '.join(NAMES)}.")
