"""The `python` tool: runs code in the sandbox, in the attempt's own working folder."""

from __future__ import annotations

from pathlib import Path

from agentmem.tools.program import run_program
from agentmem.tools.tool import ToolContext, tool

MAIN = Path(__file__).with_name("python_main.py")


@tool(sandboxed=True)
async def python(code: str, context: ToolContext) -> str:
    """Run Python code and return what it prints, and the value of a last expression.

    Every call starts afresh: variables do not carry over from call to call, but files in the working folder do.

    Args:
        code: the Python code to run.
        context: where it runs; the model is not told.
    """
    return await run_program(
        lambda sandbox: (sandbox.python, "-I", "-u", str(MAIN)), context, noun="code", stdin=code, shown=(MAIN,)
    )
