"""mu(c|s, M): which cases a state recalls (2508.16153, section 3), as shares over the nearest cases and "no case".

The paper's objective adds the entropy of mu to the reward, so that a bank which only grows looks ever better (by
alpha log|M|). Here mu is held near a reference mu0 instead, by its KL divergence: mu = mu0 exp(Q/alpha) / Z. Gate,
blend of similarity and value, and abstention are then one formula, and with mu0 uniform and no "no case" it is
equation 7.
"""

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
ALPHA = 0.1
"""How far values may move the shares: 0 is greedy in Q, infinity is mu0."""


@dataclass(frozen=True)
class Uses:
    """What came of recalling the candidates earlier, one entry a use, in any order."""

    rows: NDArray[np.intp]
    """[m] which candidate was recalled."""
    cosines: Floats
    """[m] of the state then with the state now."""
    values: Floats
    """[m] reward minus what tasks like that one brought on average: how hard a task is says nothing of its cases."""
    shares: Floats
    """[m] which part of the outcome is the case's; the shares of one slate add up to 1."""

    @classmethod
    def none(cls) -> Uses:
        """Nothing was recalled so far."""
        import numpy as np

        return cls(np.zeros(0, np.intp), np.zeros(0), np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Candidates:
    """The nearest cases of a state, most similar first, and what is known of their use."""

    state: NDArray[np.float32]
    """[dimensions]"""
    vectors: NDArray[np.float32]
    """[n, dimensions], the states of the cases."""
    cosines: Floats
    """[n]"""
    rewards: Floats
    """[n] what each was worth when it was written; NaN where that is not known."""
    uses: Uses
    baseline: float
    """q0: the running mean reward of tasks like this one."""
    no_case: float
    """The running mean reward of answers to tasks like this one that were given without a case."""
    no_case_mass: float = 0.0
    """How many such answers that rests on, weighed by their nearness."""

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
    dropped: int | None = None
    """The row that was left out to learn what it is worth."""
    whole: float = 1.0
    """Probability with which nothing is left out of it."""


class CasePolicy(Protocol):
    """Chooses a slate of cases; one file per policy."""

    @property
    def name(self) -> str:
        """The policy, with what determines it."""
        ...

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """At most `k` of the candidates; fewer, or none, where recalling nothing is better."""
        ...


class ValuePolicy(CasePolicy, Protocol):
    """A policy that believes something of what a recall is worth."""

    @property
    def alpha(self) -> float:
        """How far values may move the shares."""
        ...

    def values(self, candidates: Candidates) -> Floats:
        """Q(s, c) of all candidates, and last of "no case"."""
        ...


def reference(cosines: Floats) -> Floats:
    """mu0: the softmax of similarity over the candidates, and last the item "no case".

    A cosine that is no number (an embedder's fault) gets no share, so that it is never recalled.
    """
    import numpy as np

    known = np.where(np.isfinite(cosines), cosines, -np.inf)
    return softmax(np.append(known, NO_CASE) / TEMPERATURE)


def softmax(logits: Floats) -> Floats:
    """Shares proportional to the exponentials, whatever their size."""
    import numpy as np

    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def preferences(mu0: Floats, q: Floats, alpha: float) -> Floats:
    """Log mu0 + Q/alpha, for a finite alpha above 0: the logits of mu. What has no share in mu0 gets none."""
    import numpy as np

    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mu0) + np.where(mu0 > 0, q, 0.0) / alpha, dtype=np.float64)


def tilted(mu0: Floats, q: Floats, alpha: float) -> Floats:
    """Mu = mu0 exp(Q/alpha), normalised.

    Args:
        mu0: shares of the reference, which sum to 1.
        q: values, one a share.
        alpha: 0 gives all to the largest Q (to equals in proportion to mu0), infinity gives mu0 back.

    Example:
        >>> import numpy as np
        >>> tilted(np.array([0.5, 0.5]), np.array([1.0, 0.0]), alpha=0).tolist()
        [1.0, 0.0]
    """
    import numpy as np

    if alpha == 0:
        best = np.where(mu0 > 0, q, -np.inf)
        mu = np.where(best == best.max(), mu0, 0.0)
        return np.asarray(mu / mu.sum(), dtype=np.float64)
    return mu0 if alpha == np.inf else softmax(preferences(mu0, q, alpha))


def soft_value(mu0: Floats, q: Floats, alpha: float) -> float:
    """Alpha log sum mu0 exp(Q/alpha): what a state is worth to a policy that pays alpha for leaving mu0.

    It lies between the mean of Q under mu0 (alpha to infinity) and the largest Q that mu0 supports (alpha = 0). (The
    paper's equations 8, 10 and 24 leave 1/alpha out of the exponential, which is right for alpha = 1 alone.)
    """
    import numpy as np

    supported = mu0 > 0
    if alpha == np.inf:
        return float(mu0[supported] @ q[supported])
    most = float(q[supported].max())
    if alpha == 0:
        return most
    rest = float(mu0[supported] @ np.exp((q[supported] - most) / alpha)) / float(mu0.sum())
    return most + alpha * float(np.log(rest))


def soft_target(reward: float, following: Candidates | None, policy: ValuePolicy, *, gamma: float = 1.0) -> float:
    """What Q of a step learns towards: r + gamma alpha log sum mu0 exp(Q/alpha), over the next state of the episode.

    Args:
        reward: of the step.
        following: the candidates of the episode's next state; None at its end, where nothing is added.
        policy: whose values.
        gamma: how much later rewards count; 1 within an episode.
    """
    if following is None:
        return reward
    later = soft_value(reference(following.cosines), policy.values(following), policy.alpha)
    return reward + gamma * later
