"""Slates: their law, their order, what varies them, and where they end."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.errors import InputError
from agentmem.memory.case_policy import TEMPERATURE, reference, tilted
from agentmem.memory.kernel_q import KernelQ
from agentmem.memory.slate import drawn, propensities, ranked, varied
from agentmem.memory.slate_credit import DropOne, Trial, effects, shares
from agentmem.memory.thompson import Thompson
from agentmem.memory.ucb import UCB
from tests.memory.conftest import make_pool

DRAWS = 100_000  # a few seconds


def every_slate(n: int, k: int) -> list[tuple[int, ...]]:
    slates: list[tuple[int, ...]] = [()]
    for slate in slates:
        if len(slate) < k:
            slates += [(*slate, row) for row in range(n) if row not in slate]
    return slates


LOGITS = st.lists(st.floats(-3, 3), min_size=2, max_size=5).map(np.array)


@given(LOGITS, st.floats(-3, 3), st.integers(1, 3))
def test_the_probabilities_of_all_slates_add_up_to_1(logits: np.ndarray, end: float, k: int) -> None:
    total = 0.0
    for slate in every_slate(len(logits) - 1, k):
        chances, ended = propensities(logits, end, slate, k)
        total += math.prod(chances) * ended
    assert total == pytest.approx(1)


def test_gumbel_draws_have_the_stated_propensities() -> None:
    logits, end, k = np.log([0.4, 0.3, 0.1, 0.2]), math.log(0.1), 2
    rng = np.random.default_rng(0)
    counts = Counter(drawn(logits, end, k, rng) for _ in range(DRAWS))
    for slate in every_slate(3, k):
        chances, ended = propensities(logits, end, slate, k)
        p = math.prod(chances) * ended
        assert abs(counts[slate] / DRAWS - p) < 4.5 * math.sqrt(p * (1 - p) / DRAWS), slate


def test_kernel_q_logs_the_propensities_of_the_law_that_it_draws_from() -> None:
    candidates = make_pool((0.45, 0.42, 0.4), uses=[(1, 0.9, 0.3, 1.0), (2, 0.9, -0.4, 1.0)], no_case=0.45)
    policy, draws = KernelQ(), 4000
    slates = [policy.choose(candidates, 2, seed=seed) for seed in range(draws)]
    counts = Counter(slate.rows for slate in slates)
    stated = {s.rows: math.prod(s.propensities or ()) * (s.ended or 0) for s in slates}
    assert sum(stated.values()) == pytest.approx(1, abs=0.01)
    for rows, p in stated.items():
        assert abs(counts[rows] / draws - p) < 4.5 * math.sqrt(p * (1 - p) / draws), rows


def test_thompson_logs_how_often_each_place_is_won() -> None:
    candidates = make_pool((0.45, 0.44), uses=[(1, 0.9, 0.3, 1.0)] * 3, no_case=0.4)
    policy, draws = Thompson(), 1000
    slates = [policy.choose(candidates, 1, seed=seed) for seed in range(draws)]
    counts = Counter(slate.rows for slate in slates)
    for rows in ((), (0,), (1,)):
        stated = [(s.propensities or (s.ended,))[0] for s in slates if s.rows == rows]
        assert all(p and p > 0 for p in stated)
        assert abs(counts[rows] / draws - float(np.mean(stated))) < 0.06, rows  # both are estimates


def test_the_order_of_a_slate_is_the_order_of_drawing() -> None:
    """The likelier item stands first more often, though both are in the slate each time."""
    candidates = make_pool((0.5, 0.46), no_case=-5.0, baseline=0.9)
    firsts = Counter(s.rows[0] for seed in range(1500) if (s := KernelQ().choose(candidates, 2, seed=seed)).rows)
    assert firsts[0] / sum(firsts.values()) == pytest.approx(math.exp(0.8) / (1 + math.exp(0.8)), abs=0.06)


def test_alpha_0_takes_the_largest_values_for_certain_and_of_equals_the_more_similar() -> None:
    candidates = make_pool((0.6, 0.55, 0.5, 0.45), uses=[(3, 1.0, 0.5, 1.0), (0, 1.0, -0.5, 1.0)], no_case=0.45)
    slate = KernelQ(alpha=0).choose(candidates, 4, seed=0)
    assert slate.rows == (3, 1, 2), "the case that did harm is worth less than recalling nothing"
    assert slate.propensities is None
    assert slate.mu.tolist() == [0, 0, 0, 1, 0]


def test_alpha_infinity_draws_from_mu0() -> None:
    candidates = make_pool((0.4, 0.36), uses=[(1, 1.0, 0.9, 1.0)] * 9)
    slate = KernelQ(alpha=math.inf).choose(candidates, 1, seed=0)
    assert slate.mu == pytest.approx(reference(candidates.cosines))


def test_mu_is_equation_7_with_mu0_where_nothing_is_left_out() -> None:
    candidates = make_pool((0.4, 0.36), uses=[(1, 1.0, 0.9, 1.0)] * 9)
    policy = KernelQ()
    slate = policy.choose(candidates, 2, seed=0)
    assert slate.mu == pytest.approx(tilted(reference(candidates.cosines), policy.values(candidates), 0.1))


def test_ranking_is_stable_and_ends_at_no_case() -> None:
    assert ranked(np.array([1.0, 2.0, 2.0, 1.0]), 4) == (1, 2, 0), "of equals the first, and a case before none"
    assert ranked(np.array([1.0, 2.0, -np.inf, 1.5]), 4) == (1,)
    assert ranked(np.array([3.0, 2.0, 1.0]), 4, end=2.5) == (0,)


def test_ucb_prefers_what_is_little_known_and_logs_no_propensity() -> None:
    known = [(0, 0.9, 0.0, 1.0)] * 60
    slate = UCB().choose(make_pool((0.5, 0.5), uses=known), 1, seed=0)
    assert slate.rows == (1,)
    assert slate.propensities is None


def test_variety_keeps_the_more_valuable_of_copies_and_lets_others_in() -> None:
    candidates = make_pool([0.6] * 4 + [0.5 - 0.001 * n for n in range(20)], dimensions=64)
    candidates.vectors[1:4] = candidates.vectors[0]  # three copies of the first
    logits = np.append(candidates.cosines / TEMPERATURE, 0.0)
    logits[2] += 8.0
    kept = varied(candidates, logits, 2, temperature=TEMPERATURE)
    assert kept[-1]
    assert kept[:4].tolist() == [False, False, True, False]
    assert kept.sum() == 7
    assert varied(candidates, logits, 2, temperature=TEMPERATURE, relevance=1.0)[:4].all()


def test_small_pools_are_left_whole() -> None:
    candidates = make_pool((0.6, 0.5))
    assert varied(candidates, np.zeros(3), 1, temperature=TEMPERATURE).all()


def test_credit_goes_to_the_cited_cases_and_else_to_all() -> None:
    assert shares(["a", "b"]) == {"a": 0.5, "b": 0.5}
    assert shares(["a", "b", "c"], ["c", "x"]) == {"a": 0, "b": 0, "c": 1}
    assert shares(["a", "b"], ["x"]) == {"a": 0.5, "b": 0.5}
    assert shares([]) == {}


def test_dropping_one_at_random_tells_who_it_was() -> None:
    """Two cases that are always recalled together, and only one of them helps."""
    candidates, policy = make_pool((0.9, 0.9), baseline=0.9, no_case=-5.0), DropOne(KernelQ(), chance=0.4)
    rng = np.random.default_rng(0)
    trials = []
    for seed in range(4000):
        slate = policy.choose(candidates, 2, seed=seed)
        reward = float(rng.random() < (0.8 if 0 in slate.rows else 0.3))
        chosen = sorted([*slate.rows, *([] if slate.dropped is None else [slate.dropped])])
        if chosen == [0, 1]:  # one slate in 60,000 ends after a case
            assert slate.propensities is None
            dropped = None if slate.dropped is None else f"c-{slate.dropped}"
            trials.append(Trial(ids=("c-0", "c-1"), dropped=dropped, whole=slate.whole, value=reward - 0.5))
    found = effects(trials)
    assert found["c-0"] == pytest.approx(0.5, abs=0.08)
    assert found["c-1"] == pytest.approx(0.0, abs=0.08)
    with pytest.raises(InputError, match="chance=1"):
        DropOne(KernelQ(), chance=1)
