"""Comparisons: pairing, tests, flipped tasks, both denominators, and refusals."""

import random as random_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.domain.rollout import Failure
from agentmem.domain.usage import Usage
from agentmem.errors import InputError
from agentmem.evaluation.comparison import Comparison, compare
from agentmem.evaluation.comparisons import compare_many
from agentmem.evaluation.report import EvaluationReport, Outcome
from agentmem.evaluation.statistics import mcnemar, paired_interval, sign_flip


def report(*scores: Any, name: str = "arm", k: int = 1, **more: Any) -> EvaluationReport:
    """A report with these scores, `k` a task; "x" failed, "?" is unverifiable."""
    outcomes = []
    for i, score in enumerate(scores):
        place = {"task_id": f"t{i // k}", "index": i % k}
        if score == "x":
            failure = Failure(kind="model_timeout", message="late")
            outcomes.append(Outcome(**place, status="failed", reward_status="error", failure=failure))
        elif score == "?":
            outcomes.append(Outcome(**place, reward_status="unverifiable"))
        else:
            outcomes.append(Outcome(**place, score=float(score)))
    return EvaluationReport(name=name, outcomes=tuple(outcomes), **more)


def test_single_attempts_are_compared_by_mcnemar() -> None:
    found = compare(report(*[0] * 9, 1, 1, 0, name="off"), report(*[1] * 9, 0, 1, 0, name="on"))
    assert found.difference == pytest.approx(8 / 12)
    assert found.test == mcnemar(9, 1)
    assert found.interval == paired_interval([1] * 9 + [-1, 0, 0])
    assert [flip.task_id for flip in found.fixed] == [f"t{i}" for i in range(9)]
    assert [flip.task_id for flip in found.broken] == ["t9"]
    assert found.better
    assert not found.worse
    assert (found.before.name, found.after.name, found.n) == ("off", "on", 12)


def test_several_attempts_are_compared_by_sign_flip() -> None:
    found = compare(report(0, 0, 0, 0, 1, 1, k=2), report(1, 1, 0, 1, 1, 0, k=2))
    assert found.test == sign_flip([1, 0.5, -0.5])
    assert [(flip.task_id, flip.change) for flip in found.fixed] == [("t0", 1.0), ("t1", 0.5)]
    assert [(flip.task_id, flip.change) for flip in found.broken] == [("t2", -0.5)]
    text = found.table().text()
    assert "improved (2): t0 +1.000, t1 +0.500" in text
    assert "worsened (1): t2 -0.500" in text


def test_graded_rewards_are_compared_by_sign_flip() -> None:
    found = compare(report(0.2, 0.4, 5.0), report(0.4, 0.4, 4.0))
    assert found.test.method == "sign-flip exact"
    assert found.difference == pytest.approx(-0.8 / 3)


