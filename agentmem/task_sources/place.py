"""Where in a source something stands, for messages."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from agentmem.errors import InputError


class Place:
    """A line, item or row of a source.

    Args:
        source: the file's path, or the name of another source.
        unit: `line`, `item` or `row`.
        number: which one, from 1.
        id: what a task is called that has no id of its own; by default the number.
    """

    def __init__(self, source: str | os.PathLike[str], unit: str, number: int, *, id: int | None = None) -> None:
        self.source = source
        self.unit = unit
        self.number = number
        self.id = str(number if id is None else id)

    @property
    def spot(self) -> str:
        """Such as `line 3`."""
        return f"{self.unit} {self.number}"

    def refuse(self, why: str) -> NoReturn:
        """Raise an `InputError` that names the place."""
        raise InputError(f"{self.source}, {self.spot}: {why}.") from None


Row = tuple[Place, dict[str, Any]]
"""What stands at a place, under the names that the source gives it."""
