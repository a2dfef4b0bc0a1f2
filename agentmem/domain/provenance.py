"""Where a remembered entry comes from, and whether it may reach a prompt: the same for cases and for experiences."""

from __future__ import annotations

from typing import Literal

from agentmem.domain.value import Value

Trust = Literal["trusted", "quarantined"]
"""Whether an entry may reach a prompt: what rests on untrusted text is quarantined until something verifies it."""


class Provenance(Value):
    """Where an entry came from."""

    source: str = ""
    """Who brought it: a run's name, `person`, `correction`, or the name of an imported file."""
    place: str = ""
    """The slot of the run, or the row of the file."""
    untrusted: bool = False
    """Whether text from outside had a part in it: from the web, a file, a tool, or a stranger who asked."""
