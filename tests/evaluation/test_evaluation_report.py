"""A report: both denominators, errors by kind, its n and intervals, and its JSON."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Failure, Rollout
from agentmem.domain.trajectory import Message, Step, Trajectory
from agentmem.domain.usage import Usage
from agentmem.errors import InputError
from agentmem.evaluation.report import OUTPUT_CHARS, EvaluationReport, Outcome
from agentmem.evaluation.statistics import wilson


def right(task: str, index: int = 0, score: float = 1.0, **more: Any) -> Outcome:
    return Outcome(task_id=task, index=index, score=score, **more)


def failed(task: str, index: int = 0, kind: str = "model_timeout", **more: Any) -> Outcome:
    failure = Failure(kind=kind, message="no answer")
    return Outcome(task_id=task, index=index, status="failed", failure=failure, reward_status="error", **more)


def unverifiable(task: str, index: int = 0) -> Outcome:
    return Outcome(task_id=task, index=index, reward_status="unverifiable")


def report(*outcomes: Outcome, **more: Any) -> EvaluationReport:
    return EvaluationReport(outcomes=outcomes, **more)


MIXED = report(
    right("a"), right("b", score=0.0),
    failed("c"), failed("d", kind="rate_limited"), failed("e"), unverifiable("f"),
    name="mixed", agent="react", model="openai/x", tasks_name="sums", tasks_fingerprint="abc", reward="exact",
    settings={"temperature": 0.3, "samples": 1}, prior_hash="p1", library_version=3, seconds=65.0,
    usage=Usage(calls=7, prompt_tokens=1000, completion_tokens=234, dollars=0.5),
)  # fmt: skip


def test_an_outcome_is_a_rollout_without_its_trajectory() -> None:
    step = Step(reply=Message(role="assistant", content="x"), usage=Usage(calls=2, dollars=0.1))
    rollout = Rollout(
        task_id="t", index=3, trajectory=Trajectory(steps=(step,), output="y" * 9000), reward=Reward.of(0.5),
        status="limit", seconds=2.0,
    )  # fmt: skip
    outcome = Outcome.of(rollout, cluster="c")
    assert (outcome.task_id, outcome.index, outcome.score, outcome.status) == ("t", 3, 0.5, "limit")
    assert (outcome.usage.calls, outcome.seconds, outcome.cluster) == (2, 2.0, "c")
    assert outcome.output is not None
    assert len(outcome.output) == OUTPUT_CHARS
    assert outcome.completed
    assert outcome.error is None


def test_a_failed_rollout_keeps_its_kind_and_a_short_message() -> None:
    failure = Failure(kind="rate_limited", message="z" * 9000)
    outcome = Outcome.of(Rollout(task_id="t", reward=Reward.unknown("?"), status="failed", failure=failure))
    assert outcome.error == "rate_limited"
    assert outcome.score is None
    assert outcome.failure is not None
    assert len(outcome.failure.message) == OUTPUT_CHARS


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (right("a"), None),
        (right("a", status="limit"), None),
        (unverifiable("a"), None),
        (failed("a"), "model_timeout"),
        (Outcome(task_id="a", status="failed", reward_status="error"), "error"),
        (Outcome(task_id="a", reward_status="error"), "reward"),
        (Outcome(task_id="a", status="limit", reward_status="error"), "reward"),
        (Outcome(task_id="a", status="failed", reward_status="unverifiable"), "error"),
        (right("a", status="failed"), "error"),
    ],
)
def test_an_attempt_is_completed_or_an_error_or_unverifiable(outcome: Outcome, error: str | None) -> None:
    assert outcome.error == error
    assert [outcome.completed, outcome.unverifiable, outcome.error is not None].count(True) == 1


def test_a_score_exists_exactly_when_scored() -> None:
    with pytest.raises(ValidationError, match="exactly when its reward_status"):
        Outcome(task_id="a")
    with pytest.raises(ValidationError, match="exactly when its reward_status"):
        Outcome(task_id="a", score=1.0, reward_status="error")


def test_two_denominators_and_errors_by_kind() -> None:
    assert (MIXED.score, MIXED.n) == (0.2, 5)
    assert MIXED.completed_score == 0.5
    assert MIXED.interval == wilson(1, 5)
    assert MIXED.completed_interval == wilson(1, 2)
    assert MIXED.errors == {"model_timeout": 2, "rate_limited": 1}
    assert list(MIXED.errors) == ["model_timeout", "rate_limited"]
    assert MIXED.unverifiable == 1


def test_nine_right_and_one_error_is_not_a_score_of_one() -> None:
    found = report(*(right(str(i)) for i in range(9)), failed("9"))
    assert found.score == pytest.approx(0.9)
    assert found.completed_score == 1.0
    assert found.completed_interval.low < 0.75


def test_mean_at_k_is_a_mean_of_means() -> None:
    found = report(right("a", 0), right("a", 1), right("a", 2), right("b", 0, 0.0))
    assert found.score == 0.5, "not 3 of 4: every task counts the same"
    assert found.k == 3
    assert "Mean@1–3" in found.table().text()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_pass_metrics_are_means_over_tasks(k: int) -> None:
    found = report(*(right("a", i, float(i < 1)) for i in range(4)), *(right("b", i) for i in range(4)))
    assert found.pass_at(k) == pytest.approx((k / 4 + 1) / 2)
    assert found.pass_hat(k) == pytest.approx(((1 / 4 if k == 1 else 0) + 1) / 2)
    assert found.pass_at_interval(k).n == 2
    assert found.pass_at(5) is None
    assert found.pass_hat(5) is None


def test_pass_counts_failed_attempts_as_not_passed() -> None:
    assert report(right("a"), failed("a", 1)).pass_at(1) == 0.5
    assert report(right("a"), right("a", 1, status="failed")).pass_at(1) == 0.5
    assert report(right("a", score=0.7)).pass_at(1) == 0.0
    assert report(right("a", score=0.7)).pass_at(1, threshold=0.5) == 1.0


def test_rewards_below_zero_do_not_make_a_failure_a_gain() -> None:
    found = report(right("a", score=-1.0), failed("b"))
    assert (found.score, found.worst) == (-1.0, -1.0)
    assert report(right("a"), failed("b"), failed_score=-1.0).score == 0.0
    assert "a failed attempt counts as -1.000" in str(found)


def test_rewards_on_another_scale_have_an_interval() -> None:
    graded = report(*(right(str(i), score=float(i % 7)) for i in range(40)))
    assert graded.bounds is None
    assert graded.interval.method == "studentised bootstrap over tasks"
    assert graded.interval.low < graded.score < graded.interval.high  # type: ignore[operator]
    signs = report(*(right(str(i), score=1.0 if i % 4 else -1.0) for i in range(40)))
    assert signs.bounds == (-1.0, 1.0)
    assert signs.interval.method == "Wilson"


def test_clusters_widen_the_interval() -> None:
    outcomes = [right(str(i), score=float(i // 8 % 2)) for i in range(64)]
    clustered = [outcome.model_copy(update={"cluster": str(i // 8)}) for i, outcome in enumerate(outcomes)]
    wide, narrow = report(*clustered).interval, report(*outcomes).interval
    assert wide.n == 8
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_an_empty_report_says_nothing() -> None:
    for empty in (report(), report(unverifiable("a"))):
        assert empty.score is None
        assert empty.completed_score is None
        assert empty.n == 0
        assert (empty.interval.low, empty.interval.high) == (0, 1)
        assert empty.pass_at(1) is None
        assert "–" in empty.table().text()


def test_json_round_trip() -> None:
    assert EvaluationReport.from_json(MIXED.to_json()) == MIXED
    assert EvaluationReport.from_json(MIXED.to_json()).to_json() == MIXED.to_json()
    assert '"schema": 1' in MIXED.to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "run.json is no evaluation report"),
        ('{"outcomes": [{"score": 1}]}', r"at outcomes\.0\.task_id"),
        ('{"schema": 99}', "schema 99, newer than this agentmem reads"),
        ('{"outcomes": [{"task_id": "a", "score": 1}, {"task_id": "a", "score": 0}]}', "attempt 0 of task 'a'"),
        ('{"outcomes": [{"task_id": "a", "score": NaN}]}', "finite"),
    ],
)
def test_bad_json_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EvaluationReport.from_json(text, source="run.json")


def test_the_table_has_every_figure_with_its_n_and_interval() -> None:
    text = MIXED.table().text()
    assert text.splitlines()[0] == "mixed: 5 tasks of 'sums', reward exact"
    for line in (
        "score (Mean@1)", "0.200  [0.036, 0.624]", "completed only", "0.500  [0.095, 0.905]", "5 tasks", "2 tasks",
        "model_timeout 2, rate_limited 1", "of 6 attempts", "in no score", "$0.50",
        "1,234 tokens, 7 calls, 1 min 5 s",
        "agent react, model openai/x, temperature 0.3, library version 3, memory p1", "95 % intervals: Wilson",
    ):  # fmt: skip
        assert line in text, line
    assert "<table>" in MIXED._repr_html_()
    assert str(MIXED) == str(MIXED.table())


def test_what_did_not_happen_is_not_in_the_table() -> None:
    text = report(right("a"), right("b", score=0.0)).table().text()
    for word in ("completed", "errors", "unverifiable", "limit", "pass@"):
        assert word not in text
    assert "pass@2" in report(right("a"), right("a", 1)).table().text()
    assert "stopped by a limit" in report(right("a", status="limit")).table().text()


def test_an_unknown_price_is_not_a_cost_of_zero() -> None:
    found = report(right("a"), usage=Usage(calls=1, dollars=None))
    assert found.cost is None
    assert "unknown" in found.table().text()


OUTCOMES = st.lists(
    st.one_of(
        st.sampled_from([0.0, 0.5, 1.0, -1.0, 3.0]).map(lambda score: {"score": score}),
        st.just({"status": "failed", "reward_status": "error"}),
        st.just({"reward_status": "unverifiable"}),
    ),
    min_size=1,
    max_size=24,
)


@given(OUTCOMES, st.integers(1, 4), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_order_of_outcomes_does_not_matter(kinds: list[Any], k: int, random: Any) -> None:
    outcomes = [Outcome(task_id=str(i // k), index=i % k, **kind) for i, kind in enumerate(kinds)]
    shuffled = random.sample(outcomes, len(outcomes))
    found, again = report(*outcomes), report(*shuffled)
    for name in ("score", "interval", "completed_score", "completed_interval", "n", "k", "errors", "unverifiable"):
        assert getattr(found, name) == getattr(again, name), name


@given(OUTCOMES, st.integers(1, 4), st.integers(0, 23))
@settings(max_examples=100, deadline=None)
def test_an_error_never_raises_the_strict_score(kinds: list[Any], k: int, at: int) -> None:
    outcomes = [Outcome(task_id=str(i // k), index=i % k, **kind) for i, kind in enumerate(kinds)]
    at %= len(outcomes)
    if outcomes[at].unverifiable:
        return
    broken = [*outcomes]
    broken[at] = failed(outcomes[at].task_id, outcomes[at].index)
    sound, less = report(*outcomes, failed_score=-1.0), report(*broken, failed_score=-1.0)
    assert sound.score is not None
    assert less.score is not None
    assert less.score <= sound.score + 1e-12
    assert math.isclose(sum(less.errors.values()), sum(sound.errors.values()) + (outcomes[at].error is None))
