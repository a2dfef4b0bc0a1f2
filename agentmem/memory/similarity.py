"""Recalls the most similar cases and learns nothing (the paper's non-parametric read, `TopK` by cosine)."""

from __future__ import annotations

from dataclasses import dataclass

from agentmem.memory.case_policy import Candidates, Slate, reference
from agentmem.memory.slate import ranked


@dataclass(frozen=True)
class Similarity:
    """The most similar cases, while they are likelier than "no case"."""

    name: str = "similarity"

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """The first `k` that are at least as similar as "no case"."""
        import numpy as np

        mu0 = reference(candidates.cosines)
        with np.errstate(divide="ignore"):
            return Slate(ranked(np.log(mu0), k), mu0, mu0)
