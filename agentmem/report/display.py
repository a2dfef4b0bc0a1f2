"""Which display shows a run: live on a terminal, plain lines elsewhere, JSON lines, or none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from agentmem.events import Listener

Mode = Literal["auto", "live", "plain", "json", "none"]


@contextmanager
def display(mode: Mode = "auto") -> Iterator[tuple[Listener, ...]]:
    """The listeners of one display, alive inside the context. All displays write to standard error.

    Args:
        mode: `auto` is live on a terminal and none elsewhere, as a library should be quiet.
    """
    if mode == "auto":
        mode = "live" if sys.stderr.isatty() else "none"
    match mode:
        case "live":
            from agentmem.report.live import live

            with live() as listener:
                yield (listener,)
        case "plain":
            from agentmem.report.plain import PlainLines

            yield (PlainLines(sys.stderr).hear,)
        case "json":
            from agentmem.report.json_lines import JSONLines

            yield (JSONLines(sys.stderr).hear,)
        case "none":
            yield ()
