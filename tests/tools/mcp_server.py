"""A real MCP server for the tests: `python mcp_server.py [http PORT]`."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from mcp.server import MCPServer

server = MCPServer("demo")


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Raise."""
    raise ValueError("on purpose")


@server.tool()
def die() -> str:
    """End the process."""
    os._exit(3)


@server.tool()
def hang() -> str:
    """Answer never."""
    time.sleep(3600)
    return ""


@server.tool(name="odd.name/x")
def odd() -> str:
    """Bear a name that models refuse."""
    return "odd"


@server.tool()
def pid() -> str:
    """Start a child that outlives its parent, and name both."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    return f"{os.getpid()} {child.pid}"


@server.tool()
def environment() -> str:
    """Name all variables."""
    return " ".join(sorted(os.environ))


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
