"""A program run for a model, in the sandbox and the attempt's working folder; and what it is told of its fate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from agentmem.errors import ToolError
from agentmem.sandbox.process import ProcessResult
from agentmem.sandbox.sandbox import Limits, Sandbox, find_sandbox
from agentmem.tools.tool import ToolContext


async def run_program(
    argv: Callable[[Sandbox], Sequence[str]],
    context: ToolContext,
    *,
    noun: str,
    stdin: str = "",
    shown: Sequence[Path] = (),
) -> str:
    """Run a program and return what it prints.

    Args:
        argv: the program with its arguments, as it is called in a sandbox.
        context: where it runs.
        noun: what it is called in messages, such as `code`.
        stdin: what it can read.
        shown: files of the package that it may read.

    Raises:
        ToolError: it failed or was killed; the message holds its output and ends with why.
        TimeoutError: it took too long; the message holds its output until then.
        SandboxError: it could not be started.
    """
    context.folder.mkdir(parents=True, exist_ok=True)
    sandbox = await find_sandbox(context.sandbox)
    # A little less than the call may take, so that what was printed until then is still told.
    # The task's own files too: what `read_file` opens, code may open by the same path.
    shown = [*shown, *(file for file in context.files if file.is_file())]
    limits = Limits(seconds=max(0.1, context.seconds - min(0.5, 0.1 * context.seconds)))
    result = await sandbox.run(argv(sandbox), folder=context.folder, stdin=stdin, limits=limits, shown=shown)
    return _told(result, noun, limits)


def _told(result: ProcessResult, noun: str, limits: Limits) -> str:
    """The output, or an error that ends with why there is no more of it."""
    output = (result.stdout + result.stderr).rstrip("\n")
    if result.ok:
        return output or "(no output)"
    if result.timed_out:
        why = f"The {noun} was stopped after {result.seconds:.1f} s."
        raise TimeoutError(f"{why} Output until then:\n{output}" if output else why)
    if result.flooded:
        kind, why = "flooded", f"The {noun} was stopped because it wrote too much."
    elif result.out_of_memory:
        kind = "out_of_memory"
        why = f"The {noun} was stopped because it took too much memory (the limit is {limits.memory_mb} MB)."
    elif result.too_many_processes:
        kind = "too_many_processes"
        why = f"The {noun} was stopped because it started too many processes (the limit is {limits.processes})."
    elif result.signal:
        kind, why = "signal", f"The {noun} was ended by {result.signal}."
    else:
        kind, why = "exit_status", f"Exit status {result.exit_status}."
    raise ToolError(f"{output}\n{why}".lstrip(), error_class=kind)
