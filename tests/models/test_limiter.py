"""Adaptive concurrency: up until the first 429, down on it, and never a lost wake-up."""

from __future__ import annotations

import asyncio
import time

import pytest

from agentmem.models.limiter import Limiter


async def one(limiter: Limiter, seconds: float = 0.0) -> None:
    async with limiter.slot():
        await asyncio.sleep(seconds)
        limiter.answered()


async def test_never_more_than_the_limit_fly():
    limiter = Limiter(8, start=8)
    most = 0

    async def watched() -> None:
        nonlocal most
        async with limiter.slot():
            most = max(most, limiter.in_flight)
            await asyncio.sleep(0.001)

    await asyncio.gather(*(watched() for _ in range(100)))
    assert most == 8
    assert limiter.in_flight == 0


async def test_the_limit_doubles_each_round_until_the_first_refusal():
    limiter = Limiter(64, start=4)
    await asyncio.gather(*(one(limiter, 0.001) for _ in range(4)))
    assert limiter.limit == 8
    await asyncio.gather(*(one(limiter, 0.001) for _ in range(8)))
    assert limiter.limit == 16
    limiter.refused(time.monotonic(), None)
    assert limiter.limit == 11
    await asyncio.gather(*(one(limiter, 0.001) for _ in range(11)))
    assert limiter.limit == 12  # one more a round from here on


async def test_refusals_of_one_round_count_once():
    limiter = Limiter(64, start=64)
    sent = time.monotonic()
    for _ in range(30):
        limiter.refused(sent, None)
    assert limiter.limit == 44


async def test_nothing_is_sent_before_the_server_wants_it():
    limiter = Limiter(4, start=4)
    limiter.refused(time.monotonic(), 0.1)
    started = time.monotonic()
    await one(limiter)
    assert time.monotonic() - started >= 0.09


async def test_the_limit_never_falls_below_one():
    limiter = Limiter(2, start=2)
    for _ in range(10):
        limiter.refused(time.monotonic(), None)
    assert limiter.limit == 1
    await asyncio.wait_for(asyncio.gather(*(one(limiter) for _ in range(5))), timeout=5)


@pytest.mark.parametrize("seed", range(5))
async def test_cancelled_waiters_wake_the_next(seed):
    limiter = Limiter(2, start=2)
    tasks = [asyncio.create_task(one(limiter, 0.002)) for _ in range(40)]
    await asyncio.sleep(0.003)
    for task in tasks[seed::3]:
        task.cancel()
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), timeout=5)
    assert sum(result is None for result in results) >= 25
    assert limiter.in_flight == 0
