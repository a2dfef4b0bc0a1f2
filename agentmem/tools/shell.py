"""The `shell` tool: runs a command line in the sandbox, in the attempt's own working folder."""

from __future__ import annotations

from agentmem.tools.program import run_program
from agentmem.tools.tool import ToolContext, tool

START = 'exec 2>&1; shell=$(command -v bash || echo sh); exec "$shell" -c \'eval "$(cat)"\''
"""One stream, so that output and errors come in their order; bash where there is one. The command comes by standard
input, because an argument has a limit of size, and takes no null character."""


@tool(sandboxed=True)
async def shell(command: str, context: ToolContext) -> str:
    """Run a shell command and return what it prints.

    Every call starts a new shell in the working folder: files stay, variables and the current directory do not.
    There is no network and nothing to type into it.

    Args:
        command: the command line, such as `ls -l | head`.
        context: where it runs; the model is not told.
    """
    return await run_program(lambda _: ("sh", "-c", START), context, noun="command", stdin=command)
