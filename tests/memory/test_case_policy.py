"""The formulas of the M-MDP: equation 7 and its limits, the soft backup, and the reference measure."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.errors import InputError
from agentmem.memory.case_policy import NO_CASE, reference, soft_target, soft_value, softmax, tilted
from agentmem.memory.kernel_q import KernelQ
from agentmem.memory.policies import POLICIES, open_policy
from agentmem.memory.similarity import Similarity
from tests.memory.conftest import make_pool

VALUES = st.lists(st.floats(-2, 2), min_size=1, max_size=12).map(np.array)
ALPHAS = st.floats(0.01, 10)


@st.composite
def weighed(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Values with shares of a reference, some of which are 0."""
    q = draw(VALUES)
    weights = draw(st.lists(st.sampled_from([0.0, 1e-9, 0.2, 1.0, 5.0]), min_size=len(q), max_size=len(q)))
    weights[draw(st.integers(0, len(q) - 1))] = 1.0
    return np.array(weights) / sum(weights), q


@given(VALUES, ALPHAS)
def test_equation_7_comes_back_where_mu0_is_uniform_and_nothing_abstains(q: np.ndarray, alpha: float) -> None:
    mu = tilted(np.full(len(q), 1 / len(q)), q, alpha)
    expected = [math.exp((x - q.max()) / alpha) for x in q]
    assert mu == pytest.approx([e / math.fsum(expected) for e in expected], abs=1e-12)


@given(weighed(), ALPHAS)
def test_mu_is_the_best_trade_between_value_and_staying_near_mu0(
    world: tuple[np.ndarray, np.ndarray], alpha: float
) -> None:
    mu0, q = world

    def objective(mu: np.ndarray) -> float:
        some = mu > 0
        return float(mu @ q - alpha * (mu[some] * np.log(mu[some] / mu0[some])).sum())

    mu = tilted(mu0, q, alpha)
    assert mu.sum() == pytest.approx(1)
    assert not mu[mu0 == 0].any()
    assert objective(mu) == pytest.approx(soft_value(mu0, q, alpha), abs=1e-9)  # the value is what it attains
    for other in (mu0, tilted(mu0, -q, alpha), tilted(mu0, q, 2 * alpha), tilted(mu0, q, alpha / 2)):
        assert objective(mu) >= objective(other) - 1e-9


@given(weighed())
def test_alpha_to_0_is_greedy_and_to_infinity_is_mu0(world: tuple[np.ndarray, np.ndarray]) -> None:
    mu0, q = world
    best = q[mu0 > 0].max()
    assert tilted(mu0, q, 0.0)[(mu0 > 0) & (q == best)].sum() == pytest.approx(1)
    assert tilted(mu0, q, math.inf) == pytest.approx(mu0)
    assert tilted(mu0, q, 1e9) == pytest.approx(mu0, abs=1e-6)
    assert float(tilted(mu0, q, 1e-4) @ q) == pytest.approx(best, abs=0.01)
    assert soft_value(mu0, q, 0.0) == best
    assert soft_value(mu0, q, 1e-6) == pytest.approx(best, abs=1e-4)
    assert soft_value(mu0, q, math.inf) == pytest.approx(float(mu0 @ q))
    assert soft_value(mu0, q, 1e7) == pytest.approx(float(mu0 @ q), abs=1e-6)


def test_equals_share_in_proportion_to_mu0_when_greedy() -> None:
    mu = tilted(np.array([0.6, 0.3, 0.1]), np.array([1.0, 1.0, 0.0]), 0.0)
    assert mu == pytest.approx([2 / 3, 1 / 3, 0])


