"""Recalls by the best that a case may be worth: the mean of its posterior plus a bonus for being little known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmem.memory.case_policy import (
    ALPHA,
    TEMPERATURE,
    Candidates,
    Slate,
    preferences,
    reference,
    tilted,
)
from agentmem.memory.kernel_q import enough
from agentmem.memory.slate import ranked, varied
from agentmem.memory.thompson import Posterior

if TYPE_CHECKING:
    from agentmem.memory.case_policy import Floats


@dataclass(frozen=True)
class UCB:
    """The top of mu0 exp(upper bound/alpha). It draws nothing, so its log says nothing of other policies."""

    alpha: float = ALPHA
    bonus: float = 1.0
    """Standard deviations above the mean."""

    @property
    def name(self) -> str:
        """The policy, with what determines it."""
        return f"ucb(alpha={self.alpha:g}, bonus={self.bonus:g})"

    def values(self, candidates: Candidates) -> Floats:
        """Upper bounds of all candidates, and last of "no case"."""
        import numpy as np

        posterior = Posterior.of(candidates)
        return np.asarray(posterior.mean + self.bonus * posterior.deviation, dtype=np.float64)

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """The first `k` by upper bound and similarity, until "no case"."""
        import numpy as np

        mu0, bounds = reference(candidates.cosines), self.values(candidates)
        logits = preferences(mu0, bounds, self.alpha)
        logits = np.where(varied(candidates, logits, k, temperature=TEMPERATURE), logits, -np.inf)
        end = enough(candidates, mu0, self.alpha)
        return Slate(ranked(logits, k, end=end), mu0, tilted(mu0, bounds, self.alpha), bounds)
