"""How many attempts are under way at once, and who goes first when one ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush


class Places:
    """A semaphore with precedence: a place that gets free goes to the lowest number, and among equals to the first.

    Args:
        count: attempts under way at once.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = 0

    @asynccontextmanager
    async def place(self, precedence: int = 0) -> AsyncIterator[None]:
        """Wait for a place, and have it."""
        if self._free and not (self._waiting and self._waiting[0][0] <= precedence):
            self._free -= 1
        else:
            self._arrivals += 1
            turn = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (precedence, self._arrivals, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # it was given to us just now
                    self._release()
                raise
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        self._free += 1
        # Not at once: who gives a place back often wants the next one in the same breath, and may go first.
        asyncio.get_running_loop().call_soon(self._hand_out)

    def _hand_out(self) -> None:
        while self._free and self._waiting:
            *_, turn = heappop(self._waiting)
            if not turn.done():
                self._free -= 1
                turn.set_result(None)