@given(weighed(), ALPHAS, st.integers(0, 2**31), st.floats(0, 1))
def test_the_soft_backup_is_a_contraction(
    world: tuple[np.ndarray, np.ndarray], alpha: float, seed: int, gamma: float
) -> None:
    mu0, q = world
    other = q + np.random.default_rng(seed).uniform(-1, 1, len(q))
    apart = abs(gamma * soft_value(mu0, q, alpha) - gamma * soft_value(mu0, other, alpha))
    assert apart <= gamma * np.abs(q - other).max() + 1e-9
    assert soft_value(mu0, q + 0.3, alpha) == pytest.approx(soft_value(mu0, q, alpha) + 0.3)


def test_a_bank_that_grows_by_copies_is_not_worth_more() -> None:
    """With the entropy of mu instead of its distance to mu0, it would grow by alpha log n."""
    worth = [soft_value(np.full(n, 1 / n), np.full(n, 0.5), 0.1) for n in (1, 10, 1000)]
    assert worth == pytest.approx([0.5, 0.5, 0.5])


def test_the_target_of_a_step_adds_the_soft_value_of_the_next_state() -> None:
    following, policy = make_pool(no_case=0.2, uses=[(0, 1.0, 0.4, 1.0)]), KernelQ()
    mu0, q = reference(following.cosines), policy.values(following)
    by_hand = 0.1 * math.log(sum(m * math.exp(x / 0.1) for m, x in zip(mu0, q, strict=True)))
    assert soft_target(0.3, following, policy, gamma=0.9) == pytest.approx(0.3 + 0.9 * by_hand)
    assert soft_target(0.3, None, policy) == 0.3


def test_mu0_weighs_similarity_against_recalling_nothing() -> None:
    mu0 = reference(np.array([NO_CASE, NO_CASE + 0.05]))
    assert mu0[0] == pytest.approx(mu0[-1])
    assert mu0[1] == pytest.approx(math.e * mu0[-1])
    assert reference(np.zeros(0)).tolist() == [1.0]
    assert softmax(np.array([1e6, 0.0])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("k", [1, 4])
def test_every_policy_recalls_nothing_from_an_empty_or_broken_pool(name: str, k: int) -> None:
    for candidates in (make_pool(()), make_pool((math.nan, math.nan))):
        slate = open_policy(name).choose(candidates, k, seed=0)
        assert slate.rows == ()
        assert np.isfinite(slate.mu).all()


@pytest.mark.parametrize("name", POLICIES)
def test_one_broken_number_hides_no_other_case(name: str) -> None:
    uses = [(0, 0.9, math.nan, 1.0), (1, math.nan, 0.5, 1.0), (2, 0.9, 0.5, 1.0)]
    candidates = make_pool((0.9, 0.85, 0.8, math.nan), uses=uses, no_case=-1.0)
    seen = {row for seed in range(30) for row in open_policy(name).choose(candidates, 4, seed=seed).rows}
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("name", POLICIES)
def test_a_choice_depends_on_its_seed_alone(name: str) -> None:
    candidates = make_pool([0.5 - 0.01 * n for n in range(30)])
    policy = open_policy(name)
    assert policy.choose(candidates, 4, seed=5).rows == policy.choose(candidates, 4, seed=5).rows
    if name in ("kernel_q", "parametric_q", "thompson"):
        assert len({policy.choose(candidates, 4, seed=seed).rows for seed in range(10)}) > 3


def test_similarity_takes_the_nearest_that_beat_no_case() -> None:
    slate = Similarity().choose(make_pool((0.9, 0.5, 0.36, 0.34)), 4, seed=0)
    assert slate.rows == (0, 1, 2)
    assert slate.propensities is None


def test_policies_are_found_by_name_with_a_hint() -> None:
    policy = KernelQ(alpha=0.3)
    assert open_policy(policy) is policy
    assert open_policy().name.startswith("kernel_q(")
    with pytest.raises(
        InputError, match=r"No case policy named 'kernelq'. Did you mean 'kernel_q'\? Known: .*ucb"
    ):
        open_policy("kernelq")
    with pytest.raises(InputError, match=r"int is no case policy: it needs a `name`"):
        open_policy(3)  # type: ignore[arg-type]
