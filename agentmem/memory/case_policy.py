"""mu(c|s, M): which cases a state recalls (2508.16153, section 3), as shares over the nearest cases and "no case"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

POOL = 50
"""Nearest cases that a policy chooses from."""
TEMPERATURE = 0.05
"""Of the reference measure over cosines."""
NO_CASE = 0.35
"""The similarity at which recalling nothing is as good as recalling the case."""


@dataclass(frozen=True)
class Uses:
    """What came of recalling one case earlier: in which states, with which credited rewards."""

    states: NDArray[np.float32]
    """[uses, dimensions]"""
    values: Floats
    """[uses]"""


@dataclass(frozen=True)
class Candidates:
    """The nearest cases of a state, most similar first, and what is known of their use."""

    state: NDArray[np.float32]
    """[dimensions]"""
    vectors: NDArray[np.float32]
    """[n, dimensions], the states of the cases."""
    cosines: Floats
    """[n]"""
    uses: tuple[Uses, ...]
    """One entry a case."""
    baseline: float
    """q0: the running mean reward of tasks like this one."""
    no_case: float
    """The running mean reward of answers that were given without a case."""

    def __len__(self) -> int:
        return len(self.cosines)


@dataclass(frozen=True)
class Slate:
    """What a policy chose: rows of the candidates in the order of drawing, with all shares.

    The arrays have one entry a candidate, and a last one for "no case".
    """

    rows: tuple[int, ...]
    mu0: Floats
    mu: Floats
    q: Floats | None = None
    propensities: tuple[float, ...] | None = None
    """One a row; None where nothing was drawn at random."""
    ended: float | None = None
    """Probability that the slate ended where it did; None where nothing was drawn, 1 where it is full."""


class CasePolicy(Protocol):
    """Chooses a slate of cases; one file per policy."""

    @property
    def name(self) -> str:
        """The policy, with what determines it."""
        ...

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """At most `k` of the candidates; fewer, or none, where recalling nothing is better."""
        ...


def reference(cosines: Floats) -> Floats:
    """mu0: the softmax of similarity over the candidates, and last the item "no case"."""
    import numpy as np

    return softmax(np.append(cosines, NO_CASE) / TEMPERATURE)


def softmax(logits: Floats) -> Floats:
    """Shares proportional to the exponentials, whatever their size."""
    import numpy as np

    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@dataclass(frozen=True)
class Similarity:
    """The most similar cases, while they are likelier than "no case"; nothing is learned (the paper's `TopK`)."""

    name: str = "similarity"

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """The first `k` that are above the similarity of "no case"."""
        mu0 = reference(candidates.cosines)
        rows = tuple(row for row in range(len(candidates)) if mu0[row] > mu0[-1])[:k]
        return Slate(rows, mu0, mu0)
