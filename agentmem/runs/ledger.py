"""The budget's ledger: money is reserved before a request is sent, and settled when its true cost is known."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import NamedTuple

from agentmem.domain.usage import Usage
from agentmem.errors import BudgetExceeded
from agentmem.runs.journal import Journal
from agentmem.settings import Budget


class Cost(NamedTuple):
    """Calls, tokens and dollars: of one attempt at most, or in all."""

    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0

    def plus(self, other: Cost) -> Cost:
        """The sum."""
        return Cost(self.calls + other.calls, self.tokens + other.tokens, self.dollars + other.dollars)

    def minus(self, other: Cost) -> Cost:
        """The difference."""
        return Cost(self.calls - other.calls, self.tokens - other.tokens, self.dollars - other.dollars)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that may be sent: what is reserved for it, and its row in the journal."""

    id: int
    reserved: Cost


class Ledger:
    """What was spent and what is reserved, against a budget; every attempt is a row of the journal.

    A call that does not fit *now*, but may once calls in flight have settled below their reservation, waits. One
    that cannot fit raises, and so does every later one: the run has come to its end in good order.

    An attempt whose process died in flight stays in the journal at its full reservation, because nobody knows what
    the server did with it: a budget holds over all processes of a run.

    Args:
        journal: where attempts are written down.
        budget: the limits.
    """

    def __init__(self, journal: Journal, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        calls, prompt, completion, dollars, unpriced, seconds, last = next(
            journal.rows(
                "SELECT count(*), total(prompt_tokens), total(completion_tokens), total(dollars),"
                " sum(dollars IS NULL), total(seconds), coalesce(max(id), 0) FROM attempts"
            )
        )
        self.total = Usage(
            calls=int(calls),
            prompt_tokens=int(prompt),
            completion_tokens=int(completion),
            dollars=None if unpriced else float(dollars),
            seconds=float(seconds),
        )
        """Over all processes of the run, failed attempts included."""
        self.spent = Cost(self.total.calls, self.total.tokens, float(dollars))
        """What counts against the budget: `total`, with what only the server knows at its full reservation."""
        self._journal = journal
        self._last_id = int(last)
        self._reserved = Cost()
        self._started = time.monotonic()
        self._settled = asyncio.Condition()

    async def reserve(self, cost: Cost, *, purpose: str, model: str) -> Attempt:
        """Set `cost` aside for one attempt.

        Raises:
            BudgetExceeded: it does not fit; nothing was sent.
        """
        while why := self._lacks(self.spent.plus(self._reserved).plus(cost)):
            if self._lacks(self.spent.plus(cost)) or self._reserved.calls == 0:
                raise BudgetExceeded(f"The budget is spent: {why}. What was paid for is stored.")
            async with self._settled:
                # Looked at again under the lock: the last call in flight may have settled while we waited for it.
                if self._reserved.calls > 0 and self._lacks(self.spent.plus(self._reserved).plus(cost)):
                    await self._settled.wait()
        self._reserved = self._reserved.plus(cost)
        self._last_id += 1
        self._journal.post(
            "INSERT INTO attempts (id, purpose, model, outcome, prompt_tokens, completion_tokens, dollars, sent_at)"
            " VALUES (?,?,?,'sent',?,0,?,?)",
            (self._last_id, purpose, model, cost.tokens, cost.dollars, time.time()),
        )
        return Attempt(self._last_id, cost)

    async def settle(self, attempt: Attempt, usage: Usage | None, *, outcome: str, seconds: float) -> None:
        """Replace a reservation by what the attempt really cost.

        Args:
            attempt: what `reserve` returned.
            usage: of this attempt; None where only the server knows (no answer came, or a broken one). Then the
                budget is charged with all that was reserved.
            outcome: `ok`, or the failure's kind.
            seconds: from sending to the end.
        """
        self._reserved = self._reserved.minus(attempt.reserved)
        if usage is None:
            self.spent = self.spent.plus(attempt.reserved)
            self.total = self.total + Usage(calls=1, seconds=seconds)
            self._journal.post(
                "UPDATE attempts SET outcome=?, seconds=? WHERE id=?", (outcome, seconds, attempt.id)
            )
        else:
            self.spent = self.spent.plus(Cost(1, usage.tokens, usage.dollars or 0.0))
            self.total = self.total + usage
            self._journal.post(
                "UPDATE attempts SET outcome=?, prompt_tokens=?, completion_tokens=?, dollars=?, seconds=? WHERE id=?",
                (outcome, usage.prompt_tokens, usage.completion_tokens, usage.dollars, seconds, attempt.id),
            )
        async with self._settled:
            self._settled.notify_all()

    @property
    def seconds(self) -> float:
        """Seconds since the ledger was opened."""
        return time.monotonic() - self._started

    def _lacks(self, total: Cost) -> str:
        """Which limit `total` breaks, in words; empty where none."""
        budget, spent = self.budget, self.spent
        if budget.max_calls is not None and total.calls > budget.max_calls:
            return f"{spent.calls} of {budget.max_calls} calls are spent"
        if budget.max_tokens is not None and total.tokens > budget.max_tokens:
            return f"{spent.tokens} of {budget.max_tokens} tokens are spent, and the next call may exceed the rest"
        if budget.max_cost is not None and total.dollars > budget.max_cost + 1e-12:
            return f"${spent.dollars:.4f} of ${budget.max_cost:g} are spent, and the next call may exceed the rest"
        if budget.max_seconds is not None and self.seconds > budget.max_seconds:
            return f"{self.seconds:.0f} of {budget.max_seconds:g} seconds are over"
        return ""
