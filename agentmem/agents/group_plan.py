"""How many rollouts a group gets: a fixed number, or as many as it takes to see a contrast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentmem.domain.rollout import Rollout, spread_teaches


class GroupPlan(Protocol):
    """Decides, as rollouts come in, how many more a group gets."""

    @property
    def most(self) -> int:
        """Rollouts that a group can have at most."""
        ...

    def more(self, rollouts: Sequence[Rollout]) -> int:
        """How many more to draw, given those that are in; 0 ends the group. At first there are none."""
        ...


@dataclass(frozen=True)
class Fixed:
    """Always the same number (G in the paper)."""

    most: int

    def more(self, rollouts: Sequence[Rollout]) -> int:
        """All at first, none later."""
        return 0 if rollouts else self.most


@dataclass(frozen=True)
class Adaptive:
    """A first few, then small rounds while all are alike and there is something to win, up to the most.

    It stops on contrast, so a group's mean is biased: it serves to find contrast, never to report a score.

    Args:
        most: rollouts at most.
        first: rollouts to begin with.
        round: rollouts of each further round.
        gap: what best minus worst must exceed to be a contrast; see `spread_teaches`.
        critique: whether a group that is all wrong is refined afterwards. That takes one call and mostly succeeds, so
            such a group gets no further rounds.
    """

    most: int
    first: int = 2
    round: int = 2
    gap: float | None = None
    critique: bool = False

    def more(self, rollouts: Sequence[Rollout]) -> int:
        """Another round, unless there is contrast, nothing left to win, or no room."""
        if not rollouts:
            return min(self.first, self.most)
        known = [rollout.score for rollout in rollouts if rollout.score is not None]
        solved = bool(known) and min(known) >= 1  # a rare failure is worth less than the same rollouts elsewhere
        refined = self.critique and bool(known) and max(known) <= 0
        if spread_teaches(known, self.gap) or solved or refined:
            return 0
        return min(self.round, self.most - len(rollouts))
