"""Values: the kernel's shrinkage, difficulty that must not leak into them, and what a network learns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.errors import InputError
from agentmem.memory.kernel_q import KernelQ
from agentmem.memory.parametric_q import ParametricQ
from agentmem.memory.past_uses import NEARNESS, RECENT, USES, Attempt, PastUses
from agentmem.memory.slate_credit import shares
from agentmem.memory.thompson import Posterior
from agentmem.memory.value_network import Replay, calibration_error, within_query_auc
from tests.memory.conftest import make_pool


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(-1, 1), st.floats(0, 1)), max_size=6),
    st.floats(0, 1),
    st.sampled_from([0.0, 0.5]),
)
def test_q_is_the_formula(uses: list[tuple[float, float, float]], q0: float, elsewhere: float) -> None:
    candidates = make_pool((0.5,), uses=[(0, *use) for use in uses], baseline=q0, no_case=0.3)
    q = KernelQ(elsewhere=elsewhere).values(candidates)
    weights = [(elsewhere + (1 - elsewhere) * math.exp((cos - 1) / 0.05)) * share for cos, _, share in uses]
    values = [q0 + value for _, value, _ in uses]
    expected = (sum(w * v for w, v in zip(weights, values, strict=True)) + 2 * q0) / (sum(weights) + 2)
    assert q.tolist() == pytest.approx([expected, 0.3])


def test_a_case_without_uses_is_worth_the_baseline_and_few_uses_move_it_little() -> None:
    uses = [(1, 1.0, 0.4, 1.0)] + [(2, 1.0, 0.4, 1.0)] * 98
    q = KernelQ().values(make_pool(uses=uses, baseline=0.5))
    assert q[0] == 0.5
    assert q[1] == pytest.approx(0.5 + 0.4 / 3)
    assert q[2] == pytest.approx(0.9, abs=0.01)


def test_a_use_at_the_same_state_tells_more_than_one_elsewhere() -> None:
    q = KernelQ().values(make_pool(uses=[(0, 1.0, 0.4, 1.0), (1, 0.5, 0.4, 1.0)]))
    assert q[0] > q[1] > q[2]


def test_a_case_written_as_a_success_gets_a_hearing_and_one_use_against_it_outweighs_that() -> None:
    written = make_pool((0.95, 0.95, 0.95), rewards=[1.0, 0.0, math.nan])
    assert KernelQ().values(written)[0] > 0.5
    assert KernelQ().values(written)[1:3].tolist() == [0.5, 0.5], "neither a failure nor an unknown reward counts"
    assert KernelQ(own=0.0).values(written)[0] == 0.5
    tried = make_pool((0.95,), rewards=[1.0], uses=[(0, 0.95, -0.5, 1.0)])
    assert KernelQ().values(tried)[0] < 0.5


def test_thompsons_posterior_has_the_mean_of_kernel_q() -> None:
    uses = [(0, 0.9, 0.3, 1.0), (1, 0.8, -0.2, 0.25)]
    candidates = make_pool(uses=uses, rewards=[1.0, math.nan, 0.0], no_case=0.2)
    posterior = Posterior.of(candidates)
    assert posterior.mean == pytest.approx(KernelQ().values(candidates))
    many = Posterior.of(make_pool(uses=uses * 20))
    assert (many.deviation[:2] < posterior.deviation[:2]).all()


def attempts_on(
    past: PastUses, state: np.ndarray, rewards: list[float], shown: tuple[str, ...] = ()
) -> list[float]:
    values = []
    for reward in rewards:
        attempt = Attempt(state, reward, past.baselines(state).reward, not shown, shares(shown))
        past.add(attempt)
        values.append(attempt.value)
    return values


def test_an_easy_question_lends_its_cases_no_value() -> None:
    """Two cases that change nothing: one is recalled for easy tasks alone, the other for hard ones."""
    states = unit(np.random.default_rng(0).normal(size=(20, 64)))
    past = PastUses(64)
    for id in ("easy", "hard"):
        past.load(id, [])
    for _ in range(20):
        for n, state in enumerate(states):
            attempts_on(past, state, [0.95 if n < 10 else 0.05], ("easy" if n < 10 else "hard",))
    for state in (states[0], states[-1]):
        uses = past.of(["easy", "hard"], state)
        q = KernelQ().values(
            make_pool(
                (0.5, 0.5),
                baseline=past.baselines(state).reward,
                uses=list(zip(*vars(uses).values(), strict=True)),
            )
        )
        assert abs(q[0] - q[1]) < 0.1  # raw rewards would set them .88 apart
    assert past.baselines(states[0]).reward > 0.85
    assert past.baselines(states[-1]).reward < 0.15


def test_within_one_task_what_helps_stands_out() -> None:
    state = unit(np.ones(8))
    past = PastUses(8)
    for id in ("good", "bad"):
        past.load(id, [])
    for _ in range(20):
        attempts_on(past, state, [1.0], ("good",))
        attempts_on(past, state, [0.0], ("bad",))
    uses = past.of(["good", "bad"], state)
    assert uses.values[uses.rows == 0].mean() > 0.3
    assert uses.values[uses.rows == 1].mean() < -0.3


def test_the_baseline_is_the_stated_formula() -> None:
    states = unit(np.random.default_rng(1).normal(size=(5, 6)))
    past = PastUses(6)
    rewards, without = [0.2, 0.9, 0.4, 1.0, 0.0], [True, False, True, False, False]
    for state, reward, alone in zip(states, rewards, without, strict=True):
        past.add(Attempt(state, reward, 0.5, alone))
    near = np.exp((states @ states[2] - 1) / NEARNESS)
    everywhere = (sum(rewards) + 0.5) / 6
    alone_mean = (0.6 + everywhere) / 3
    alone = near * without
    found = past.baselines(states[2])
    assert found.reward == pytest.approx((near @ rewards + everywhere) / (near.sum() + 1), rel=1e-5)
    assert found.without == pytest.approx((alone @ rewards + alone_mean) / (alone.sum() + 1), rel=1e-5)
    assert found.without_mass == pytest.approx(alone.sum(), rel=1e-5)
    assert PastUses(6).baselines(states[0]).reward == 0.5


def test_memory_of_uses_is_bounded_and_forgets_the_oldest() -> None:
    state = unit(np.ones(4))
    past = PastUses(4)
    past.load("a", [])
    for n in range(RECENT + 10):
        past.add(Attempt(state, float(n), 0.0, False, {"a": 1.0}))
    uses = past.of(["a"], state)
    assert len(uses.values) == USES
    assert uses.values.min() == RECENT + 10 - USES
    assert past.missing(["a", "b"]) == ["b"]


def replay_of(rng: np.random.Generator, m: int = 400, d: int = 16) -> Replay:
    """Half of 20 cases help; tasks are easy or hard, which must not matter."""
    cases = unit(rng.normal(size=(20, d)))
    queries = unit(rng.normal(size=(40, d)))
    q, c = rng.integers(40, size=m), rng.integers(20, size=m)
    ease = np.where(np.arange(40) % 2, 0.9, 0.4)
    chance = np.where(c < 10, ease[q], 0.1)
    rewards = (rng.random(m) < chance).astype(float)
    return Replay(queries[q], cases[c], rewards, ease[q] * 0.6, np.ones(m))


def test_the_network_tells_cases_apart_on_queries_that_it_was_not_trained_on() -> None:
    replay = replay_of(np.random.default_rng(0))
    policy = ParametricQ(seed=1)
    for _ in range(5):
        fit = policy.learn(replay)
    assert fit.trained + fit.held_out == 400
    assert fit.held_out > 20
    assert fit.auc is not None
    assert fit.auc > 0.7
    assert fit.ece is not None
    assert fit.ece < 0.3


def test_the_same_log_gives_the_same_network_and_it_survives_saving() -> None:
    replay = replay_of(np.random.default_rng(0), m=100)
    a, b, other, loaded = ParametricQ(seed=1), ParametricQ(seed=1), ParametricQ(seed=2), ParametricQ(seed=1)
    for policy in (a, b, other):
        policy.learn(replay)
    assert a.saved() == b.saved() != other.saved()
    loaded.load(a.saved())
    candidates = make_pool((0.5, 0.4), dimensions=16)
    assert loaded.values(candidates).tolist() == a.values(candidates).tolist()
    loaded.learn(replay)  # what was loaded can be trained further
    with pytest.raises(InputError, match="cannot be read"):
        loaded.load(b"no weights")


def test_a_fresh_network_says_the_baseline() -> None:
    assert ParametricQ().values(make_pool((0.5,), baseline=0.7, no_case=0.2)).tolist() == [0.7, 0.2]


def test_auc_compares_within_queries_alone() -> None:
    """Values that know only how hard a query is get nothing for it."""
    queries = np.array([1, 1, 2, 2])
    assert within_query_auc(np.array([0.9, 0.9, 0.1, 0.1]), np.array([1.0, 0, 1, 0]), queries) == (0.5, 2)
    assert within_query_auc(np.array([0.9, 0.8, 0.2, 0.1]), np.array([1.0, 0, 1, 0]), queries) == (1.0, 2)
    assert within_query_auc(np.array([0.9, 0.1]), np.array([1.0, 0.0]), np.array([1, 2])) == (None, 0)


def test_calibration_error() -> None:
    assert calibration_error(np.array([0.75] * 4), np.array([1.0, 1, 1, 0])) == pytest.approx(0)
    assert calibration_error(np.array([0.75] * 4), np.zeros(4)) == pytest.approx(0.75)
    assert calibration_error(np.zeros(0), np.zeros(0)) is None
