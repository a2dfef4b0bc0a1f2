"""Values of cases without training: the outcomes of past uses, weighed by how near those were (2508.16153, eq. 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmem.domain.seed import split_seed
from agentmem.memory.case_policy import (
    ALPHA,
    TEMPERATURE,
    Candidates,
    Slate,
    preferences,
    reference,
    softmax,
    tilted,
)
from agentmem.memory.slate import drawn, propensities, ranked, varied

if TYPE_CHECKING:
    from agentmem.memory.case_policy import Floats

BANDWIDTH = 0.05
"""Of the kernel over cosines: a use at cosine .95 weighs 1/e of one at the same state."""
ELSEWHERE = 0.5
"""The least weight of a use: a case is recalled where it is similar, so each of its uses says something."""
PRIOR = 2.0
"""How many uses the baseline counts for."""
OWN = 0.5
"""For how many uses, at its own state, the reward counts that a successful case was written with."""


@dataclass(frozen=True)
class Evidence:
    """What past uses say of each candidate."""

    mass: Floats
    """[n] how many uses it rests on, weighed by nearness and by the case's share in the outcome."""
    advantage: Floats
    """[n] sum of the weighed values."""

    @classmethod
    def of(cls, candidates: Candidates, *, bandwidth: float, elsewhere: float, own: float) -> Evidence:
        """The evidence of a pool.

        A case that was written with a success counts as `own` uses at its own state: who copies it there succeeds.
        A failure does not count, since to be shown a mistake can help as much as to be shown a solution; and neither
        does an unknown reward. It stays below one use, because what was written may be wrong, and only uses tell.
        """
        import numpy as np

        n, uses = len(candidates), candidates.uses
        sound = np.isfinite(uses.values) & np.isfinite(uses.cosines)  # one broken number must not hide the others
        near = kernel(uses.cosines, bandwidth, elsewhere) * uses.shares
        weights, values = np.where(sound, near, 0.0), np.where(sound, uses.values, 0.0)
        mass = np.bincount(uses.rows, weights, minlength=n).astype(np.float64)
        advantage = np.bincount(uses.rows, weights * values, minlength=n).astype(np.float64)
        with np.errstate(invalid="ignore"):
            good = (candidates.rewards >= 0.5) & np.isfinite(candidates.cosines)
            gain = candidates.rewards - candidates.baseline
        at_home = np.where(good, own * kernel(candidates.cosines, bandwidth, elsewhere), 0.0)
        return cls(mass + at_home, advantage + np.where(good, at_home * gain, 0.0))

    def values(self, candidates: Candidates) -> Floats:
        """Q of all candidates, shrunk to the baseline by `PRIOR` uses; and last of "no case"."""
        import numpy as np

        q = candidates.baseline + self.advantage / (self.mass + PRIOR)
        return np.append(q, candidates.no_case)


@dataclass(frozen=True)
class KernelQ:
    """Draws from mu0 exp(Q/alpha), with Q the kernel-weighted mean of past outcomes, shrunk to the baseline.

        Q(s, c) = (sum k(s, s_i) w_i q_i + 2 q0) / (sum k(s, s_i) w_i + 2),    q_i = q0 + value_i

    with w_i the case's share in the outcome. Values are differences from what tasks like that one brought on average,
    so a case that was recalled for easy tasks gets no credit for them.
    """

    alpha: float = ALPHA
    """How far values move the shares: 0 takes the largest Q, infinity draws from mu0."""
    bandwidth: float = BANDWIDTH
    """Of the kernel over cosines."""
    elsewhere: float = ELSEWHERE
    """The least weight of a use, however far its state is; 0 gives the bare kernel."""
    own: float = OWN
    """How many uses the reward of a case that was written as a success counts for."""

    @property
    def name(self) -> str:
        """The policy, with what determines it."""
        kernel = f"bandwidth={self.bandwidth:g}, elsewhere={self.elsewhere:g}"
        return f"kernel_q(alpha={self.alpha:g}, {kernel}, own={self.own:g})"

    def values(self, candidates: Candidates) -> Floats:
        """Q(s, c) of all candidates, and last of "no case"."""
        evidence = Evidence.of(candidates, bandwidth=self.bandwidth, elsewhere=self.elsewhere, own=self.own)
        return evidence.values(candidates)

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """A slate drawn from mu; with `alpha=0` the largest values, for certain."""
        return blended(candidates, self.values(candidates), self.alpha, k, seed=seed)


def kernel(cosines: Floats, bandwidth: float, elsewhere: float) -> Floats:
    """How much a use at this cosine says of the present state: exp((cos - 1)/bandwidth) above a floor."""
    import numpy as np

    return np.asarray(elsewhere + (1 - elsewhere) * np.exp((cosines - 1) / bandwidth), dtype=np.float64)


def blended(candidates: Candidates, q: Floats, alpha: float, k: int, *, seed: int) -> Slate:
    """Similarity and value in one slate: a varied few, then a draw from mu0 exp(Q/alpha)."""
    import numpy as np

    q = np.where(np.isfinite(q), q, candidates.baseline)
    mu0 = reference(candidates.cosines)
    if alpha == 0:
        # The limit, place by place: by value, and of equals the more similar. Nothing is drawn.
        order = np.lexsort((-mu0, -np.where(mu0 > 0, q, -np.inf)))
        places = np.empty(len(mu0))
        places[order] = np.arange(len(mu0))[::-1]
        return Slate(ranked(np.where(mu0 > 0, places, -np.inf), k), mu0, tilted(mu0, q, 0.0), q)
    with np.errstate(divide="ignore"):
        logits = np.log(mu0) if alpha == np.inf else preferences(mu0, q, alpha)
    logits = np.where(varied(candidates, logits, k, temperature=TEMPERATURE), logits, -np.inf)
    end = enough(candidates, mu0, alpha)
    rows = drawn(logits, end, k, np.random.default_rng(split_seed(seed, "slate")))
    chances, ended = propensities(logits, end, rows, k)
    return Slate(rows, mu0, softmax(logits), q, chances, ended)


def enough(candidates: Candidates, mu0: Floats, alpha: float) -> float:
    """The logit of ending a slate that has a case: one more is expected to change nothing, which is worth q0."""
    import math

    return math.log(mu0[-1]) + candidates.baseline / alpha
