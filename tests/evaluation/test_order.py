"""Order sensitivity: an effect that is planted is found, one that is not is found as seldom as the test says."""

from __future__ import annotations

import numpy as np
import pytest

from agentmem.errors import InputError
from agentmem.evaluation import order
from agentmem.evaluation.order import OrderSensitivity, order_sensitivity
from agentmem.evaluation.report import EvaluationReport, Outcome

TASKS = 60


@pytest.fixture(autouse=True)
def _fewer_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "DRAWS", 500)


def report(scores: np.ndarray, name: str = "run", **more: str) -> EvaluationReport:
    outcomes = (Outcome(task_id=f"t{n}", score=float(score)) for n, score in enumerate(scores))
    return EvaluationReport(name=name, outcomes=tuple(outcomes), **more)


def world(
    seed: int, *, orders: int = 4, learnings: int = 1, effect: float = 0.0, chance: float = 0.0
) -> OrderSensitivity:
    """Orders that move the chance of success by `effect` (SD); learnings of one order by `chance`."""
    rng = np.random.default_rng(seed)
    hard = rng.uniform(0.2, 0.8, TASKS)
    made: dict[str, list[EvaluationReport]] = {}
    for number in range(orders):
        shift = effect * rng.standard_normal()
        for _ in range(learnings):
            p = np.clip(hard + shift + chance * rng.standard_normal(), 0, 1)
            made.setdefault(f"order {number}", []).append(report(rng.random(TASKS) < p))
    return order_sensitivity(made, seed=seed)


def test_one_learning_of_each_order_is_held_against_the_tasks() -> None:
    """Without an effect, 5 % at most of the worlds are said to have one (4.9 % of 2,000, measured apart)."""
    false = sum(world(seed).found for seed in range(1000, 1400))
    assert false <= 28  # 5 % of 400, and two standard errors
    found = [world(seed, effect=0.25) for seed in range(30)]
    assert sum(each.found for each in found) >= 24
    assert np.median([each.spread for each in found]) == pytest.approx(0.22, abs=0.07)
    assert found[0].over == "tasks"
    assert "Each order was learned once, so the spread holds the chance of learning too" in str(found[0])


def test_several_learnings_of_each_order_tell_order_and_chance_apart() -> None:
    """Learning's own chance is no effect of the order (5.4 % of 2,000 worlds are said to have one, measured
    apart); with one learning of each order it is taken for one.
    """
    false = sum(world(seed, learnings=3, chance=0.15).found for seed in range(200))
    assert false <= 16
    taken = sum(world(seed, learnings=1, chance=0.15).found for seed in range(40))
    assert taken >= 20
    found = [world(seed, learnings=3, effect=0.25, chance=0.05) for seed in range(30)]
    assert sum(each.found for each in found) >= 25
    assert found[0].over == "learnings"
    assert "Each order was learned once" not in str(found[0])


@pytest.mark.parametrize("learnings", [1, 3])
def test_the_interval_of_the_spread_covers_the_truth(learnings: int) -> None:
    """95 % intervals over 400 worlds of normal scores whose orders differ with an SD of .5."""
    covered = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        orders = np.repeat(rng.normal(0, 0.5, 5), learnings)[:, None]
        if learnings == 1:
            _, interval = order._two_way(orders + rng.normal(0, 1, (5, 40)), 0.95)
        else:
            _, interval = order._components((orders + rng.normal(0, 0.3, (15, 1)))[:, 0], [3] * 5, 0.95)
        covered += 0.5 in interval
    assert 0.93 <= covered / 400 <= 0.97


def test_orders_that_all_do_the_same_have_no_spread() -> None:
    scores = np.arange(TASKS) % 2
    found = order_sensitivity({"a": [report(scores)], "b": [report(scores)], "c": [report(scores)]})
    assert (found.spread, found.range, found.p, found.found) == (0, 0, 1, False)
    assert found.interval.low == 0
    assert "no effect of the order is shown" in str(found)
    assert OrderSensitivity.model_validate_json(found.model_dump_json()) == found


def test_few_learnings_are_tried_in_every_way() -> None:
    """Two orders with two learnings each can be told apart in 6 ways; the most extreme split has 2 of them."""
    low, high = np.zeros(TASKS), np.ones(TASKS)
    found = order_sensitivity({"a": [report(low), report(low)], "b": [report(high), report(high)]})
    assert found.p == pytest.approx(2 / 6)
    assert found.range == 1


def test_the_order_in_which_orders_are_named_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    reports = {name: [report(rng.random(TASKS) < 0.5)] for name in "abc"}
    one, other = order_sensitivity(reports), order_sensitivity(dict(reversed(reports.items())))
    assert one.spread == pytest.approx(other.spread)
    assert one.interval.high == pytest.approx(other.interval.high)
    assert one.p == pytest.approx(other.p, abs=0.03)


def test_what_cannot_be_compared_is_one_sentence() -> None:
    scores = np.ones(4)
    with pytest.raises(
        InputError, match="1 orders cannot be compared; give an evaluation for each of two or more"
    ):
        order_sensitivity({"a": [report(scores)]})
    with pytest.raises(InputError, match="'one' and 'two' are on different tasks"):
        order_sensitivity({"a": [report(scores, "one")], "b": [report(np.ones(5), "two")]})
    with pytest.raises(InputError, match="or have different rewards"):
        order_sensitivity({"a": [report(scores, reward="f1")], "b": [report(scores, reward="exact")]})
    with pytest.raises(InputError, match="has no task that can be scored"):
        order_sensitivity({"a": [report(scores[:0])], "b": [report(scores[:0])]})
