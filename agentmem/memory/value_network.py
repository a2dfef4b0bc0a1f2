"""A network of one hidden layer in NumPy that learns how likely a case helps; trained online from a replay buffer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmem.domain.seed import split_seed
from agentmem.domain.value import Value
from agentmem.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentmem.memory.case_policy import Floats

    Matrix = NDArray[np.float32]

HIDDEN = 32
EPOCHS = 6
BATCH = 64
RATE = 3e-3
DECAY = 1e-2
"""Adam's step, and the weights' decay with it."""
HELD_OUT = 5
"""One query in so many is kept for validation."""
BUFFER = 1024
"""Latest uses that are trained on."""


@dataclass(frozen=True)
class Replay:
    """The latest uses of cases, one row a use, oldest first."""

    states: Matrix
    """[m, dimensions] when it was recalled"""
    cases: Matrix
    """[m, dimensions] the states of the cases"""
    rewards: Floats
    """[m] between 0 and 1"""
    baselines: Floats
    """[m] what tasks like that one brought on average"""
    shares: Floats
    """[m]"""

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def dimensions(self) -> int:
        """Of a state."""
        return int(self.states.shape[1])


class Fit(Value):
    """How well a network tells cases apart, on queries that it was not trained on.

    Both figures look at held-out queries alone: a split by rows would reward knowing how hard a query is.
    """

    trained: int
    """Uses that it was trained on."""
    held_out: int
    """Uses of held-out queries."""
    auc: float | None
    """Within a query, how often the use that went better has the larger value; None without such pairs."""
    pairs: int
    """Pairs that it rests on."""
    ece: float | None
    """Expected calibration error over ten bins; None where nothing is held out."""


class ValueNetwork:
    """p = sigmoid(logit(baseline) + W2 relu(W1 x + b1) + b2), with x of (s, c, |s-c|, s*c, cosine)."""

    def __init__(self, weights: dict[str, Matrix]) -> None:
        self.weights = weights

    @classmethod
    def fresh(cls, dimensions: int, *, seed: int) -> ValueNetwork:
        """A network that says the baseline of everything."""
        import numpy as np

        rng = np.random.default_rng(split_seed(seed, "value_network"))
        inputs = 4 * dimensions + 1
        first = rng.normal(0, np.sqrt(2 / inputs), (inputs, HIDDEN)).astype(np.float32)
        zeros = {"b1": HIDDEN, "w2": HIDDEN, "b2": 1}
        return cls({"w1": first} | {name: np.zeros(n, np.float32) for name, n in zeros.items()})

    def copy(self) -> ValueNetwork:
        """The same network, to be trained while others read this one."""
        return ValueNetwork({name: w.copy() for name, w in self.weights.items()})

    def values(self, states: Matrix, cases: Matrix, baselines: Floats) -> Floats:
        """Probability of success, row by row."""
        return self._forward(features(states, cases), logit(baselines))[1]

    def train(self, replay: Replay, *, seed: int) -> Fit:
        """Some epochs of Adam on cross-entropy, weighted by the cases' shares in the outcomes."""
        import numpy as np

        queries = _queries(replay.states)
        held = np.array([query % HELD_OUT == 0 for query in queries], dtype=bool)
        x, offsets = features(replay.states, replay.cases), logit(replay.baselines)
        y = np.clip(replay.rewards, 0, 1)
        rows = np.flatnonzero(~held & np.isfinite(replay.rewards) & (replay.shares > 0))
        if len(rows):
            weights = replay.shares / replay.shares[rows].mean()
            rng = np.random.default_rng(split_seed(seed, "replay", len(replay), int(queries[-1])))
            adam = _Adam(self.weights)
            for _ in range(EPOCHS):
                for batch in np.array_split(rng.permutation(rows), -(-len(rows) // BATCH)):
                    adam.step(self._gradients(x[batch], offsets[batch], y[batch], weights[batch]))
        p = self._forward(x[held], offsets[held])[1]
        auc, pairs = within_query_auc(p, replay.rewards[held], queries[held])
        return Fit(
            trained=len(rows), held_out=int(held.sum()), auc=auc, pairs=pairs, ece=calibration_error(p, y[held])
        )

    def saved(self) -> bytes:
        """As safetensors."""
        from safetensors.numpy import save

        return bytes(save(self.weights))

    @classmethod
    def loaded(cls, saved: bytes) -> ValueNetwork:
        """A saved network.

        Raises:
            InputError: these bytes are no network of this shape.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            weights = {name: w.copy() for name, w in load(saved).items()}  # loaded ones cannot be written
        except SafetensorError as error:
            raise InputError(
                f"The saved value network cannot be read ({error}); train it anew from the log."
            ) from None
        shapes = {name: w.shape[-1] for name, w in weights.items()}
        if shapes != {"w1": HIDDEN, "b1": HIDDEN, "w2": HIDDEN, "b2": 1}:
            raise InputError(
                f"The saved value network has layers {shapes} of another version; train it anew from the log."
            )
        return cls(weights)

    def _forward(self, x: Matrix, offsets: Floats) -> tuple[Matrix, Floats]:
        import numpy as np

        w = self.weights
        hidden = np.maximum(x @ w["w1"] + w["b1"], 0)
        z = offsets + (hidden @ w["w2"] + w["b2"])
        return hidden, np.asarray(1 / (1 + np.exp(-np.clip(z, -30, 30))), dtype=np.float64)

    def _gradients(self, x: Matrix, offsets: Floats, y: Floats, weights: Floats) -> dict[str, Matrix]:
        import numpy as np

        hidden, p = self._forward(x, offsets)
        wrong = ((p - y) * weights / len(y)).astype(np.float32)
        below = np.outer(wrong, self.weights["w2"]) * (hidden > 0)
        return {"w1": x.T @ below, "b1": below.sum(0), "w2": hidden.T @ wrong, "b2": wrong.sum(keepdims=True)}


def features(states: Matrix, cases: Matrix) -> Matrix:
    """[m, 4 d + 1]: s, c, |s-c|, s*c and the cosine, each scaled to a spread of about 1."""
    import numpy as np

    scale = np.float32(np.sqrt(states.shape[1]))
    product = states * cases
    apart = np.abs(states - cases)
    cosine = product.sum(1, keepdims=True)
    return np.concatenate([scale * states, scale * cases, scale * apart, scale**2 * product, cosine], axis=1)


def logit(p: Floats) -> Floats:
    """Log odds, kept finite."""
    import numpy as np

    p = np.clip(p, 0.02, 0.98)
    return np.asarray(np.log(p / (1 - p)), dtype=np.float64)


def within_query_auc(values: Floats, rewards: Floats, queries: NDArray[np.int64]) -> tuple[float | None, int]:
    """Over pairs of one query with different rewards: how often the better one is valued more (equals count half)."""
    import numpy as np

    won, pairs = 0.0, 0
    for query in np.unique(queries):
        rows = np.flatnonzero(queries == query)
        better = rewards[rows][:, None] > rewards[rows][None, :]
        apart = values[rows][:, None] - values[rows][None, :]
        won += float((better * (0.5 + 0.5 * np.sign(apart))).sum())
        pairs += int(better.sum())
    return (won / pairs if pairs else None), pairs


def calibration_error(values: Floats, outcomes: Floats) -> float | None:
    """Mean distance of value and outcome over ten bins of equal width."""
    import numpy as np

    if not len(values):
        return None
    bins = np.minimum((values * 10).astype(int), 9)
    apart = np.bincount(bins, outcomes - values, minlength=10)
    return float(np.abs(apart).sum() / len(values))


def _queries(states: Matrix) -> NDArray[np.int64]:
    """A number for each distinct state: rows of one query must not lie on both sides of a split."""
    import numpy as np

    known: dict[bytes, int] = {}
    numbers = []
    for state in states:
        key = state.tobytes()
        if key not in known:
            known[key] = int.from_bytes(hashlib.sha256(key).digest()[:6], "big")
        numbers.append(known[key])
    return np.array(numbers, dtype=np.int64)


class _Adam:
    def __init__(self, weights: dict[str, Matrix]) -> None:
        import numpy as np

        self.weights = weights
        self.mean = {name: np.zeros_like(w) for name, w in weights.items()}
        self.square = {name: np.zeros_like(w) for name, w in weights.items()}
        self.steps = 0

    def step(self, gradients: dict[str, Matrix]) -> None:
        import numpy as np

        self.steps += 1
        for name, gradient in gradients.items():
            mean, square, weights = self.mean[name], self.square[name], self.weights[name]
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            step = mean / (1 - 0.9**self.steps) / (np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8)
            weights -= np.float32(RATE) * (step + np.float32(DECAY) * weights)
