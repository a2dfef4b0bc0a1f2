"""What each experience does to the reward, measured by randomised inclusion, at no extra calls."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from agentmem.domain.experience import Effect, ExperienceLibrary
from agentmem.domain.operation import Delete
from agentmem.domain.rollout import Group

PRIOR_SD = 0.25
"""Prior of an effect, on rewards between 0 and 1: N(0, 0.25^2)."""
EVICT_BELOW = 0.9
"""An experience goes once P(effect < 0) exceeds this."""


@dataclass
class Credit:
    """A regression of reward on inclusion, within groups, over all groups of a run.

    Rewards and inclusion indicators are centred within each group, so that a hard task does not count against what
    it was shown. Groups in which an experience was not eligible, or shown to all, say nothing about it. Refined
    (off-policy) rollouts are left out.

    Args:
        newest: how many rollouts count, the newest ones; by default all.
    """

    newest: int | None = None
    _rows: deque[tuple[float, dict[str, float]]] = field(init=False)

    def __post_init__(self) -> None:
        self._rows = deque(maxlen=self.newest)

    def add(self, groups: Iterable[Group]) -> None:
        """Take groups in; their order does not matter."""
        for group in groups:
            scored = [r for r in group.scored if not r.off_policy]
            eligible = {id for rollout in scored for id in rollout.eligible if rollout.inclusion < 1}
            if len(scored) < 2 or not eligible:
                continue
            mean = sum(r.score or 0.0 for r in scored) / len(scored)
            shares = {id: sum(id in r.mask for r in scored) / len(scored) for id in eligible}
            varied = {id: share for id, share in shares.items() if 0 < share < 1}
            for rollout in scored:
                centred = {id: (id in rollout.mask) - share for id, share in varied.items()}
                if centred:
                    self._rows.append(((rollout.score or 0.0) - mean, centred))

    def effects(self) -> dict[str, Effect]:
        """The posterior of each effect: ridge regression, with the noise estimated from its residuals."""
        # A centred indicator is above 0 exactly where the experience was shown.
        exposures = Counter(id for _, centred in self._rows for id, value in centred.items() if value > 0)
        ids = sorted(exposures)
        if not ids:
            return {}
        place = {id: column for column, id in enumerate(ids)}
        inclusion = np.zeros((len(self._rows), len(ids)))
        reward = np.array([row[0] for row in self._rows])
        for row, (_, centred) in enumerate(self._rows):
            for id, value in centred.items():
                if id in place:
                    inclusion[row, place[id]] = value
        noise = max(float(reward.var()), 1e-4)
        for _ in range(3):  # the noise depends on the fit, and the fit, a little, on the noise
            precision = inclusion.T @ inclusion / noise + np.eye(len(ids)) / PRIOR_SD**2
            covariance = np.linalg.inv(precision)
            means = covariance @ (inclusion.T @ reward) / noise
            residual = reward - inclusion @ means
            noise = max(float(residual @ residual) / max(len(reward) - 1, 1), 1e-4)
        deviations = np.sqrt(np.diag(covariance))
        return {
            id: Effect(
                mean=round(float(means[column]), 6),
                sd=round(float(deviations[column]), 6),
                exposures=exposures[id],
            )
            for id, column in place.items()
        }


def harmful(library: ExperienceLibrary) -> tuple[Delete, ...]:
    """The evictions that the measured effects ask for."""
    return tuple(
        Delete(id=e.id, why=f"P(effect < 0) = {chance:.2f} over {e.effect.exposures} exposures")
        for e in library
        if e.effect is not None and (chance := NormalDist(e.effect.mean, e.effect.sd).cdf(0.0)) > EVICT_BELOW
    )
