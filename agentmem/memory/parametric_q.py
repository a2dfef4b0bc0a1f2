"""Values of cases by a small network: p(success | s, c) over frozen embeddings (2508.16153, equations 14 to 16)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmem.memory.case_policy import ALPHA, Candidates, Slate
from agentmem.memory.kernel_q import blended
from agentmem.memory.value_network import Fit, Replay, ValueNetwork

if TYPE_CHECKING:
    from agentmem.memory.case_policy import Floats

EVERY = 16
"""Attempts between two trainings, so that a single write stays cheap."""


class ParametricQ:
    """Draws from mu0 exp(Q/alpha), with Q of a network that is trained online from a replay buffer.

    The network learns the difference from what tasks like this one bring (it starts from exactly that), so how hard
    a task is needs no weights. Whoever holds the log calls `learn` with the latest uses, after every `EVERY` attempts.

    Args:
        alpha: how far values move the shares.
        seed: of the first weights and of the order of examples; the same log gives the same network.

    Example:
        >>> ParametricQ(seed=1).fit is None
        True
    """

    def __init__(self, *, alpha: float = ALPHA, seed: int = 0) -> None:
        self.alpha = alpha
        self.seed = seed
        self.every = EVERY
        self.seen = 0
        """The last use of the bank's log that its weights know."""
        self.fit: Fit | None = None
        """How well the network told cases apart after its last training, on queries that it was not trained on."""
        self._network: ValueNetwork | None = None

    @property
    def name(self) -> str:
        """The policy, with what determines it."""
        return f"parametric_q(alpha={self.alpha:g}, seed={self.seed})"

    def learn(self, replay: Replay) -> Fit:
        """Train on the latest uses; a validation part of the queries stays out of it."""
        held = self._network
        network = held.copy() if held else ValueNetwork.fresh(replay.dimensions, seed=self.seed)
        self.fit, self._network = network.train(replay, seed=self.seed), network
        return self.fit

    def values(self, candidates: Candidates) -> Floats:
        """Q(s, c) of all candidates, and last of "no case"."""
        import numpy as np

        n = len(candidates)
        q = np.full(n, candidates.baseline)
        if self._network is not None and n:
            states = np.broadcast_to(candidates.state, (n, len(candidates.state)))
            q = self._network.values(states, candidates.vectors, q)
        return np.append(q, candidates.no_case)

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        """A slate drawn from mu."""
        return blended(candidates, self.values(candidates), self.alpha, k, seed=seed)

    def saved(self) -> bytes:
        """The network as safetensors; empty before the first training."""
        return self._network.saved() if self._network else b""

    def load(self, saved: bytes) -> None:
        """Go on from a saved network.

        Raises:
            InputError: these are no weights of it.
        """
        self._network = ValueNetwork.loaded(saved) if saved else None
