"""Recalls by what a case might be worth: a Beta posterior a case, from which a value is drawn for every place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmem.domain.seed import split_seed
from agentmem.memory.case_policy import ALPHA, TEMPERATURE, Candidates, Slate, preferences, reference, tilted
from agentmem.memory.kernel_q import BANDWIDTH, ELSEWHERE, OWN, PRIOR, Evidence, enough
from agentmem.memory.slate import varied

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentmem.memory.case_policy import Floats

DRAWS = 500
"""Of the posterior, from which propensities are estimated: their error is at most .022."""


@dataclass(frozen=True)
class Posterior:
    """Beta posteriors of all candidates and, last, of "no case"; their mean is `kernel_q`'s Q."""

    a: Floats
    b: Floats

    @classmethod
    def of(cls, candidates: Candidates, *, own: float = OWN) -> Posterior:
        """The posterior of a pool: the baseline counts for `PRIOR` uses, each use for its weight."""
        import numpy as np

        evidence = Evidence.of(candidates, bandwidth=BANDWIDTH, elsewhere=ELSEWHERE, own=own)
        mean = np.clip(evidence.values(candidates), 0.01, 0.99)
        mass = np.append(evidence.mass, candidates.no_case_mass) + PRIOR
        return cls(mean * mass, (1 - mean) * mass)

    @property
    def mean(self) -> Floats:
        """Expected values."""
        return self.a / (self.a + self.b)

    @property
    def deviation(self) -> Floats:
        """Their standard deviations."""
        import numpy as np

        mass = self.a + self.b
        return np.asarray(np.sqrt(self.a * self.b / (mass * mass * (mass + 1))), dtype=np.float64)


@dataclass(frozen=True)
class Thompson:
    """For each place of the slate draws a value for every case left, and takes the best of mu0 exp(value/alpha).

    A case that was rarely used has a wide posterior, and so its turn. The propensity of a place is the share of
    `DRAWS` posterior draws in which this item wins (the one that was acted on counts too, so none is 0).
    """

    alpha: float = ALPHA

    @property
    def name(self) -> str:
        """The policy, with what determines it."""
        return f"thompson(alpha={self.alpha:g})"

    def values(self, candidates: Candidates) -> Floats:
        """Posterior means of all candidates, and last of "no case"."""
        return Posterior.of(candidates).mean

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """A slate of the winners, place after place, until "no case" wins."""
        import numpy as np

        posterior = Posterior.of(candidates)
        mu0 = reference(candidates.cosines)
        logits = preferences(mu0, posterior.mean, self.alpha)
        items = np.flatnonzero(varied(candidates, logits, k, temperature=TEMPERATURE))
        rng = np.random.default_rng(split_seed(seed, "thompson"))
        with np.errstate(divide="ignore"):
            base = np.log(mu0[items])
        a, b = posterior.a[items], posterior.b[items]
        acted = base + rng.beta(a, b, size=(k, len(items))) / self.alpha
        others = base + rng.beta(a, b, size=(DRAWS, len(items))) / self.alpha
        rows, chances, ended = _winners(acted, others, enough(candidates, mu0, self.alpha), k)
        mu = tilted(mu0, posterior.mean, self.alpha)
        return Slate(tuple(int(items[row]) for row in rows), mu0, mu, posterior.mean, chances, ended)


def _winners(
    acted: NDArray[np.float64], others: NDArray[np.float64], end: float, k: int
) -> tuple[list[int], tuple[float, ...], float]:
    """The winner of each place, until the last item wins; and how often it wins."""
    rows: list[int] = []
    chances: list[float] = []
    import numpy as np

    last = acted.shape[1] - 1
    for place in range(k):
        winner = int(np.argmax(acted[place]))
        chance = (1 + int((others.argmax(axis=1) == winner).sum())) / (1 + len(others))
        if winner == last:
            return rows, tuple(chances), chance
        rows.append(winner)
        chances.append(chance)
        acted[:, winner] = others[:, winner] = -np.inf
        acted[:, last] = others[:, last] = end
    return rows, tuple(chances), 1.0
