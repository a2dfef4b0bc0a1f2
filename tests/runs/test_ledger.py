"""The ledger: concurrency cannot overshoot a budget, in this process or over a kill."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmem.domain.usage import Usage
from agentmem.errors import BudgetExceeded
from agentmem.runs.journal import Journal
from agentmem.runs.ledger import Cost, Ledger
from agentmem.settings import Budget


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "journal.sqlite")
    yield journal
    journal.close()


async def spend(ledger: Ledger, reserve: Cost, usage: Usage | None) -> None:
    attempt = await ledger.reserve(reserve, purpose="act", model="m")
    await asyncio.sleep(0)
    await ledger.settle(attempt, usage, outcome="ok", seconds=0.0)


async def test_calls_stop_exactly_at_the_limit(journal):
    ledger = Ledger(journal, Budget(max_calls=30))
    results = await asyncio.gather(
        *(spend(ledger, Cost(1), Usage(calls=1)) for _ in range(64)), return_exceptions=True
    )
    assert sum(result is None for result in results) == 30
    assert all(isinstance(result, BudgetExceeded) for result in results if result is not None)
    assert ledger.spent.calls == 30


async def test_a_call_waits_for_reservations_that_may_be_given_back(journal):
    ledger = Ledger(journal, Budget(max_tokens=100))
    first = await ledger.reserve(Cost(1, 80), purpose="act", model="m")
    waiting = asyncio.create_task(ledger.reserve(Cost(1, 80), purpose="act", model="m"))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await ledger.settle(first, Usage(calls=1, prompt_tokens=10), outcome="ok", seconds=0.0)
    assert (await waiting).reserved.tokens == 80


async def test_what_only_the_server_knows_is_charged_in_full(journal):
    ledger = Ledger(journal, Budget(max_tokens=100))
    attempt = await ledger.reserve(Cost(1, 60), purpose="act", model="m")
    await ledger.settle(attempt, None, outcome="model_timeout", seconds=1.0)
    assert ledger.spent == Cost(1, 60, 0.0)


async def test_an_attempt_that_died_in_flight_counts_in_the_next_process(tmp_path):
    journal = Journal(tmp_path / "j.sqlite")
    ledger = Ledger(journal, Budget(max_calls=2, max_tokens=100))
    await spend(ledger, Cost(1, 50), Usage(calls=1, prompt_tokens=7, completion_tokens=3))
    await ledger.reserve(Cost(1, 40), purpose="act", model="m")  # never settled, as after kill -9
    journal.close()
    journal = Journal(tmp_path / "j.sqlite")
    again = Ledger(journal, Budget(max_calls=2))
    assert again.spent[:2] == (2, 50)
    with pytest.raises(BudgetExceeded, match="2 of 2 calls are spent"):
        await again.reserve(Cost(1), purpose="act", model="m")
    journal.close()


@settings(max_examples=40, deadline=None)
@given(
    limit=st.integers(0, 400),
    calls=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), max_size=40),
)
def test_tokens_never_overshoot_whatever_the_calls(tmp_path_factory, limit, calls):
    journal = Journal(tmp_path_factory.mktemp("j") / "journal.sqlite")

    async def scenario() -> Ledger:
        ledger = Ledger(journal, Budget(max_tokens=limit))
        await asyncio.wait_for(
            asyncio.gather(
                *(
                    spend(ledger, Cost(1, most), Usage(calls=1, prompt_tokens=min(used, most)))
                    for most, used in calls
                ),
                return_exceptions=True,
            ),
            timeout=20,  # a lost wake-up would hang here
        )
        return ledger

    try:
        assert asyncio.run(scenario()).spent.tokens <= limit
    finally:
        journal.close()
