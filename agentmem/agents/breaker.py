"""Stops a run whose reward gives none, before it spends more on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentmem.domain.rollout import Rollout
from agentmem.errors import TooManyErrors

UNREWARDED = 6
"""So many attempts, of two tasks at least, and none with a reward: then it is the reward that is broken."""


@dataclass(slots=True)
class Unrewarded:
    """Looks at the first attempts of a phase."""

    _attempts: int = 0
    _tasks: set[str] = field(default_factory=set)
    _over: bool = False
    """An attempt was not brought down by the reward, so the usual share of errors decides."""

    def count(self, rollout: Rollout) -> None:
        """One more attempt.

        Raises:
            TooManyErrors: the reward failed on each of the first ones.
        """
        self._over |= rollout.failure is not None or rollout.reward.status != "error"
        if self._over:
            return
        self._attempts += 1
        self._tasks.add(rollout.task_id)
        if self._attempts >= UNREWARDED and len(self._tasks) > 1:
            raise TooManyErrors(
                f"None of the first {self._attempts} attempts got a reward: {rollout.reward.feedback.rstrip('.')}. "
                "Mend the reward and start the same command again; what succeeded is stored."
            )
