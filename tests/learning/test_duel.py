"""Rounds overlap where that is certain to cost nothing, and nowhere else."""

from __future__ import annotations

import asyncio

import pytest

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.errors import ModelUnavailable
from agentmem.learning.duel import Duel

OLD = ExperienceLibrary()
NEW = ExperienceLibrary().apply([Add(text="Look twice.")])
TASKS = [f"t{n}" for n in range(40)]


class Bench:
    """Scores that come in when the test says so."""

    def __init__(self, *, held: set[tuple[int, int, str]], scores=None, error: Exception | None = None) -> None:
        self.asked: list[tuple[int, int]] = []
        self.release = asyncio.Event()
        self._held, self._scores, self._error = held, scores or {}, error

    async def __call__(self, library, round, only=None, *, hear=None):
        arm = len(library)
        self.asked.append((arm, round))
        known, missing = {}, set(TASKS)

        def came(id):
            known[id] = self._scores.get((arm, round, id), 0.0)
            missing.discard(id)
            hear(known, missing)

        late = [id for id in TASKS if (arm, round, id) in self._held]
        for id in TASKS:
            if id not in late:
                came(id)
                await asyncio.sleep(0)
        if late:
            await self.release.wait()
            if self._error:
                raise self._error
        for id in late:
            came(id)
        return known


async def begun(bench: Bench, *, rounds: int = 2) -> asyncio.Task:
    duel = asyncio.create_task(Duel(OLD, NEW, bench, rounds, risk=0.1).verdict())
    for _ in range(400):
        await asyncio.sleep(0)
    return duel


async def test_the_next_round_begins_while_a_straggler_that_cannot_decide_is_awaited():
    bench = Bench(held={(1, 0, "t3")})
    duel = await begun(bench)
    assert bench.asked == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert not duel.done()
    bench.release.set()
    assert (await duel).rounds == 2


async def test_it_waits_for_stragglers_that_could_decide():
    held = {(1, 0, f"t{n}") for n in range(4)}
    bench = Bench(held=held, scores=dict.fromkeys(held, 1.0) | {(0, 0, f"t{n}"): 0.0 for n in range(4)})
    duel = await begun(bench)
    assert bench.asked == [(0, 0), (1, 0)]
    bench.release.set()
    verdict = await duel
    assert (verdict.outcome, verdict.rounds) == ("accepted", 1)
    assert len(bench.asked) == 2  # and so it did not buy what was not needed


async def test_at_most_one_round_is_begun_before_its_time_and_none_after_the_last():
    bench = Bench(held={(1, 0, "t3"), (0, 1, "t5")})
    duel = await begun(bench, rounds=4)
    assert max(number for _, number in bench.asked) == 1
    bench.release.set()
    assert (await duel).rounds == 4
    assert sorted(bench.asked) == [(arm, number) for arm in (0, 1) for number in range(4)]


async def test_the_verdict_is_the_same_whoever_comes_last():
    scores = {(1, number, f"t{n}"): 1.0 for number in range(3) for n in range(number, 9, 4)}
    verdicts = set()
    for held in (set(), {(1, 0, "t1")}, {(0, 0, "t0"), (1, 1, "t39")}, {(1, 0, id) for id in TASKS}):
        bench = Bench(held=held, scores=scores)
        bench.release.set()
        verdicts.add((await Duel(OLD, NEW, bench, 3, risk=0.01).verdict()).model_dump_json())
    assert len(verdicts) == 1


async def test_failed_attempts_are_left_out_and_hinder_nothing():
    scores = {(1, 0, "t3"): None, (0, 0, "t4"): None}
    bench = Bench(held={(1, 0, "t5")}, scores=scores)
    duel = await begun(bench)
    assert (1, 1) in bench.asked
    bench.release.set()
    assert (await duel).tasks == 40
    once = Bench(held=set(), scores=scores)
    assert (await Duel(OLD, NEW, once, 1, risk=0.1).verdict()).tasks == 38


async def test_an_error_of_a_round_comes_out_after_the_other_has_ended():
    bench = Bench(held={(1, 0, "t3")}, error=ModelUnavailable("gone"))
    duel = await begun(bench)
    bench.release.set()
    with pytest.raises(ModelUnavailable, match="gone"):
        await duel
