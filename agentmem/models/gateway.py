"""The one way to a model: budget, concurrency, retries, usage and price."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentmem.domain.media import MediaKind
from agentmem.domain.usage import Usage
from agentmem.errors import InputError, MalformedReply, ModelError, ModelTimeout, ModelUnavailable, RateLimited
from agentmem.events import CallFinished, Events
from agentmem.models.limiter import Limiter
from agentmem.models.model import Model, Reply, Request
from agentmem.models.prices import Price, accepted_by, price_of
from agentmem.runs.ledger import Cost, Ledger
from agentmem.settings import ModelSettings

if TYPE_CHECKING:
    from tenacity import RetryCallState


class Gateway:
    """All calls of a run to one model.

    Each attempt is reserved in the ledger before it is sent. Failures that may pass are retried here and nowhere
    else, capped in attempts and in elapsed time; others come out at once.

    Args:
        model: the adapter.
        ledger: the run's.
        settings: concurrency, retries, prices.
        events: told of every attempt.

    Raises:
        InputError: the budget is in dollars and the model has no known price.
    """

    def __init__(
        self, model: Model, ledger: Ledger, *, settings: ModelSettings | None = None, events: Events | None = None
    ) -> None:
        self.model = model
        self.settings = settings or ModelSettings()
        self.price = price_for(model.name, self.settings)
        declared = self.settings.accepts
        self.accepts: frozenset[MediaKind] = accepted_by(model.name) if declared is None else frozenset(declared)
        """What the model takes beside text."""
        if ledger.budget.max_cost is not None and self.price is None:
            raise InputError(
                f"A budget in dollars needs a price, and none is known for {model.name!r}. Set prompt_price and "
                "completion_price (dollars for a million tokens), or limit tokens or calls instead."
            )
        most = min(self.settings.max_in_flight, model.parallel or self.settings.max_in_flight)
        self.limiter = Limiter(most, start=most if model.parallel else 16)
        from tenacity import wait_random_exponential

        self._backoff = wait_random_exponential(multiplier=self.settings.retry_wait, max=60)
        self._ledger = ledger
        self._events = events or Events()
        self._prepared: list[asyncio.Task[None]] = []  # one at most; a list, so that copies share it

    async def complete(self, request: Request, *, purpose: str) -> Reply:
        """One reply, with the usage of all attempts that it took.

        Args:
            request: what to ask.
            purpose: what it is for; usage is told apart by it.

        Raises:
            ModelError: no attempt succeeded; the last one's error.
            BudgetExceeded: the next attempt does not fit the budget.
        """
        await self.prepare()
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay

        spent = Usage()

        def pay(usage: Usage) -> None:
            nonlocal spent
            spent = spent + usage

        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.settings.attempts) | stop_before_delay(self.settings.retry_seconds),
            wait=self._wait,
            retry=retry_if_exception(lambda error: isinstance(error, ModelError) and error.retryable),
            reraise=True,
        )
        reply: Reply = await retrying(self._attempt, request, purpose, pay)
        return reply.model_copy(update={"usage": spent})

    async def prepare(self) -> None:
        """Load what the model needs, once; see `Model.prepare`."""
        if not self._prepared:
            self._prepared.append(asyncio.create_task(self.model.prepare()))
        if not self._prepared[0].done() or self._prepared[0].exception():
            await asyncio.shield(self._prepared[0])  # raises what it raised

    def behind(self) -> Gateway:
        """The same gateway, for work that must not hold up the rest: it gets at most half of the requests in flight."""
        other = copy.copy(self)
        other.limiter = self.limiter.part()
        return other

    async def close(self) -> None:
        """Close the adapter."""
        for prepared in self._prepared:
            prepared.cancel()
        await self.model.close()

    async def _attempt(self, request: Request, purpose: str, pay: Callable[[Usage], None]) -> Reply:
        async with self.limiter.slot() as sent_at:
            attempt = await self._ledger.reserve(self._bound(request), purpose=purpose, model=self.model.name)
            usage: Usage | None = None
            outcome = "cancelled"
            try:
                async with asyncio.timeout(self.settings.timeout):
                    reply = await self.model.complete(request)
                usage, outcome = self._priced(reply.usage, time.monotonic() - sent_at), "ok"
                self.limiter.answered()
                return reply
            except TimeoutError:
                outcome = ModelTimeout.kind
                raise ModelTimeout(f"{self.model.name} gave no answer in {self.settings.timeout:g} s.") from None
            except ModelError as error:
                outcome = error.kind
                if isinstance(error, RateLimited):
                    # A server may ask for a day; nobody is held up longer than a call may be retried.
                    pause = (
                        None if error.retry_after is None else min(error.retry_after, self.settings.retry_seconds)
                    )
                    self.limiter.refused(sent_at, pause)
                if not isinstance(error, UNKNOWN_COST) or isinstance(error, RateLimited):
                    usage = Usage(calls=1)
                raise
            finally:
                seconds = time.monotonic() - sent_at
                known = usage or Usage(calls=1, dollars=0.0 if self.price else None, seconds=seconds)
                pay(known)
                await self._ledger.settle(attempt, usage, outcome=outcome, seconds=seconds)
                failure = "" if outcome == "ok" else outcome
                self._events.emit(
                    CallFinished(purpose, known, failure, self.limiter.in_flight - 1, self.limiter.limit)
                )

    def _wait(self, state: RetryCallState) -> float:
        """What the server asks for, else a random exponential time."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, ModelError) else None
        return asked if asked is not None else self._backoff(state)

    def _bound(self, request: Request) -> Cost:
        """The most that one attempt can cost; exact only where the budget asks for it."""
        budget = self._ledger.budget
        if budget.max_tokens is None and budget.max_cost is None:
            return Cost(calls=1)
        prompt = request.prompt_bound
        most = Usage(prompt_tokens=prompt, completion_tokens=request.max_tokens)
        dollars = self.price.cost(most) if self.price else 0.0
        return Cost(1, prompt + request.max_tokens, dollars)

    def _priced(self, usage: Usage, seconds: float) -> Usage:
        dollars = self.price.cost(usage) if self.price else None
        return usage.model_copy(update={"calls": 1, "dollars": dollars, "seconds": seconds})


