"""A stretch of a long text, with a line that says how to read on."""

from __future__ import annotations

from agentmem.errors import ToolError

CHARACTERS = 12_000
"""How much of a text is shown at once: about 3,000 tokens, below what a Toolbox cuts from a result."""
LINE_CHARACTERS = 2000
"""Longer lines are broken, so that every text can be read on line by line."""


def excerpt(text: str, *, start: int, what: str) -> str:
    r"""The lines of `text` from `start` on, as many as fit.

    Args:
        text: all of it.
        start: the first line, from 1.
        what: how the text is named in messages.

    Raises:
        ToolError: there is no such line.

    Example:
        >>> print(excerpt("one\ntwo", start=2, what="a.txt"))
        two
    """
    lines = _broken(text)
    if not 1 <= start <= len(lines):
        raise ToolError(
            f"{what!r} has lines 1 to {len(lines)}, so there is none {start}.", error_class="arguments"
        )
    end, size = start - 1, 0
    while end < len(lines) and (size + len(lines[end]) < CHARACTERS or end == start - 1):
        size += len(lines[end]) + 1
        end += 1
    shown = "\n".join(lines[start - 1 : end])
    if end == len(lines):
        return shown
    return f"{shown}\n[Lines {start} to {end} of {len(lines)}. Read on with start={end + 1}.]"


def _broken(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.split("\n"):
        lines += [line[n : n + LINE_CHARACTERS] for n in range(0, max(1, len(line)), LINE_CHARACTERS)]
    return lines
