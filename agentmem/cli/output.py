"""What a verb prints: data to standard output, progress to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from agentmem.errors import AgentMemError


@dataclass(frozen=True)
class OutputOptions:
    """How results and progress are shown."""

    json: bool = False
    """Print results as JSON, and progress as JSON lines."""
    progress: Literal["auto", "live", "plain", "none"] = "auto"
    """How progress is shown; auto is live on a terminal and plain lines elsewhere."""

    def display(self) -> Any:
        """The display of a run under way."""
        from agentmem.report.display import display

        if self.json:
            return display("none" if self.progress == "none" else "json")
        return display("plain" if self.progress == "auto" and not sys.stderr.isatty() else self.progress)

    def show(self, result: Any) -> None:
        """Print a result that has `table()` and `to_json()`."""
        if self.json:
            write_json(result.to_json())
        elif sys.stdout.isatty():
            from rich.console import Console

            _written(lambda: Console().print(result.table()))
        else:
            write(str(result.table()))

    def show_fields(self, **facts: Any) -> None:
        """Print named facts."""
        if self.json:
            write_json(json.dumps(facts, default=str))
        else:
            write("\n".join(f"{name}: {value}" for name, value in facts.items()))


def write(text: str) -> None:
    """Print a text, in characters that standard output can show."""
    from agentmem.format import printable

    _written(lambda: print(printable(text, sys.stdout.encoding), flush=True))


def write_json(text: str) -> None:
    """Print JSON; what standard output cannot show is escaped, so that the content is the same."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        text = "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text)
    _written(lambda: print(text.rstrip(), flush=True))


def _written(write: Callable[[], None]) -> None:
    try:
        write()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise AgentMemError(f"Standard output cannot be written ({error.strerror}).") from error
