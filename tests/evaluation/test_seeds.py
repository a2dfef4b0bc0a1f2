"""Several learning seeds: the interval covers the method, not one memory; closed forms and simulation."""

import numpy as np
import pytest

from agentmem.errors import InputError
from agentmem.evaluation.comparison import compare
from agentmem.evaluation.report import EvaluationReport, Outcome
from agentmem.evaluation.seeds import compare_seeds, seed_interval


def report(name: str, scores) -> EvaluationReport:
    return EvaluationReport(
        name=name, outcomes=tuple(Outcome(task_id=str(i), score=float(s)) for i, s in enumerate(scores))
    )


def test_without_tasks_that_differ_it_is_the_t_interval_over_seeds() -> None:
    from scipy.stats import t

    values = [0.1, 0.25, 0.15, 0.3]
    made = seed_interval([[v] * 6 for v in values], bounds=None)
    half = t.ppf(0.975, 3) * np.std(values, ddof=1) / 2
    assert (made.low, made.high) == pytest.approx((0.2 - half, 0.2 + half))


def test_without_seeds_that_differ_it_is_the_t_interval_over_tasks() -> None:
    from scipy.stats import t

    row = [0.0, 1.0, 0.0, 0.5, 1.0, 0.0]
    made = seed_interval([row] * 5, bounds=None)
    half = t.ppf(0.975, 5) * np.std(row, ddof=1) / np.sqrt(6)
    assert (made.low, made.high) == pytest.approx((np.mean(row) - half, np.mean(row) + half))


def test_neither_order_has_influence() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(0, 0.3, (4, 12))
    one = seed_interval(table.tolist(), bounds=None)
    other = seed_interval(table[::-1, rng.permutation(12)].tolist(), bounds=None)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


@pytest.mark.parametrize(("seed_sd", "task_sd"), [(0.1, 0.3), (0.2, 0.1), (0.0, 0.3), (0.1, 0.0)])
@pytest.mark.parametrize("seeds", [3, 8])
def test_it_covers_the_mean_of_the_method(seeds: int, seed_sd: float, task_sd: float) -> None:
    rng = np.random.default_rng(seeds)
    held = 0
    for _ in range(400):
        by_seed, by_task = rng.normal(0, seed_sd, (seeds, 1)), rng.normal(0, task_sd, (1, 40))
        table = 0.1 + by_seed + by_task + rng.normal(0, 0.3, (seeds, 40))
        made = seed_interval(table.tolist(), bounds=None)
        held += made.low <= 0.1 <= made.high
    assert held / 400 > 0.925


def test_an_interval_over_tasks_alone_would_be_too_short() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        table = 0.1 + rng.normal(0, 0.2, (3, 1)) + rng.normal(0, 0.3, (3, 40))
        one = seed_interval([row for row in table.tolist() for _ in range(1)], bounds=None)
        held += one.low <= 0.1 <= one.high
    alone = 0
    for _ in range(200):
        table = 0.1 + rng.normal(0, 0.2, (1, 1)) + rng.normal(0, 0.3, (1, 40))
        from agentmem.evaluation.intervals import paired_interval

        made = paired_interval(table[0].tolist(), method="t")
        alone += made.low <= 0.1 <= made.high
    assert held / 200 > 0.92
    assert alone / 200 < 0.6, "one memory says nothing of the method"


def test_clusters_make_it_wider() -> None:
    rng = np.random.default_rng(3)
    shared = rng.normal(0, 0.5, 10).repeat(4)
    table = (0.1 + shared + rng.normal(0, 0.1, (4, 40))).tolist()
    clusters = [f"c{i // 4}" for i in range(40)]
    flat, nested = seed_interval(table, bounds=None), seed_interval(table, clusters, bounds=None)
    assert nested.high - nested.low > 1.3 * (flat.high - flat.low)
    assert (nested.low + nested.high) == pytest.approx(flat.low + flat.high)


def test_seeds_are_compared_with_one_baseline() -> None:
    rng = np.random.default_rng(4)
    before = report("off", rng.random(60) < 0.3)
    after = [report(f"seed {s}", rng.random(60) < 0.8) for s in range(4)]
    found = compare_seeds(before, after)
    assert found.differences == pytest.approx([compare(before, arm).difference for arm in after])
    assert found.value == pytest.approx(np.mean(found.differences))
    assert (found.seeds, found.tasks, found.verdict) == (4, 60, "better")
    assert "4 seeds x 60 tasks" in str(found)
    assert found.after - found.before == pytest.approx(found.value)
    paired = compare_seeds([before] * 4, after)
    assert paired == found


def test_one_seed_says_nothing_of_the_method() -> None:
    one = report("a", [1, 0])
    with pytest.raises(InputError, match="1 learning seed says nothing"):
        compare_seeds(one, [one])
    with pytest.raises(InputError, match="2 baselines and 3 learned arms"):
        compare_seeds([one, one], [one, one, one])
    with pytest.raises(InputError, match="different tasks"):
        compare_seeds(one, [one, report("b", [1, 0, 1])])
    with pytest.raises(InputError, match="some rows are longer"):
        seed_interval([[1.0], [1.0, 0.0]])