class Gateways:
    """The gateways of a run, one for each model that is used, so that all share budget and limits."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        settings: ModelSettings | None = None,
        events: Events | None = None,
        open_model: Callable[[str | Model], Model],
    ) -> None:
        self._ledger, self._settings, self._events = ledger, settings, events
        self._open = open_model
        self._gateways: dict[str, Gateway] = {}
        self._part_of: Gateways | None = None

    def to(self, model: str | Model) -> Gateway:
        """The gateway to this model, opened at the first call."""
        key = model if isinstance(model, str) else f"{model.name}#{id(model)}"
        if key not in self._gateways:
            self._gateways[key] = (
                self._part_of.to(model).behind()
                if self._part_of
                else Gateway(self._open(model), self._ledger, settings=self._settings, events=self._events)
            )
        return self._gateways[key]

    def behind(self) -> Gateways:
        """The same gateways, for work that must not hold up the rest; see `Gateway.behind`. These close them."""
        other = copy.copy(self)
        other._part_of, other._gateways = self, {}
        return other

    async def close(self) -> None:
        """Close all adapters."""
        for gateway in self._gateways.values():
            await gateway.close()


UNKNOWN_COST = (ModelUnavailable, MalformedReply)
"""Failures after which only the server knows whether the tokens were used; a 429 is none of them."""


def price_for(name: str, settings: ModelSettings) -> Price | None:
    """The price of a model: the one that was given, else the table's; None where neither is known."""
    if settings.prompt_price is not None or settings.completion_price is not None:
        million = 1_000_000
        prompt = (settings.prompt_price or 0.0) / million
        return Price(prompt=prompt, completion=(settings.completion_price or 0.0) / million, cached=prompt)
    return price_of(name)
