"""How many requests may fly at once: found out from the server, not guessed."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Limiter:
    """Adaptive concurrency: doubled each round until the first 429, then additive increase, multiplicative decrease.

    Args:
        most: requests in flight at most.
        start: requests in flight at first; `most` where the model says itself what it takes.
    """

    DECREASE = 0.7
    """Factor on a 429, at most once for all requests that were in flight when the last one came."""

    def __init__(self, most: int, *, start: int = 16) -> None:
        self.most = most
        self.in_flight = 0
        self._limit = float(min(start, most))
        self._probing = True
        self._paused_until = 0.0
        self._decreased_at = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """Requests that may fly at once now."""
        return max(1, int(self._limit))

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for a place; yields the time at which it was had, which `refused` wants back."""
        while True:
            if (pause := self._paused_until - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            elif self.in_flight >= self.limit:
                turn = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
                try:
                    await turn
                except asyncio.CancelledError:
                    self._wake()  # the turn may have been given to us just now
                    raise
            else:
                break
        self.in_flight += 1
        try:
            yield time.monotonic()
        finally:
            self.in_flight -= 1
            self._wake()

    def answered(self) -> None:
        """A request was answered: there may be room for more."""
        self._limit = min(self.most, self._limit + (1.0 if self._probing else 1.0 / self._limit))

    def refused(self, sent_at: float, retry_after: float | None) -> None:
        """A request came back with 429: send fewer, and nothing before the server wants it."""
        if retry_after:
            self._paused_until = max(self._paused_until, time.monotonic() + retry_after)
        if sent_at >= self._decreased_at:  # those sent before the last decrease tell nothing new
            self._probing = False
            self._limit = max(1.0, self._limit * self.DECREASE)
            self._decreased_at = time.monotonic()

    def part(self) -> Limiter:
        """A limiter within this one, for work that must not hold up the rest: it gets at most half of the places."""
        return _Part(self)

    def _wake(self) -> None:
        room = self.limit - self.in_flight
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1


class _Part(Limiter):
    def __init__(self, whole: Limiter) -> None:
        super().__init__(whole.most)
        self._whole = whole

    @property
    def limit(self) -> int:
        return max(1, self._whole.limit // 2)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        async with super().slot(), self._whole.slot() as sent_at:
            yield sent_at

    def answered(self) -> None:
        self._whole.answered()

    def refused(self, sent_at: float, retry_after: float | None) -> None:
        self._whole.refused(sent_at, retry_after)
