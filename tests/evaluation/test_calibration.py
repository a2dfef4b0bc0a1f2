"""Calibration: identities, closed forms, scipy, and simulated answers whose confidence is known to be true or false."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.errors import InputError
from agentmem.evaluation.calibration import Answer, calibration, risk_coverage

ANSWERS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 0.99, 1.0]), st.booleans()),
    min_size=1,
    max_size=30,
).map(lambda rows: [Answer(f"t{task}", p, right) for task, p, right in rows])


@given(ANSWERS, st.integers(1, 12))
def test_the_parts_of_the_brier_score_add_up(answers: list[Answer], bins: int) -> None:
    found = calibration(answers, bins=bins)
    brier = np.mean([(a.confidence - a.right) ** 2 for a in answers])
    assert found.brier == pytest.approx(brier)
    whole = found.reliability - found.resolution + found.uncertainty + found.within
    assert whole == pytest.approx(brier, abs=1e-12)
    assert 0 <= found.ece_interval.low <= found.ece_interval.high <= 1
    assert sum(b.n for b in found.bins) == found.n == len(answers)


@given(ANSWERS)
def test_the_area_is_that_of_mann_whitney(answers: list[Answer]) -> None:
    from scipy.stats import mannwhitneyu

    right = [a.confidence for a in answers if a.right]
    wrong = [a.confidence for a in answers if not a.right]
    found = calibration(answers)
    if not right or not wrong:
        assert (found.auroc, found.auroc_interval) == (None, None)
    else:
        assert found.auroc == pytest.approx(mannwhitneyu(right, wrong).statistic / len(right) / len(wrong))
        assert found.auroc_interval is not None
        assert 0 <= found.auroc_interval.low <= found.auroc_interval.high <= 1


@given(ANSWERS, st.randoms())
def test_the_order_of_answers_has_no_influence(answers: list[Answer], random) -> None:
    moved = list(answers)
    random.shuffle(moved)
    one, other = calibration(answers), calibration(moved)
    assert one.ece == pytest.approx(other.ece)
    assert one.ece_interval.high == pytest.approx(other.ece_interval.high)
    assert one.auroc == other.auroc
    assert one.risk == pytest.approx(other.risk)


def test_equal_confidences_are_one_bin_and_its_error_is_exact() -> None:
    answers = [Answer(str(i), 0.9, i < 6) for i in range(10)] + [
        Answer(str(i), 0.2, i < 12) for i in range(10, 20)
    ]
    found = calibration(answers, bins=2)
    assert [(b.confidence, b.right, b.n) for b in found.bins] == [
        (pytest.approx(0.2), 0.2, 10),
        (pytest.approx(0.9), 0.6, 10),
    ]
    assert found.ece == pytest.approx(0.15)
    assert found.within == pytest.approx(0)
    assert found.reliability == pytest.approx(0.3**2 / 2)


@given(ANSWERS)
def test_risk_at_full_coverage_is_the_share_of_wrong_answers(answers: list[Answer]) -> None:
    curve = risk_coverage(answers)
    assert [coverage for coverage, _ in curve] == pytest.approx(
        [(i + 1) / len(answers) for i in range(len(answers))]
    )
    assert curve[-1][1] == pytest.approx(np.mean([not a.right for a in answers]))


def test_risk_falls_where_confidence_is_right_and_not_where_it_says_nothing() -> None:
    sure = [Answer(str(i), 0.9 if i < 5 else 0.3, i < 5) for i in range(10)]
    assert [risk for _, risk in risk_coverage(sure)][:5] == [0] * 5
    assert risk_coverage(sure)[9] == (1.0, 0.5)
    flat = [Answer(str(i), 0.5, i < 5) for i in range(10)]
    assert [risk for _, risk in risk_coverage(flat)] == pytest.approx([0.5] * 10)


def simulated(rng: np.random.Generator, tasks: int, shift: float) -> list[Answer]:
    said = rng.choice([0.3, 0.5, 0.7, 0.9], tasks)
    return [Answer(str(i), float(p), bool(rng.random() < p - shift)) for i, p in enumerate(said)]


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_the_interval_of_the_error_holds_the_truth(shift: float) -> None:
    rng = np.random.default_rng(0)
    made = [calibration(simulated(rng, 165, shift), bins=4).ece_interval for _ in range(120)]
    held = np.mean([interval.low <= shift + 1e-9 <= interval.high for interval in made])
    assert held > 0.88
    assert np.mean([interval.high - interval.low for interval in made]) < 0.2


def test_what_chance_alone_does_to_the_error_is_said() -> None:
    rng = np.random.default_rng(1)
    true = [calibration(simulated(rng, 60, 0.0), bins=4) for _ in range(60)]
    assert np.mean([c.ece for c in true]) == pytest.approx(np.mean([c.ece_by_chance for c in true]), abs=0.02)
    assert min(c.ece_by_chance for c in true) > 0.03


def test_what_is_no_confidence_is_refused() -> None:
    with pytest.raises(InputError, match="no answer with a confidence"):
        calibration([])
    with pytest.raises(InputError, match="'t' has the confidence 85"):
        calibration([Answer("t", 85, True)])
    with pytest.raises(InputError, match="only 1 were asked"):
        calibration([Answer("t", 0.5, True), Answer("u", 0.5, True)], asked=1)


def test_the_table_names_what_is_missing() -> None:
    found = calibration([Answer("a", 0.8, True), Answer("b", 0.6, False)], asked=4)
    assert found.missing == 0.5
    assert "50.0 %" in str(found)
    assert type(found).model_validate_json(found.to_json()) == found
