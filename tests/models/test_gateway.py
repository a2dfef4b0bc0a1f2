"""The gateway, over real sockets: budget before dispatch, retries in one place, every attempt accounted for."""

from __future__ import annotations

import asyncio

import openai  # noqa: F401  # its import takes a second, which no attempt should be charged with
import pytest

from agentmem.domain.trajectory import Message
from agentmem.errors import (
    AccessDenied,
    BadRequest,
    BudgetExceeded,
    InputError,
    MalformedReply,
    ModelTimeout,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from agentmem.events import CallFinished, Events
from agentmem.models.gateway import Gateway
from agentmem.models.model import Request
from agentmem.models.openai import OpenAIModel
from agentmem.runs.journal import Journal
from agentmem.runs.ledger import Ledger
from agentmem.settings import Budget, ModelSettings
from agentmem.testing.faults import Faults
from agentmem.testing.scripted import ScriptedModel
from agentmem.testing.server import ChatServer

SETTINGS = ModelSettings(attempts=4, timeout=2, retry_seconds=20, retry_wait=0.01)


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "journal.sqlite")
    yield journal
    journal.close()


def ask(text: str, max_tokens: int = 20) -> Request:
    return Request(messages=(Message(role="user", content=text),), max_tokens=max_tokens)


async def through(server, journal, requests, *, budget=None, settings=SETTINGS, events=None):
    """All requests at once, through one gateway; returns results or errors, and the gateway's ledger."""
    ledger = Ledger(journal, budget)
    gateway = Gateway(OpenAIModel("m", base_url=server.base_url), ledger, settings=settings, events=events)
    try:
        work = (gateway.complete(request, purpose="act") for request in requests)
        return await asyncio.gather(*work, return_exceptions=True), ledger
    finally:
        await gateway.close()


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("server_error", ModelUnavailable),
        ("overloaded", ModelUnavailable),
        ("drop", ModelUnavailable),
        ("drop_midway", ModelUnavailable),
        ("rate_limit", RateLimited),
        ("malformed_json", MalformedReply),
        ("truncated_json", MalformedReply),
        ("empty_choices", MalformedReply),
    ],
)
async def test_what_may_pass_is_tried_again_up_to_the_cap(journal, kind, error):
    faults = Faults(share=1.0, kinds=(kind,), per_request_cap=3, always=True)
    async with ChatServer(faults=faults) as server:
        (reply,), _ = await through(server, journal, [ask("hello")])
        assert reply.text == "hello"
        assert reply.usage.calls == server.calls == 4
        # One failure more than the cap: a typed error, and no further request.
        short = SETTINGS.model_copy(update={"attempts": 3})
        (failure,), _ = await through(server, journal, [ask("again")], settings=short)
        assert isinstance(failure, error)
        assert server.calls == 7


async def test_a_server_that_hangs_is_tried_again(journal):
    impatient = SETTINGS.model_copy(update={"timeout": 0.3})
    async with ChatServer(faults=Faults(share=1.0, kinds=("hang",), per_request_cap=2, always=True)) as server:
        (reply,), _ = await through(server, journal, [ask("hello")], settings=impatient)
        assert reply.usage.calls == server.calls == 3
        (failure,), _ = await through(
            server, journal, [ask("again")], settings=impatient.model_copy(update={"attempts": 2})
        )
        assert isinstance(failure, ModelTimeout)


@pytest.mark.parametrize(
    ("kind", "error", "repair"),
    [
        ("unauthorized", AccessDenied, "OPENAI_API_KEY"),
        ("forbidden", AccessDenied, ""),
        ("not_found", AccessDenied, ""),
        ("quota", QuotaExhausted, ""),
        ("bad_request", BadRequest, ""),
    ],
)
async def test_what_cannot_pass_fails_at_once(journal, kind, error, repair):
    faults = Faults(share=1.0, kinds=(kind,), per_request_cap=9, always=True)
    async with ChatServer(faults=faults) as server:
        (failure,), _ = await through(server, journal, [ask("hello")])
        assert isinstance(failure, error)
        assert repair in str(failure)
        assert server.calls == 1


@pytest.mark.parametrize("share", [0.0, 0.5])
async def test_thirty_calls_are_thirty_requests_at_concurrency_64(journal, share):
    faults = Faults(share=share, kinds=("server_error", "drop"), per_request_cap=2)
    async with ChatServer(faults=faults, latency=0.005) as server:
        results, ledger = await through(
            server, journal, [ask(f"q{i}") for i in range(64)], budget=Budget(max_calls=30)
        )
        assert server.calls == 30
        assert ledger.spent.calls == 30
        assert all(isinstance(r, BudgetExceeded) for r in results if isinstance(r, Exception))


async def test_tokens_and_dollars_are_never_overshot(journal, tmp_path):
    requests = [ask("word " * (i % 30 + 1)) for i in range(64)]
    async with ChatServer(lambda chat: "yes " * 20, latency=0.002) as server:
        results, ledger = await through(server, journal, requests, budget=Budget(max_tokens=1000))
        used = sum(r.usage.tokens for r in results if not isinstance(r, BaseException))
        assert 0 < used == ledger.spent.tokens <= 1000
        assert any(isinstance(r, BudgetExceeded) for r in results)
        other = Journal(tmp_path / "dollars.sqlite")
        priced = SETTINGS.model_copy(update={"prompt_price": 1000.0, "completion_price": 2000.0})
        results, ledger = await through(server, other, requests, budget=Budget(max_cost=2.0), settings=priced)
        paid = sum(r.usage.dollars for r in results if not isinstance(r, BaseException))
        assert 0 < paid <= 2.0
        assert ledger.spent.dollars == pytest.approx(paid)
        other.close()


async def test_every_attempt_is_a_row_with_its_outcome(journal):
    faults = Faults(share=1.0, kinds=("server_error",), per_request_cap=2, always=True)
    heard = []
    async with ChatServer(faults=faults) as server:
        await through(server, journal, [ask("hello there")], events=Events([heard.append]))
    await journal.write("SELECT 1", ())  # what was posted before is committed with it
    rows = list(journal.rows("SELECT purpose, model, outcome, prompt_tokens > 0 FROM attempts ORDER BY id"))
    assert rows[:2] == [("act", "openai/m", "model_unavailable", 0)] * 2
    assert rows[2] == ("act", "openai/m", "ok", 1)
    assert [type(event) for event in heard] == [CallFinished] * 3
    assert [event.error for event in heard] == ["model_unavailable"] * 2 + [""]


async def test_a_dollar_budget_needs_a_price(journal):
    model = OpenAIModel("nobody-knows-me", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match=r"no.*price.*'openai/nobody-knows-me'|needs a price.*nobody-knows-me"):
        Gateway(model, Ledger(journal, Budget(max_cost=1.0)))
    Gateway(
        model, Ledger(journal, Budget(max_cost=1.0)), settings=ModelSettings(prompt_price=1, completion_price=1)
    )


async def test_elapsed_time_caps_retries_too(journal):
    model = ScriptedModel(lambda request: ModelUnavailable("down"))
    settings = ModelSettings(attempts=1000, retry_seconds=0.3, retry_wait=0.05)
    gateway = Gateway(model, Ledger(journal), settings=settings)
    with pytest.raises(ModelUnavailable):
        await asyncio.wait_for(gateway.complete(ask("x"), purpose="act"), timeout=20)
    assert 1 <= model.calls < 50
