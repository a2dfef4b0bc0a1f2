"""The `python` tool: runs code in a killable process, in the attempt's own working folder."""

from __future__ import annotations

import sys
from pathlib import Path

from agentmem.errors import ToolError
from agentmem.sandbox.process import ProcessResult, run_script
from agentmem.tools.tool import ToolContext, tool

MEMORY_MB = 2048
"""Address space that the code may take."""


@tool
async def python(code: str, context: ToolContext) -> str:
    """Run Python code and return what it prints, and the value of a last expression.

    Every call starts afresh: variables do not carry over from call to call, but files in the working folder do.

    Args:
        code: the Python code to run.
        context: where it runs; the model is not told.
    """
    context.folder.mkdir(parents=True, exist_ok=True)
    result = await run_script(
        [sys.executable, "-I", "-u", str(Path(__file__).with_name("python_main.py"))],
        stdin=code,
        cwd=context.folder,
        # A little less than the call may take, so that what was printed until then is still told.
        seconds=max(0.1, context.seconds - min(0.5, 0.1 * context.seconds)),
        memory_mb=MEMORY_MB,
    )
    return _told(result)


def _told(result: ProcessResult) -> str:
    """The output, or an error that ends with why there is no more of it."""
    output = (result.stdout + result.stderr).rstrip("\n")
    if result.ok:
        return output or "(no output)"
    if result.timed_out:
        why = f"The code was stopped after {result.seconds:.1f} s."
        raise TimeoutError(f"{why} Output until then:\n{output}" if output else why)
    if result.flooded:
        why = "The code was stopped because it wrote too much."
    elif result.signal:
        why = f"The code was ended by {result.signal}."
    else:
        why = f"Exit status {result.exit_status}."
    raise ToolError(f"{output}\n{why}".lstrip())
