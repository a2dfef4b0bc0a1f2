"""Pass@k and the paired tests: closed forms, scipy, enumeration and null simulations."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.errors import InputError
from agentmem.evaluation.statistics import holm, mcnemar, pass_at_k, pass_hat_k, sign_flip, smallest_detectable


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_pass_metrics_by_trying_every_choice(n: int) -> None:
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        tries = [True] * c + [False] * (n - c)
        choices = list(itertools.combinations(tries, k))
        assert pass_at_k(n, c, k) == pytest.approx(np.mean([any(choice) for choice in choices]))
        assert pass_hat_k(n, c, k) == pytest.approx(np.mean([all(choice) for choice in choices]))


def test_pass_metrics_are_undefined_beyond_the_tries() -> None:
    assert pass_at_k(3, 3, 4) is None
    assert pass_hat_k(3, 3, 4) is None
    assert pass_at_k(0, 0, 1) is None
    for bad in ((3, 4, 1), (3, -1, 1), (3, 1, 0)):
        with pytest.raises(InputError, match=f"n={bad[0]}, c={bad[1]}, k={bad[2]}"):
            pass_at_k(*bad)


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (5, 0), (9, 1), (6, 6), (12, 20), (400, 350), (3000, 2900)])
def test_mcnemar_is_the_binomial_test(b: int, c: int) -> None:
    from scipy.stats import binom, binomtest

    found = mcnemar(b, c)
    assert found.p == pytest.approx(binomtest(b, b + c).pvalue if b + c else 1.0, rel=1e-9)
    n, few = b + c, min(b, c)
    mid = 2 * (binom.cdf(few, n, 0.5) - binom.pmf(few, n, 0.5) / 2)
    assert found.mid_p == pytest.approx(mid, rel=1e-6)
    assert mcnemar(c, b) == found


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 5))
def test_sign_flip_of_single_tries_is_mcnemar(b: int, c: int, same: int) -> None:
    flipped = sign_flip([1.0] * b + [-1.0] * c + [0.0] * same)
    exact = mcnemar(b, c)
    assert (flipped.p, flipped.mid_p, flipped.n) == pytest.approx((exact.p, exact.mid_p, exact.n))


@given(
    st.lists(
        st.one_of(
            st.sampled_from([-0.75, -0.5, -1 / 3, 0.0, 0.25, 2 / 3, 1.0]),
            st.floats(-1, 1).map(lambda x: round(x, 3)),
        ),
        max_size=9,
    )
)
@settings(deadline=None)
def test_sign_flip_by_trying_every_sign(changes: list[float]) -> None:
    total = abs(math.fsum(changes))
    sums = [abs(sum(s * d for s, d in zip(signs, changes, strict=True))) for signs in
            itertools.product((1, -1), repeat=len(changes))]  # fmt: skip
    above = np.mean([s > total + 1e-9 for s in sums])
    equal = np.mean([abs(s - total) <= 1e-9 for s in sums])
    found = sign_flip(changes)
    assert found.p == pytest.approx(above + equal)
    assert found.mid_p == pytest.approx(above + equal / 2 if total > 1e-9 else 1.0)


def test_sign_flip_is_scipy_s() -> None:
    from scipy.stats import permutation_test

    changes = np.random.default_rng(0).normal(0.4, 1, 12)
    theirs = permutation_test((changes,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(list(changes)).p == pytest.approx(theirs.pvalue)


def test_sign_flip_draws_agree_with_the_exact_test() -> None:
    lattice = np.random.default_rng(1).integers(-8, 12, 60) / 8
    exact = sign_flip(list(lattice))
    drawn = sign_flip(list(lattice + 1e-7 * np.random.default_rng(2).normal(size=60)))
    assert exact.method == "sign-flip exact"
    assert drawn.method == "sign-flip, 20,000 draws"
    assert drawn.p == pytest.approx(exact.p, abs=0.01)
    far = sign_flip(list(10 + np.random.default_rng(2).normal(size=60)))
    assert 0 < far.p < 2e-4, "a drawn p is never 0"


def test_a_cluster_flips_as_one() -> None:
    changes = [0.5, 0.25, 0.5, 0.75, 1.0, 0.25]
    assert sign_flip(changes, ["a", "a", "b", "b", "c", "c"]).p == sign_flip([0.75, 1.25, 1.25]).p == 0.25
    assert sign_flip(changes).p == 2 / 2**6


def test_no_change_is_no_evidence() -> None:
    for test in (sign_flip([]), sign_flip([0.0] * 9), mcnemar(0, 0), sign_flip([0.5, -0.5])):
        assert test.p == test.mid_p == 1


def test_holm_by_hand_and_by_its_laws() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.9, 0.8]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(p <= a <= 1 for p, a in zip(values, adjusted, strict=True))
    ranked = [adjusted[i] for i in sorted(range(len(values)), key=values.__getitem__)]
    assert ranked == sorted(ranked)


@pytest.mark.parametrize("k", [1, 8])
def test_tests_keep_their_size(k: int) -> None:
    """At 5 %, over null pairs at n = 165: at most 5.5 %, and 2 points for this simulation."""
    rng = np.random.default_rng(k)
    below = 0
    for _ in range(500):
        p = rng.beta(2, 2, 165)
        changes = (rng.binomial(k, p) - rng.binomial(k, p)) / k
        below += sign_flip(changes).p <= 0.05
    assert 0.015 < below / 500 <= 0.075


def test_smallest_detectable_effects() -> None:
    assert smallest_detectable(165) == pytest.approx(0.0975, abs=5e-4)  # published: 9.8 points
    assert smallest_detectable(30) == pytest.approx(0.262, abs=5e-4)
    assert smallest_detectable(165, samples=4) == pytest.approx(smallest_detectable(165) / 2, abs=1e-3)
    assert smallest_detectable(0) is None
    assert smallest_detectable(7) is None
    with pytest.raises(InputError, match="samples must be 1 or more"):
        smallest_detectable(10, samples=0)


@given(st.integers(8, 500), st.integers(1, 16))
def test_more_tasks_never_hide_an_effect(n: int, samples: int) -> None:
    few, many = smallest_detectable(n, samples=samples), smallest_detectable(n + 1, samples=samples)
    assert few is not None
    assert many is not None
    assert 0 < many < few < 1


def test_the_smallest_detectable_effect_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(0)
    for n in (24, 48, 165):
        effect = smallest_detectable(n)
        assert effect is not None
        moved = max(0.2, effect)
        shares = [(moved + effect) / 2, (moved - effect) / 2, 1 - moved]
        found = [mcnemar(int(b), int(c)).p <= 0.05 for b, c, _ in rng.multinomial(n, shares, 1000)]
        assert np.mean(found) == pytest.approx(0.8, abs=0.08), n
