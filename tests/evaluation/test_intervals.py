"""Intervals: closed forms, scipy, coverage by simulation, and data that say little."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.domain.seed import split_seed
from agentmem.errors import InputError
from agentmem.evaluation.intervals import Interval, mean_interval, paired_interval, wilson

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=30)
ANY = st.lists(st.floats(-50, 50), min_size=1, max_size=30)


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 24), (3, 24), (24, 24), (99, 165), (16, 26)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_is_scipy_s(successes: int, n: int, confidence: float) -> None:
    from scipy.stats import binomtest

    theirs = binomtest(successes, n).proportion_ci(confidence, method="wilson")
    ours = wilson(successes, n, confidence)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert mean_interval([1.0] * successes + [0.0] * (n - successes), confidence=confidence) == ours


def test_published_wilson_intervals() -> None:
    assert [round(100 * x) for x in (wilson(99, 165).low, wilson(99, 165).high)] == [52, 67]
    assert [round(100 * x) for x in (wilson(15.6, 26).low, wilson(15.6, 26).high)] == [41, 76]


def test_student_is_scipy_s() -> None:
    from scipy.stats import t

    data = np.random.default_rng(0).normal(size=12)
    low, high = t.interval(0.9, 11, loc=data.mean(), scale=data.std(ddof=1) / 12**0.5)
    ours = paired_interval(list(data), confidence=0.9)
    assert (ours.low, ours.high) == pytest.approx((low, high))


def test_bca_is_scipy_s() -> None:
    from scipy.stats import bootstrap

    data = np.random.default_rng(1).exponential(size=30)
    theirs = bootstrap((data,), np.mean, n_resamples=100_000, batch=10_000, rng=np.random.default_rng(2))
    ours = mean_interval(list(data), method="bca", resamples=100_000)
    limits = theirs.confidence_interval
    assert (ours.low, ours.high) == pytest.approx((limits.low, limits.high), abs=0.015)


def test_the_studentised_bootstrap_by_hand() -> None:
    data = np.sort(np.random.default_rng(4).exponential(size=20) * 9)
    mean, error = data.mean(), data.std(ddof=1) / 20**0.5
    drawn = data[np.random.default_rng(split_seed(7, "bootstrap")).integers(0, 20, (4001, 20))]
    ratios = np.sort((drawn.mean(axis=1) - mean) / (drawn.std(axis=1, ddof=1) / 20**0.5))
    ours = mean_interval(list(data), seed=7, resamples=4001, bounds=None)
    assert ours.method == "studentised bootstrap over tasks"
    # The 100th from either end is (4001 + 1) x .025. The limits are mirrored: where resamples' means tend to be too
    # low, the truth may lie higher.
    assert (ours.low, ours.high) == pytest.approx((mean - ratios[-100] * error, mean - ratios[99] * error))
    assert ours.high - mean > mean - ours.low


def test_wilson_with_an_effective_number_by_hand() -> None:
    from scipy.stats import t

    values = [0.25, 0.5, 0.5, 0.75, 1.0, 0.0, 0.25, 0.5]
    share, error, z = np.mean(values), np.std(values, ddof=1) / 8**0.5, t.ppf(0.975, 7)
    n = share * (1 - share) / error**2
    middle = (share + z * z / 2 / n) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / 4 / n**2) ** 0.5
    ours = mean_interval(values)
    assert ours.method == "Wilson, effective number of tasks"
    assert (ours.low, ours.high) == pytest.approx((middle - half, middle + half))


def test_bonett_and_price_by_hand() -> None:
    # b = 9, c = 3, n = 48: centre 6/50, variance (14/50 - (6/50)^2)/50.
    half = 1.959964 * math.sqrt((14 / 50 - 0.12**2) / 50)
    ours = paired_interval([1] * 9 + [-1] * 3 + [0] * 36)
    assert (ours.low, ours.high) == pytest.approx((0.12 - half, 0.12 + half), abs=1e-6)
    assert ours.method == "Bonett-Price"


def test_clusters_of_equal_results_count_once() -> None:
    values = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    alone = mean_interval(values, method="t")
    copied = mean_interval(
        [v for v in values for _ in range(5)], [i for i in range(10) for _ in range(5)], method="t"
    )
    assert (copied.low, copied.high) == pytest.approx((alone.low, alone.high))
    assert copied.n == 10
    naive = mean_interval([v for v in values for _ in range(5)])
    assert naive.high - naive.low < copied.high - copied.low


@pytest.mark.parametrize("method", ["studentised", "bca"])
def test_a_bootstrap_over_copies_is_the_bootstrap_over_clusters(method: str) -> None:
    values = list(np.random.default_rng(3).normal(size=12))
    clusters = [i for i in range(12) for _ in range(3)]
    alone = mean_interval(values, method=method)  # type: ignore[arg-type]
    copied = mean_interval([v for v in values for _ in range(3)], clusters, method=method)  # type: ignore[arg-type]
    assert (copied.low, copied.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize("n", [1, 2, 5, 48])
@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_equal_values_are_not_certainty(n: int, value: float) -> None:
    found = mean_interval([value] * n)
    assert found.high - found.low > 1 / (n + 4)
    assert 0 <= found.low <= value <= found.high <= 1
    nothing_moved = paired_interval([0.0] * n)
    assert nothing_moved.high == -nothing_moved.low > 1 / (n + 2)
    assert paired_interval([value] * n).low < value


def test_one_cluster_is_one_unit() -> None:
    found = mean_interval([1.0, 0.0, 1.0, 1.0], ["c"] * 4)
    assert found.n == 1
    assert found.high - found.low > 0.7


def test_where_nothing_is_known_that_is_said() -> None:
    assert (mean_interval([]).low, mean_interval([]).high) == (0, 1)
    for unknown in (mean_interval([3.0]), mean_interval([3.0] * 9), paired_interval([2.0] * 9)):
        assert (unknown.low, unknown.high) == (-math.inf, math.inf)
        assert Interval.model_validate_json(unknown.model_dump_json()) == unknown


def test_two_values_on_another_scale_are_a_proportion() -> None:
    inside = wilson(3, 10)
    stretched = mean_interval([1.0] * 3 + [-1.0] * 7, bounds=(-1, 1))
    assert (stretched.low, stretched.high) == pytest.approx((2 * inside.low - 1, 2 * inside.high - 1))


@given(st.one_of(SCORES, ANY), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_order_of_tasks_does_not_matter(values: list[float], random: object) -> None:
    clusters = [f"c{i % 4}" for i in range(len(values))]
    pairs = list(zip(values, clusters, strict=True))
    random.shuffle(pairs)  # type: ignore[attr-defined]
    shuffled, clusters_too = [v for v, _ in pairs], [c for _, c in pairs]
    assert mean_interval(values, resamples=200) == mean_interval(shuffled, resamples=200)
    assert mean_interval(values, clusters, resamples=200) == mean_interval(shuffled, clusters_too, resamples=200)
    changes = [v - 0.5 for v in values]
    assert paired_interval(changes) == paired_interval([v - 0.5 for v in shuffled])


@given(st.one_of(SCORES, ANY), st.sampled_from(["auto", "t", "studentised", "bca"]))
@settings(max_examples=100, deadline=None)
def test_limits_are_in_order_and_within_the_bounds(values: list[float], method: str) -> None:
    found = mean_interval(values, method=method, resamples=200)  # type: ignore[arg-type]
    assert found.low <= found.high
    assert found.low < found.high, "never a single point"
    if all(0 <= v <= 1 for v in values):
        assert 0 <= found.low <= found.high <= 1
    if method in ("auto", "t"):
        slack = 1e-9 * (1 + abs(np.mean(values)))
        assert found.low - slack <= np.mean(values) <= found.high + slack


@given(SCORES)
@settings(deadline=None)
def test_right_and_wrong_are_mirror_images(values: list[float]) -> None:
    found, mirrored = mean_interval(values), mean_interval([1 - v for v in values])
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low))
    changes = [v - 0.5 for v in values]
    up, down = paired_interval(changes), paired_interval([-c for c in changes])
    assert (down.low, down.high) == pytest.approx((-up.high, -up.low))


@pytest.mark.parametrize("make", [mean_interval, paired_interval])
def test_bad_input_is_named(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="Value 1 is not finite"):
        make([0.5, math.nan])
    with pytest.raises(InputError, match="2 values and 1 clusters"):
        make([0.5, 0.5], ["a"])
    with pytest.raises(InputError, match=r"confidence=95: it must lie between 0 and 1"):
        make([0.5, 0.25], confidence=95)
    with pytest.raises(InputError, match=r"reach from 0.5 to 2.0, outside the bounds"):
        make([0.5, 2.0], bounds=(0, 1))
    with pytest.raises(InputError, match="must be smaller than the second"):
        make([1.0], bounds=(1, 1))
    with pytest.raises(InputError, match=r"wilson\(3, 2\)"):
        wilson(3, 2)


def test_ten_thousand_resamples_of_500_tasks_are_fast() -> None:
    values = list(np.random.default_rng(0).normal(size=500))
    clusters = [i // 2 for i in range(500)]
    began = time.perf_counter()
    mean_interval(values)
    mean_interval(values, method="bca")
    mean_interval(values, clusters)
    assert time.perf_counter() - began < 3, "under a second each, on a busy machine too"


@pytest.mark.parametrize("n", [24, 48, 165])
def test_intervals_of_a_mean_hold_their_coverage(n: int) -> None:
    """Mean over p, within 3 points: 2 for the interval and 1 for this simulation. The benchmark measures finer."""
    rng = np.random.default_rng(n)
    for k in (1, 4):
        hits = [p in mean_interval(rng.binomial(k, p, n) / k) for p in (0.1, 0.3, 0.5, 0.9) for _ in range(400)]
        assert np.mean(hits) == pytest.approx(0.95, abs=0.03), k
    hits = [0.0 in mean_interval(rng.normal(size=n), resamples=500) for _ in range(300)]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.04)


@pytest.mark.parametrize("n", [24, 48, 165])
def test_intervals_of_a_difference_hold_their_coverage(n: int) -> None:
    rng = np.random.default_rng(n)
    for k in (1, 4):
        for gain in (0.0, 0.2):
            hits = [
                gain in paired_interval((rng.binomial(k, p + gain, n) - rng.binomial(k, p, n)) / k)
                for p in (0.1, 0.3, 0.5, 0.7)
                for _ in range(300)
            ]
            assert np.mean(hits) == pytest.approx(0.95, abs=0.03), (k, gain)


def test_intervals_over_clusters_hold_their_coverage() -> None:
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(30), 4)
    naive = clustered = 0
    for _ in range(300):
        values = rng.binomial(1, np.repeat(rng.beta(1, 1, 30), 4)).astype(float)
        clustered += 0.5 in mean_interval(values, clusters)
        naive += 0.5 in mean_interval(values)
    assert clustered / 300 == pytest.approx(0.95, abs=0.04)
    assert naive / 300 < 0.88, "or the test does not show that clusters matter"
