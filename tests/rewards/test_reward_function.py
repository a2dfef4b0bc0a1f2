"""Rewards by name, and any callable as a reward."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.errors import BudgetExceeded, InputError, RewardError
from agentmem.rewards.reward_function import RewardFunction, resolve_reward, unscorable

TASK = Task(id="sum-1", input="What is 2 + 3?", answer="5")
CONTEXT: Any = object()


async def given(function: Any) -> Reward:
    return await resolve_reward(function)(TASK, Trajectory.said("5"), CONTEXT)


@pytest.mark.parametrize("name", ["choice", "exact", "f1", "json", "judge", "math", "numeric"])
def test_every_name_is_a_reward_of_that_name(name: str) -> None:
    reward = resolve_reward(name)
    assert isinstance(reward, RewardFunction)
    assert (reward.name, reward.needs_answer) == (name, True)


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(InputError) as error:
        resolve_reward("maths")
    assert str(error.value) == (
        "No reward named 'maths'. Did you mean 'math'? Known: choice, exact, f1, gaia, json, judge, math, numeric."
    )
    with pytest.raises(InputError, match=r"^No reward named 'zzz'\. Known: choice"):
        resolve_reward("zzz")


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (1, 1.0),
        (0.25, 0.25),
        (True, 1.0),
        (False, 0.0),
        (Fraction(1, 2), 0.5),
        (Decimal("0.5"), 0.5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), 1.0),
        (np.array(0.5), 0.5),
        (-3, -3.0),
    ],
)
async def test_a_number_becomes_a_score(value: Any, score: float) -> None:
    def mine(task: Task, trajectory: Trajectory) -> Any:
        return value

    assert await given(mine) == Reward.of(score, source="mine")


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", [1], 1j, np.array([1, 2]), {"score": 1}, 10**400])
async def test_what_is_no_finite_number_is_an_error_that_names_all(value: Any) -> None:
    def mine(task: Task, trajectory: Trajectory) -> Any:
        return value

    with pytest.raises(RewardError, match=r"^reward 'mine' returned .* for task 'sum-1'; return a finite number"):
        await given(mine)


async def test_none_means_unknown_and_a_reward_passes() -> None:
    assert (await given(lambda task, trajectory: None)).status == "unverifiable"
    full = Reward.of(0.5, feedback="half", source="elsewhere")
    assert await given(lambda task, trajectory: full) == full
    assert (await given(lambda task, trajectory: Reward.of(1.0))).source == "<lambda>"


async def test_what_it_raises_is_named() -> None:
    def mine(task: Task, trajectory: Trajectory) -> float:
        raise KeyError("x")

    with pytest.raises(RewardError, match=r"^reward 'mine' raised KeyError: 'x'$") as error:
        await given(mine)
    assert isinstance(error.value.__cause__, KeyError)

    async def stops(task: Task, trajectory: Trajectory) -> float:
        raise BudgetExceeded("no money")

    with pytest.raises(BudgetExceeded):
        await given(stops)


async def test_a_stop_iteration_does_not_hang() -> None:
    with pytest.raises(RewardError, match="StopIteration"):
        await asyncio.wait_for(given(lambda task, trajectory: next(iter(()))), 5)


async def test_async_callables_objects_and_context() -> None:
    async def later(task: Task, trajectory: Trajectory, context: Any) -> bool:
        await asyncio.sleep(0)
        return context is CONTEXT

    class Strict:
        async def __call__(self, task: Task, trajectory: Trajectory) -> float:
            return 0.5

    def keyword(task: Task, trajectory: Trajectory, *, context: Any = None) -> bool:
        return context is CONTEXT

    assert (await given(later)).score == 1.0
    assert (await given(keyword)).score == 1.0
    assert await given(Strict()) == Reward.of(0.5, source="Strict")
    assert (await given(lambda task, trajectory: later(task, trajectory, CONTEXT))).score == 1.0


async def test_a_slow_plain_function_blocks_neither_loop_nor_others() -> None:
    here, threads = threading.get_ident(), set()

    def slow(task: Task, trajectory: Trajectory) -> float:
        threads.add(threading.get_ident())
        time.sleep(0.3)
        return 1.0

    started = time.monotonic()
    ticks = asyncio.create_task(_ticks())
    rewards = await asyncio.gather(*(given(slow) for _ in range(20)))
    assert time.monotonic() - started < 2.0  # 6 s one after another
    ticks.cancel()
    assert len(rewards) == 20
    assert here not in threads


async def _ticks() -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.01)
        assert time.monotonic() - before < 1.0


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (5, "neither a name nor callable"),
        (lambda output: 1.0, r"has the signature \(output\) .* takes \(task, trajectory\)"),
        (lambda task, output, extra: 1.0, r"takes \(task, trajectory\)"),
        (int, "is a class; pass an instance"),
    ],
)
def test_what_cannot_be_called_so_is_refused_at_once(reward: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve_reward(reward)


def test_a_callable_needs_no_answer_and_an_own_reward_is_kept() -> None:
    class Mine:
        name = "mine"
        needs_answer = True

        async def __call__(self, task: Task, trajectory: Trajectory, context: Any) -> Reward:
            return Reward.of(1.0)

    mine = Mine()
    assert resolve_reward(mine) is mine
    bare = TASK.model_copy(update={"answer": None})
    assert unscorable(mine, bare) == "the task has no reference answer"
    assert unscorable(mine, TASK) == ""
    assert unscorable(resolve_reward(lambda task, trajectory: 1.0), bare) == ""
