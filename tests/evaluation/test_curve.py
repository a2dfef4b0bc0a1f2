"""The learning curve of stored runs: what was scored when, what had been spent by then, and the bands."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate, alearn_online
from agentmem.domain.task import Task
from agentmem.errors import InputError
from agentmem.evaluation.answered import Answered, Course
from agentmem.evaluation.curve import curve
from agentmem.evaluation.intervals import mean_interval
from agentmem.testing.scripted import ScriptedModel, load_script


def course(scores: list[float], name: str = "run", tokens: int = 10, dollars: float | None = 0.5) -> Course:
    def spent(n: int) -> float | None:
        return None if dollars is None else dollars * n

    answered = (Answered(f"t{n}", score, tokens * n, spent(n)) for n, score in enumerate(scores, start=1))
    return Course(name, tuple(answered))


def learner(seed: int, *, low: float, high: float, n: int = 160) -> Course:
    """A run whose chance of success goes from `low` to `high`."""
    rng = random.Random(seed)
    return course([float(rng.random() < low + (high - low) * k / n) for k in range(n)], f"seed {seed}")


def test_stretches_of_equal_length_hold_the_scores_made_in_them() -> None:
    found = curve([course([0, 0, 0, 1, 1, 1, 1, 1])], windows=4)
    assert [point.score for point in found.points] == [0, 0.5, 1, 1]
    assert [(point.start, point.end, point.tasks) for point in found.points] == [
        (0, 2, 2),
        (2, 4, 2),
        (4, 6, 2),
        (6, 8, 2),
    ]
    assert found.points[1].band == mean_interval([0, 1], ["t3", "t4"])
    assert found.area == 5 / 8
    assert found.area in found.area_band
    assert found.gain == 1


def test_tokens_and_dollars_are_axes_too() -> None:
    # The second half cost three times as much a task.
    answered = [
        Answered(f"t{n}", float(n >= 4), 10 * n if n < 5 else 40 + 30 * (n - 4), float(n)) for n in range(1, 9)
    ]
    made = Course("run", tuple(answered))
    tokens = curve([made], axis="tokens", windows=4)
    assert [point.tasks for point in tokens.points] == [4, 1, 1, 2]
    assert tokens.points[-1].end == 160
    assert [point.tasks for point in curve([made], axis="dollars", windows=4).points] == [2, 2, 2, 2]
    assert "$0 to $2.00" in str(curve([made], axis="dollars", windows=4))


def test_a_stretch_in_which_nothing_was_answered_has_no_score() -> None:
    made = Course("run", (Answered("a", 1.0, 10, None), Answered("b", 0.0, 100, None)))
    points = curve([made], axis="tokens", windows=5).points
    assert [point.score for point in points] == [1.0, None, None, None, 0.0]
    assert points[1].runs == 0
    assert "–" in str(curve([made], axis="tokens", windows=5))


def test_several_runs_have_bands_over_runs_and_end_with_the_shortest() -> None:
    found = curve([course([0, 0, 1, 1]), course([0, 1, 1, 1]), course([0, 1, 1, 1, 0, 0])], windows=2)
    assert [point.score for point in found.points] == [pytest.approx(1 / 3), 1]
    assert found.points[0].band == mean_interval([0, 0.5, 0.5], bounds=(0, 1))
    assert (found.points[0].runs, found.points[0].tasks) == (3, 6)
    assert found.uneven
    assert "The axis ends where the shortest run does" in str(found)
    assert not curve([course([0, 1])], windows=2).uneven


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(1, 12))
def test_every_answer_is_in_one_stretch(scores: list[float], windows: int) -> None:
    found = curve([course(scores)], windows=windows)
    assert sum(point.tasks for point in found.points) == len(scores)
    whole = sum((point.score or 0) * point.tasks for point in found.points) / len(scores)
    assert whole == pytest.approx(sum(scores) / len(scores), abs=1e-9)
    assert all(
        point.score is None or point.band.low - 1e-9 <= point.score <= point.band.high + 1e-9
        for point in found.points
    )


def test_a_planted_gain_shows_and_none_does_not() -> None:
    """Of 40 sets of 5 runs, the first and the last band part in all with a gain from .2 to .8, and seldom without."""
    parted = {"gain": 0, "flat": 0}
    for trial in range(40):
        for name, (low, high) in {"gain": (0.2, 0.8), "flat": (0.5, 0.5)}.items():
            found = curve([learner(100 * trial + seed, low=low, high=high) for seed in range(5)], windows=4)
            parted[name] += found.points[-1].band.low > found.points[0].band.high
    assert parted["gain"] == 40
    assert parted["flat"] <= 2


def test_what_makes_no_curve_is_one_sentence() -> None:
    with pytest.raises(InputError, match="0 runs and 8 windows make no curve"):
        curve([])
    with pytest.raises(InputError, match=r"What run cost is not known in dollars: .* Use --axis tokens"):
        curve([course([1, 0], dollars=None)], axis="dollars")
    with pytest.raises(InputError, match="No tokens were spent"):
        curve([course([1, 0], tokens=0)], axis="tokens")


# From a run's journal


TASKS = [Task(id=f"s{n}", input=f"What is {n} + 2?", answer=str(n + 2)) for n in range(6)]


def test_a_learning_run_is_followed_task_by_task(taught: Path) -> None:
    made = Course.of(taught)
    steps = 3 * 20  # epochs times tasks
    assert len(made.answered) == steps
    connection = sqlite3.connect(taught / "journal.sqlite")
    (scored,) = connection.execute(
        "SELECT avg(json_extract(result, '$.reward.score')) FROM steps WHERE phase='learn' AND purpose='rollout'"
    ).fetchone()
    (tokens,) = connection.execute("SELECT sum(prompt_tokens + completion_tokens) FROM attempts").fetchone()
    connection.close()
    assert sum(answer.score for answer in made.answered) / steps == pytest.approx(scored)
    spent = [answer.tokens for answer in made.answered]
    assert spent == sorted(spent)
    assert 0 < spent[0] < spent[-1] <= tokens
    assert len(curve([made]).points) == 8


def test_an_evaluation_and_a_stream_have_a_course_too(tmp_path: Path) -> None:
    agent = Agent(ScriptedModel(load_script("coin?p=0.5"), name="scripted/coin"))
    asyncio.run(aevaluate(agent, TASKS, reward="numeric", samples=2, run=tmp_path / "eval", listeners=()))
    made = Course.of(tmp_path / "eval")
    assert {answer.task for answer in made.answered} == {task.id for task in TASKS}
    assert all(answer.score in (0, 0.5, 1) for answer in made.answered)
    stream = alearn_online(
        agent,
        TASKS * 2,
        reward="numeric",
        group_size=3,
        extractor="exemplar",
        run=tmp_path / "online",
        listeners=(),
    )
    result = asyncio.run(stream)
    # Only the answers that were handed out count, not the attempts that learning made behind them.
    made = Course.of(tmp_path / "online")
    assert sorted(answer.score for answer in made.answered) == sorted(o.score for o in result.report.outcomes)
    assert len(made.answered) == 12


def test_failures_count_as_wrong_and_what_nothing_can_verify_does_not(tmp_path: Path) -> None:
    def answer(task: Task, prior: str) -> str:
        if task.id == "s1":
            raise ValueError("broken")
        return str(int(task.id[1:]) + 2)

    def judged(task: Task, trajectory: object) -> float | None:
        return None if task.id == "s2" else 1.0

    asyncio.run(
        aevaluate(Agent(answer), TASKS, reward=judged, run=tmp_path / "r", listeners=(), max_error_share=1.0)
    )
    scores = {answer.task: answer.score for answer in Course.of(tmp_path / "r").answered}
    assert scores == {"s0": 1.0, "s1": 0.0, "s3": 1.0, "s4": 1.0, "s5": 1.0}


def test_a_folder_without_scores_is_one_sentence(tmp_path: Path, sums: Path) -> None:
    with pytest.raises(InputError, match="does not exist; name the folder of a run"):
        Course.of(tmp_path / "none")
    silent: Callable[[Task, str], str] = lambda task, prior: "x"  # noqa: E731
    unverified = aevaluate(
        Agent(silent), TASKS[:2], reward=lambda task, trajectory: None, run=tmp_path / "r", listeners=()
    )
    asyncio.run(unverified)
    with pytest.raises(InputError, match=r"Nothing in .* can be verified"):
        Course.of(tmp_path / "r")
