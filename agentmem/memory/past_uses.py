"""What came of earlier attempts, in memory: how well tasks like this one go, and what each case's recalls brought."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentmem.memory.case_policy import Uses

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

USES = 64
"""Latest uses of a case that count: what it was worth long ago, under another model, says little of now."""
RECENT = 1024
"""Latest attempts that the running means of tasks like this one look at."""
NEARNESS = 0.1
"""Bandwidth of "like this one": an attempt at cosine .9 weighs 1/e of one at the same state."""
PRIOR = 1.0
"""Attempts that a wider mean counts for, where there are few near ones: the more, the longer an easy task's cases are
credited with its easiness."""
HELD = 65536
"""Uses kept in memory; the cases that were asked for longest ago go first."""


@dataclass(frozen=True)
class Attempt:
    """One attempt that was rewarded."""

    state: Vector
    reward: float
    baseline: float
    """What tasks like this one brought on average before it."""
    without: bool
    """Whether it was made without a case."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Which part of the outcome is whose, by the id of a case."""

    @property
    def value(self) -> float:
        """What its cases are credited with: how much better it went than such tasks go."""
        return self.reward - self.baseline


@dataclass(frozen=True)
class Baselines:
    """Running means of tasks like the present one."""

    reward: float
    """Over all attempts (q0)."""
    without: float
    """Over those that were made without a case."""
    without_mass: float
    """How many of these it rests on, weighed by nearness."""


class PastUses:
    """The latest attempts, and the uses of those cases that were asked for.

    Uses of a case are loaded by whoever holds the disk (`missing`, then `load`); attempts made since are `add`ed.

    Args:
        dimensions: of a state.
    """

    def __init__(self, dimensions: int) -> None:
        import numpy as np

        self._states = np.zeros((RECENT, dimensions), np.float32)
        self._rewards = np.zeros((2, RECENT))
        self._weights = np.zeros((2, RECENT))
        self._sums, self._counts = np.zeros(2), np.zeros(2)
        self._next = 0
        self._cases: dict[str, _Row] = {}
        self._held = 0

    def add(self, attempt: Attempt) -> None:
        """One attempt more."""
        self.recent([attempt])
        self.total(attempt.reward, attempt.without)
        for id, share in attempt.shares.items():
            if id in self._cases:
                self._held += self._cases[id].add(attempt.state, attempt.value, share)

    def recent(self, attempts: Iterable[Attempt]) -> None:
        """Attempts for the local means, oldest first."""
        for attempt in attempts:
            place = self._next % RECENT
            self._next += 1
            self._states[place] = attempt.state
            self._weights[:, place] = (1.0, float(attempt.without))
            self._rewards[:, place] = self._weights[:, place] * attempt.reward

    def total(self, reward: float, without: bool, count: int = 1) -> None:
        """Count rewards (their sum) for the means over all attempts."""
        kinds = slice(0, 2) if without else slice(0, 1)
        self._sums[kinds] += reward
        self._counts[kinds] += count

    def baselines(self, state: Vector) -> Baselines:
        """Kernel-weighted means of rewards around a state.

            q0(s) = (sum k(s, s_i) r_i + m) / (sum k(s, s_i) + 1),    k = exp((cos - 1)/0.1)

        over the latest 1024 attempts, with m the mean over all attempts (which itself starts from one half, counted
        as one attempt). Attempts without a case have a mean of their own in the same way; it is shrunk to their
        mean over all states, and that to m.
        """
        import numpy as np

        n = min(self._next, RECENT)
        near = np.exp((self._states[:n] @ state - 1) / NEARNESS)
        sums, masses = self._rewards[:, :n] @ near, self._weights[:, :n] @ near
        everywhere = (self._sums[0] + 0.5) / (self._counts[0] + 1)
        without = (self._sums[1] + PRIOR * everywhere) / (self._counts[1] + PRIOR)
        local = (sums + PRIOR * np.array([everywhere, without])) / (masses + PRIOR)
        return Baselines(float(local[0]), float(local[1]), float(masses[1]))

    def missing(self, ids: Iterable[str]) -> list[str]:
        """The cases whose uses are not in memory."""
        return [id for id in ids if id not in self._cases]

    def load(self, id: str, uses: Iterable[tuple[Vector, float, float]]) -> None:
        """The uses of a case: state, value and share of each, oldest first."""
        row = self._cases[id] = _Row()
        for use in uses:
            self._held += row.add(*use)

    def of(self, ids: Sequence[str], state: Vector) -> Uses:
        """What recalling these cases brought, seen from a state; the rows are places in `ids`."""
        import numpy as np

        used = [(row, self._cases[id]) for row, id in enumerate(ids) if self._cases[id].values]
        if not used:
            return Uses.none()
        while self._held > HELD and (spare := next((id for id in self._cases if id not in ids), None)):
            self._held -= len(self._cases.pop(spare).values)
        return Uses(
            np.repeat(np.array([row for row, _ in used], np.intp), [len(case.values) for _, case in used]),
            np.concatenate([case.matrix() @ state for _, case in used]).astype(np.float64),
            *np.concatenate([case.credits() for _, case in used], axis=1),
        )


class _Row:
    """The latest uses of one case."""

    def __init__(self) -> None:
        self.states: deque[Vector] = deque(maxlen=USES)
        self.values: deque[float] = deque(maxlen=USES)
        self.shares: deque[float] = deque(maxlen=USES)
        self._matrix: Vector | None = None
        self._credits: NDArray[np.float64] | None = None

    def add(self, state: Vector, value: float, share: float) -> int:
        """How many uses it holds more than before."""
        before = len(self.values)
        self.states.append(state)
        self.values.append(value)
        self.shares.append(share)
        self._matrix = self._credits = None
        return len(self.values) - before

    def matrix(self) -> Vector:
        """[uses, dimensions]; stacked when it is asked for, not with each write."""
        import numpy as np

        if self._matrix is None:
            self._matrix = np.stack(self.states)
        return self._matrix

    def credits(self) -> NDArray[np.float64]:
        """[2, uses]: values and shares."""
        import numpy as np

        if self._credits is None:
            self._credits = np.array([self.values, self.shares], dtype=np.float64)
        return self._credits
