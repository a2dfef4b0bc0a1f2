"""Benchmarks: their columns, records and rewards hold on a fixture of the data set's own form."""

from __future__ import annotations

import asyncio
import importlib
import re
from pathlib import Path

import pytest

from agentmem.domain.trajectory import Trajectory
from agentmem.errors import InputError
from agentmem.rewards.judge import Judge
from agentmem.rewards.reward_function import check_answers, resolve_reward
from agentmem.task_sources.benchmark import Benchmark
from agentmem.task_sources.hub import Hub

FOLDER = Path(__file__).parent.parent.parent / "benchmarks" / "tasks"
NAMES = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__")
EACH = pytest.mark.parametrize("name", NAMES)
MOVING = {"webwalkerqa"}
"""No commit could be established for these; their files say so."""


def benchmark(name: str) -> Benchmark:
    return importlib.import_module(f"benchmarks.tasks.{name}").BENCHMARK


def test_every_benchmark_is_there() -> None:
    wanted = {"aime2024", "aime2025", "dapo_math", "gsm8k", "math500", "open_ended", "simpleqa", "triviaqa"}
    assert set(NAMES) == wanted | {"webwalkerqa"}


@EACH
def test_it_is_a_short_file_with_a_pinned_revision_or_says_why_not(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 100
    source = benchmark(name).source
    if isinstance(source, Hub):
        assert source.pinned == (name not in MOVING)
        assert ("no commit of this data set could be established" in text) == (name in MOVING)


@EACH
def test_its_fixture_has_five_tasks_that_its_reward_can_score(name: str) -> None:
    made = benchmark(name)
    tasks = made.load(fixture=True)
    assert len(tasks) == 5
    assert tasks.name == f"{made.name} fixture"
    assert {task.license for task in tasks} == {made.license}
    reward = Judge(None, made.rubric) if made.reward == "judge" else resolve_reward(made.reward)
    check_answers(reward, tasks)
    if isinstance(made.source, Hub):
        assert all(task.answer for task in tasks)
    # The fixture can be read again: nothing of it was used up.
    assert made.load(fixture=True).fingerprint == tasks.fingerprint


@pytest.mark.parametrize("name", [name for name in NAMES if benchmark(name).reward != "judge"])  # a model judges
def test_the_usual_reward_knows_right_from_wrong(name: str) -> None:
    made = benchmark(name)
    reward = resolve_reward(made.reward)

    async def score(task, said: str) -> float | None:
        return (await reward(task, Trajectory.said(said), None)).score

    async def all_scores() -> tuple[list, list]:
        tasks = made.load(fixture=True)
        right = [await score(task, f"So it follows.\nAnswer: {task.answer}") for task in tasks]
        return right, [await score(task, "Answer: 123456789") for task in tasks]

    right, wrong = asyncio.run(all_scores())
    assert right == [1.0] * 5
    assert wrong == [0.0] * 5


def test_the_answer_of_gsm8k_stands_behind_the_solution() -> None:
    tasks = benchmark("gsm8k").load(fixture=True)
    assert [task.answer for task in tasks] == ["75", "1296", "6", "36", "15"]
    assert "####" not in tasks[0].metadata["solution"]


def test_triviaqa_takes_any_alias() -> None:
    task = benchmark("triviaqa").load(fixture=True)[0]
    assert (task.answer, task.metadata["aliases"]) == ("15", ["15", "Fifteen", "fifteen minutes"])
    assert asyncio.run(resolve_reward("f1")(task, Trajectory.said("fifteen minutes"), None)).score == 1.0


def test_webwalkerqa_gives_the_page_to_begin_at() -> None:
    tasks = benchmark("webwalkerqa").load(fixture=True)
    assert tasks[0].input.startswith("https://harbour-museum.example/\n\nOn which weekday")
    assert tasks[0].cluster == tasks[1].cluster != tasks[2].cluster
    assert [task.level for task in tasks[:3]] == ["easy", "medium", "hard"]


def test_the_open_ended_family_asks_every_matter_of_every_reader() -> None:
    tasks = benchmark("open_ended").load()
    assert len(tasks) == 60
    assert len({task.input for task in tasks}) == 60
    assert len({task.cluster for task in tasks}) == 12
    assert all(task.answer is None and task.metadata["rubric"].count("\n- It ") == 2 for task in tasks)


def test_the_answers_of_our_own_problems_are_right() -> None:
    from itertools import combinations, pairwise, product
    from math import comb, factorial, gcd

    answers = {task.id: task.answer for task in benchmark("aime2024").load(fixture=True)}
    assert answers["1"] == str(sum(a % 7 == 0 and (100 - a) % 3 == 0 for a in range(1, 100)))
    assert answers["2"] == str(
        min((a + 360 // a, a * a + (360 // a) ** 2) for a in range(1, 361) if 360 % a == 0)[1]
    )
    assert answers["3"] == str((2**40 + 3**40) % 1000)
    assert answers["4"] == str(sum(sum(digits) % 2 == 0 for digits in combinations(range(1, 10), 3)))
    hits = sum(sum(t) == 2 and not any(a and b for a, b in pairwise(t)) for t in product((0, 1), repeat=6))
    assert answers["5"] == str((hits + 64) // gcd(hits, 64))

    answers = {task.id: task.answer for task in benchmark("aime2025").load(fixture=True)}
    pairs = [(x, y) for x in range(1, 500) for y in range(x + 1, 500) if x * y == 6 * (x + y)]
    assert answers["1"] == str(sum({y for _, y in pairs}))
    value = 3
    for _ in range(8):
        value = 2 * value - 1
    assert answers["2"] == str(value)
    assert answers["3"] == str(sum(not bits & bits >> 1 for bits in range(1024)))
    assert answers["4"] == str((84 * 84) // (21 * 21))
    assert answers["5"] == str(max(k for k in range(20) if factorial(12) % 6**k == 0))

    answers = {task.id: task.answer for task in benchmark("dapo_math").load(fixture=True)}
    assert answers["1"] == str(sum(432 % d == 0 and d % 12 == 0 for d in range(1, 433)))
    assert answers["2"] == str(next(n for n in range(0, 400, 2) if sum(range(n - 8, n + 1, 2)) == 340))
    assert answers["3"] == str(comb(7, 2))
    assert answers["4"] == str(next(n for n in range(2, 100) if (n * n - n) % 35 == 0))
    assert answers["5"] == str(2 * 4 * 10)


def test_what_a_benchmark_cannot_do_is_one_sentence() -> None:
    with pytest.raises(InputError, match="The benchmark 'x' has no fixture; leave --fixture out"):
        Benchmark("x", ({"input": "a"},)).load(fixture=True)
    with pytest.raises(InputError, match="'x' holds no task"):
        Benchmark("x", ()).load()
    with pytest.raises(InputError, match=r"x, row 2: the benchmark's record function raised KeyError: 'answer'"):
        Benchmark(
            "x", ({"input": "a", "answer": "b"}, {"input": "a"}), record=lambda r: {**r, "answer": r["answer"]}
        ).load()
    broken = Benchmark("x", ({"ask": "a"},), columns={"input": "asks"})
    with pytest.raises(InputError, match=re.escape("x, row 1: no 'asks', the column of 'input'")):
        broken.load()


def test_a_gated_benchmark_marks_its_tasks() -> None:
    (task,) = Benchmark("x", ({"input": "a"},), gated=True, license="ask them").load()
    assert task.gated
    assert task.license == "ask them"
