"""Pools of cases whose uses are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from agentmem.memory.case_policy import Candidates, Uses

MakePool = Callable[..., Candidates]


@pytest.fixture
def pool() -> MakePool:
    return make_pool


def make_pool(
    cosines: Sequence[float] = (0.6, 0.5, 0.4),
    *,
    uses: Sequence[tuple[int, float, float, float]] = (),
    rewards: Sequence[float] | None = None,
    baseline: float = 0.5,
    no_case: float = 0.5,
    dimensions: int = 64,
    seed: int = 0,
) -> Candidates:
    """Candidates at these cosines that are otherwise unlike each other; uses are (row, cosine, value, share)."""
    n = len(cosines)
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(dimensions, dimensions)))[0][: n + 1].astype(np.float32)
    along = np.array([c if np.isfinite(c) else 0.0 for c in cosines], dtype=np.float32)[:, None]
    columns = list(zip(*uses, strict=True)) if uses else [[], [], [], []]
    return Candidates(
        state=basis[0],
        vectors=along * basis[0] + np.sqrt(1 - along**2) * basis[1:],
        cosines=np.array(cosines, dtype=np.float64),
        rewards=np.full(n, np.nan) if rewards is None else np.array(rewards, dtype=np.float64),
        uses=Uses(np.array(columns[0], np.intp), *(np.array(c, dtype=np.float64) for c in columns[1:])),
        baseline=baseline,
        no_case=no_case,
    )
