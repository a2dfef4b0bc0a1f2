"""Waiting for what others bring about, without a barrier: who changes something tells, and who waits looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Over(Exception):
    """What was waited for will not come."""


class News:
    """What those who work on one stream tell each other."""

    def __init__(self) -> None:
        self.ended = False
        """The stream is at its end; what is left is worked off."""
        self._stopped = False
        self._changed = asyncio.Condition()

    async def tell(self) -> None:
        """Something changed: all who wait look again."""
        async with self._changed:
            self._changed.notify_all()

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until it is so.

        Raises:
            Over: something failed meanwhile, and nobody should wait any more.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: ready() or self._stopped)
        if not ready():
            raise Over

    async def end(self) -> None:
        """No more tasks will come."""
        self.ended = True
        await self.tell()

    async def stop(self) -> None:
        """Something failed: nobody waits any more."""
        self._stopped = True
        await self.tell()
