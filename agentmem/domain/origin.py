"""Where something learned came from: the group of rollouts that taught it."""

from __future__ import annotations

from agentmem.domain.value import Value


class Origin(Value):
    """One group of rollouts; the journal holds them under this place."""

    step: int
    """The learning step, counted from 0 over all epochs."""
    task_id: str
    rollouts: tuple[int, ...] = ()
    """Which of the group's rollouts it rests on."""
    rewards: tuple[float, ...] = ()
    """The scores of the whole group, in order."""
    extractor: str = ""
