"""Runs Python code from standard input as a notebook runs a cell: standard library only, started by its path."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import traceback
import types

NAME = "<code>"


def main() -> None:
    """Run the code, print the value of a last expression, and show a short traceback of what it raises."""
    os.dup2(1, 2)  # one stream, so that prints and tracebacks come in their order
    source = sys.stdin.buffer.read().decode("utf-8", "replace")
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    kept, sys.modules["__main__"] = sys.modules["__main__"], module
    sys.path.insert(0, os.getcwd())
    sys.argv = [""]
    status = 0
    try:
        _run(source, module.__dict__)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException as error:
        sys.stdout.flush()
        _show(error)
        status = 1
    sys.modules["__main__"] = kept
    try:
        sys.stdout.flush()
    except OSError:
        status = status or 1
    sys.exit(status)


def _run(source: str, names: dict[str, object]) -> None:
    tree = ast.parse(source, NAME)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NAME, "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), NAME, "eval"), names)
        if value is not None:
            print(repr(value))


def _show(error: BaseException) -> None:
    """Print the traceback from the first frame of the user's code on."""
    shown = traceback.TracebackException.from_exception(error, limit=None)
    _shorten(shown)
    sys.stderr.write("".join(shown.format()))
    sys.stderr.flush()


def _shorten(shown: traceback.TracebackException | None) -> None:
    if shown is None:
        return
    frames = list(shown.stack)
    first = next((n for n, frame in enumerate(frames) if frame.filename == NAME), len(frames))
    frames = frames[first:]
    if len(frames) > 12:
        frames = frames[:4] + frames[-8:]
    shown.stack = traceback.StackSummary.from_list(frames)
    _shorten(shown.__cause__)
    _shorten(shown.__context__)


if __name__ == "__main__":
    main()
