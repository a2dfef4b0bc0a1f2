"""The math reward: equal mathematics, and a clock that SymPy cannot outrun."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.errors import InputError
from agentmem.rewards.math import Math, stated_formula
from agentmem.rewards.reward_function import resolve_reward


@pytest.fixture(scope="module")
def reward() -> Iterator[Math]:
    reward = Math()
    yield reward
    reward.close()


async def scored(reward: Math, answer: str, output: str) -> Reward:
    return await reward(Task(id="t", input="?", answer=answer), Trajectory.said(output), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "output", "score"),
    [
        ("1/2", "The answer is \\boxed{\\frac{1}{2}}", 1),
        ("\\frac{1}{2}", "0.5", 1),
        ("x^2+1", "We get $1 + x^2$.", 1),
        ("x^2+1", "The answer is x^2 + 1.", 1),
        ("x^2+1", "$x^2 + 2$", 0),
        ("(x+1)(x-1)", "The product is $x^2-1$.", 1),
        ("\\sqrt{2}", "sqrt(2)", 1),
        ("2\\pi", "So it is 2π.", 1),
        ("(1,2)", "\\boxed{(1,2)}", 1),
        ("(1,2)", "\\boxed{(2,1)}", 0),
        ("5", "2 + 3 = 5", 1),
        ("5", "The answer is $\\frac{10}{2}$.", 1),
        ("5", "between 3 and 5", 0),
        ("5", "\\boxed{4}\nNo: \\boxed{5}", 1),
        ("5", "\\boxed{4} or \\boxed{5}", 0),
        ("50\\%", "0.5", 1),
        ("1,234", "It is 1234.", 1),
    ],
)
async def test_math(reward: Math, answer: str, output: str, score: float) -> None:
    result = await scored(reward, answer, output)
    assert (result.score, result.source) == (score, "math"), result.feedback


async def test_endless_mathematics_is_an_error_and_the_next_comparison_works(reward: Math) -> None:
    hasty = Math(seconds=2)
    try:
        await scored(hasty, "x", "$x$")  # loads SymPy, which has its own clock
        started = time.monotonic()
        result = await scored(hasty, "5", "\\boxed{9^{9^{9^{9^9}}}}")
        assert time.monotonic() - started < 20
        assert (result.score, result.status) == (None, "error")
        assert "no answer within 2 s" in result.feedback
        assert (await scored(hasty, "x^2", "$x \\cdot x$")).score == 1.0
    finally:
        hasty.close()


async def test_many_at_once_do_not_mix(reward: Math) -> None:
    results = await asyncio.gather(*(scored(reward, f"x+{n}", f"${n % 5} + x$") for n in range(20)))
    assert [result.score for result in results] == [1.0] * 5 + [0.0] * 15


def test_it_works_away_from_the_main_thread(reward: Math) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(scored(reward, "y", "$y$"))))
    thread.start()
    thread.join()
    assert found[0].score == 1.0


def test_it_leaves_no_process(reward: Math) -> None:
    mine = Math()
    asyncio.run(scored(mine, "y", "$y$"))
    pids = [worker.pid for worker in mine._workers if worker.pid]
    assert pids
    mine.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_without_math_verify_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "agentmem.rewards.math.find_spec", lambda name: None if name == "math_verify" else real(name)
    )
    with pytest.raises(InputError, match=r'pip install "agentmem\[math\]"'):
        resolve_reward("math")


def test_a_formula_is_cut_at_the_end_of_its_sentence() -> None:
    assert stated_formula("The answer is $f(x) = 3. (x+1)$. Done.") == "$f(x) = 3. (x+1)$"
    assert stated_formula("The answer is 2x since I say so.") == "2x"
