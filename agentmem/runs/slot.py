"""Where in a run something happens: the place under which its result is stored."""

from __future__ import annotations

from typing import NamedTuple


class Slot(NamedTuple):
    """The place of one durable step; equal places hold the same result.

    A cache keyed by content would hand epoch 2 the answers of epoch 1; a place does not.
    """

    phase: str
    """`learn`, `gate/<arm>`, `eval` ..."""
    step: int = 0
    """The learning step, or the gate's round."""
    task: str = ""
    rollout: int = 0
    purpose: str = ""
    """`act`, `tool`, `reward`, `judge`, `rollout`, `decision` ...; `act/p1.a` is `act` in subtask `a` of plan 1."""
    ordinal: int = 0
    """The how-many-th of this purpose at this place, from 0."""

    def __str__(self) -> str:
        place = f"{self.phase}, step {self.step}, task {self.task!r}, rollout {self.rollout}"
        return f"{place}, {self.purpose} {self.ordinal}"