def test_clusters_flip_as_one() -> None:
    def clustered(*scores: int) -> EvaluationReport:
        outcomes = (Outcome(task_id=str(i), score=s, cluster=str(i // 4)) for i, s in enumerate(scores))
        return EvaluationReport(outcomes=tuple(outcomes))

    found = compare(clustered(*[0] * 16), clustered(*[1] * 16))
    assert found.test.p == 2 / 2**4
    assert found.interval.n == 4
    assert compare(report(*[0] * 16), report(*[1] * 16)).test.p == 2 / 2**16


def test_worse_means_that_the_whole_interval_is_below_zero() -> None:
    down = compare(report(*[1] * 20), report(*[0] * 10, *[1] * 10))
    assert down.worse
    assert down.verdict == "worse"
    assert down.interval.high < 0
    little = compare(report(*[1] * 20), report(0, 0, *[1] * 18))
    assert not little.worse
    assert little.verdict == "undecided"
    assert compare(report(*[1] * 20), report(*[0] * 6, *[1] * 14)).worse
    assert not compare(report(*[1] * 20), report(*[0] * 6, *[1] * 14), confidence=0.9999).worse


def test_failures_count_as_wrong_in_both_arms_and_apart() -> None:
    found = compare(report(1, 1, 0, "x", 0), report(1, "x", 1, 1, 0))
    assert found.difference == pytest.approx(0.2)
    assert (found.before.errors, found.after.errors) == ({"model_timeout": 1}, {"model_timeout": 1})
    assert found.completed is not None
    assert found.completed.n == 3
    assert found.completed.value == pytest.approx(1 / 3)
    text = found.table().text()
    assert "completed only, n = 3" in text
    assert "errors (counted as wrong)" in text
    assert "errors of after: model_timeout 1" in text
    assert "completed only" not in compare(report(1, 0), report(0, 0)).table().text()


def test_no_task_completed_in_both() -> None:
    found = compare(report(1, "x"), report("x", 1))
    assert found.completed is None
    assert found.difference == 0


def test_a_failure_counts_as_the_worst_of_both_arms() -> None:
    assert compare(report("x", 1), report(-1, 1)).difference == 0
    assert compare(report(-1, 1), report("x", 1)).difference == 0


def test_what_cannot_be_verified_is_left_out_and_named() -> None:
    found = compare(report(1, "?", 0), report(1, 1, 1))
    assert (found.n, found.unpaired, found.difference) == (2, ("t1",), 0.5)
    assert "nothing can verify them in one arm (1): t1" in found.table().text()


@pytest.mark.parametrize("k", [1, 2])
def test_an_agent_against_itself(k: int) -> None:
    same = report(1, 0, 1, "x", 0, 1, k=k)
    found = compare(same, same)
    assert (found.difference, found.test.p, found.fixed, found.broken) == (0, 1, (), ())
    assert found.interval.low < 0 < found.interval.high
    assert not found.worse
    assert not found.better
    assert (found.before.name, found.after.name) == ("before", "after")
    assert "fixed (0): none" in found.table().text() or "improved (0): none" in found.table().text()


def test_arms_on_different_tasks_are_refused_with_their_ids() -> None:
    longer = report(*[1] * 14, name="on")
    with pytest.raises(
        InputError, match=r"'off' and 'on' are on different tasks: only 'on' has t2, t3.* and 2 more"
    ):
        compare(report(1, 0, name="off"), longer)
    with pytest.raises(InputError, match="only 'on' has t2"):
        compare(longer, report(1, 0, name="off"))
    with pytest.raises(InputError, match="same ids and different content"):
        compare(report(1, 0, tasks_fingerprint="a"), report(1, 0, tasks_fingerprint="b"))
    one, two = report(1, 0, tasks_fingerprint="a"), report(1, 0, tasks_fingerprint="b")
    compare(one, two.model_copy(update={"outcomes": two.outcomes[::-1]}))


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="judged by different rewards, 'math' and 'exact'"):
        compare(report(1, reward="math"), report(1, reward="exact"))
    for nothing in (report(), report("?")):
        with pytest.raises(InputError, match="share no task that can be scored"):
            compare(nothing, nothing)
    with pytest.raises(InputError, match="confidence=95"):
        compare(report(1), report(1), confidence=95)


def test_the_table_names_ten_tasks_each_way_and_counts_the_rest() -> None:
    text = compare(report(*[0] * 12, *[1] * 13), report(*[1] * 12, *[0] * 13)).table().text(width=500)
    assert "fixed (12): t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more" in text
    assert "broken (13): t12, t13, t14, t15, t16, t17, t18, t19, t20, t21 and 3 more" in text


def test_the_table_has_scores_intervals_test_and_cost() -> None:
    spent = Usage(calls=3, prompt_tokens=1500, dollars=0.25)
    found = compare(report(0, 0, 1, name="off", seconds=2.0), report(1, 1, 1, name="on", usage=spent, reward=""))
    text = found.table().text(width=500)
    for part in (
        "off → on: 3 tasks", "score (Mean@1), n = 3", "0.333", "1.000", "+0.667", "[0.061, 0.792]",
        "95 % interval",
        "undecided: p = 0.500, mid-p 0.250 (McNemar exact); interval of the difference: Bonett-Price",
        "$0.25", "1,500", "2.0 s",
    ):  # fmt: skip
        assert part in text, part
    assert str(found) == str(found.table())
    assert "<table>" in found._repr_html_()
    assert max(len(line) for line in found.table().text(width=100).splitlines()) <= 100


def test_json_round_trip() -> None:
    for found in (compare(report(1, "x", 0), report(1, 1, "?")), compare(report(2.0), report(7.0))):
        assert Comparison.model_validate_json(found.model_dump_json()) == found


ARMS = st.integers(1, 3).flatmap(
    lambda k: st.lists(
        st.tuples(st.sampled_from([0, 1, 0.5, "x"]), st.sampled_from([0, 1, 0.5, "x"])), min_size=k, max_size=20
    ).map(lambda pairs: (k, pairs[: len(pairs) // k * k]))
)


@given(ARMS)
@settings(max_examples=60, deadline=None)
def test_the_other_way_round_is_the_mirror_image(arms: tuple[int, list[Any]]) -> None:
    k, pairs = arms
    one, two = report(*(a for a, _ in pairs), k=k), report(*(b for _, b in pairs), k=k)
    there, back = compare(one, two), compare(two, one)
    assert there.difference == pytest.approx(-back.difference, abs=1e-12)
    assert there.test.p == pytest.approx(back.test.p)
    assert (there.interval.low, there.interval.high) == pytest.approx((-back.interval.high, -back.interval.low))
    assert {f.task_id for f in there.fixed} == {f.task_id for f in back.broken}
    assert there.interval.low <= there.difference <= there.interval.high
    assert there.difference == pytest.approx(there.after.score - there.before.score)
    assert there.n == there.before.interval.n


@given(ARMS, st.randoms())
@settings(max_examples=40, deadline=None)
def test_the_order_of_tasks_does_not_matter(arms: tuple[int, list[Any]], random: random_module.Random) -> None:
    k, pairs = arms
    one, two = report(*(a for a, _ in pairs), k=k), report(*(b for _, b in pairs), k=k)
    shuffled = two.model_copy(update={"outcomes": tuple(random.sample(two.outcomes, len(two.outcomes)))})
    found, again = compare(one, two), compare(one, shuffled)
    assert (found.strict, found.completed, found.fixed) == (again.strict, again.completed, again.fixed)


def test_many_comparisons_are_adjusted_for_their_number() -> None:
    gain = (report(*[0] * 7, 1), report(*[1] * 7, 1))
    flat = (report(0, 1, 1), report(1, 0, 1))
    found = compare_many([("sums", *gain), ("dates", *flat), ("caps", *flat)])
    assert found.rows[0][1].test.p == pytest.approx(2 / 2**7)
    assert found.adjusted == pytest.approx((6 / 2**7, 1.0, 1.0))
    assert [found.verdict(i) for i in range(3)] == ["better", "undecided", "undecided"]
    assert compare_many([(str(i), *gain) for i in range(4)]).verdict(0) == "undecided", "4 * 2/128 > .05"
    assert found.pooled is not None
    assert (found.pooled.n, found.pooled.value) == (14, 0.5)
    assert found.pooled.test == mcnemar(9, 2)
    text = found.table().text()
    row = "sums 8 0.125 [0.022, 0.471] 1.000 [0.676, 1.000] +0.875 [+0.303, +1.000] 0.047 better"
    assert " ".join(text.splitlines()[3].split()) == row
    assert text.splitlines()[6].startswith("all")
    assert max(len(line) for line in found.table().text(width=100).splitlines()) <= 100
    assert "better" in found._repr_html_()


def test_other_scales_and_single_rows_are_not_pooled() -> None:
    flat = (report(0, 1, 1), report(1, 0, 1))
    assert compare_many([("a", *flat)]).pooled is None
    assert compare_many([("a", *flat), ("b", report(7, 3, 2), report(1, 2, 5))]).pooled is None


def test_clusters_of_different_sets_stay_apart() -> None:
    def one(score: float) -> EvaluationReport:
        return EvaluationReport(outcomes=(Outcome(task_id="t", score=score, cluster="c"),))

    pooled = compare_many([("a", one(0), one(1)), ("b", one(0), one(1))]).pooled
    assert pooled is not None
    assert (pooled.n, pooled.interval.n) == (2, 2)


def test_many_refuses_nothing_and_doubled_names() -> None:
    with pytest.raises(InputError, match="was given nothing"):
        compare_many([])
    flat = (report(0, 1), report(1, 0))
    with pytest.raises(InputError, match="Two task sets are called 'a'"):
        compare_many([("a", *flat), ("a", *flat)])
