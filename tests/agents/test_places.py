"""Places: never more than there are, the lowest number first, and none is lost when somebody gives up."""

from __future__ import annotations

import asyncio
import random

from agentmem.agents.places import Places


async def test_the_lowest_number_goes_first_and_among_equals_the_first():
    places, order = Places(1), []

    async def visit(name: str, precedence: int) -> None:
        async with places.place(precedence):
            order.append(name)
            await asyncio.sleep(0)

    waiting = [("first", 5), ("later", 2), ("ahead", 1), ("sure", 0), ("sure too", 0)]
    await asyncio.gather(*(visit(*each) for each in waiting))
    assert order == ["first", "sure", "sure too", "ahead", "later"]


async def test_who_has_a_place_and_wants_the_next_goes_before_those_with_less_precedence():
    places, order = Places(1), []

    async def work(name: str, precedence: int, jobs: int) -> None:
        for _ in range(jobs):
            async with places.place(precedence):
                order.append(name)
                await asyncio.sleep(0)

    await asyncio.gather(work("sure", 0, 3), work("ahead", 1, 2), work("also sure", 0, 2))
    assert order == ["sure", "also sure", "sure", "also sure", "sure", "ahead", "ahead"]


async def test_never_more_than_there_are_and_none_lost_to_the_cancelled():
    places, inside, most = Places(3), 0, 0
    rng = random.Random(0)

    async def visit() -> None:
        nonlocal inside, most
        async with places.place(rng.randint(0, 2)):
            inside += 1
            most = max(most, inside)
            try:
                await asyncio.sleep(rng.random() * 0.002)
            finally:
                inside -= 1

    for _ in range(20):
        visits = [asyncio.create_task(visit()) for _ in range(20)]
        for gives_up in rng.sample(visits, 8):
            asyncio.get_running_loop().call_later(rng.random() * 0.004, gives_up.cancel)
        await asyncio.gather(*visits, return_exceptions=True)
    assert (most, inside) == (3, 0)
    taken = [places.place() for _ in range(3)]
    for place in taken:
        await asyncio.wait_for(place.__aenter__(), 1)
    for place in taken:
        await place.__aexit__(None, None, None)


async def test_a_turn_that_was_given_to_one_who_gives_up_is_passed_on():
    places = Places(1)
    async with places.place():
        first, second = (asyncio.create_task(places.place().__aenter__()) for _ in range(2))
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(first.cancel)  # just after its turn came, and before it ran
    await asyncio.wait([first])
    assert first.cancelled()
    await asyncio.wait_for(second, 1)
