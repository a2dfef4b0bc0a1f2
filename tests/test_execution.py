"""Waiting for a run from plain code: a stop in the middle of it reaches the run."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agentmem.execution import wait


async def test_a_stopped_cell_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    join, calls = threading.Thread.join, []

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        calls.append(thread)
        if len(calls) == 1:
            time.sleep(0.1)
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wait(long())
    assert time.monotonic() - started < 10
    assert ended.is_set()
    assert not calls[0].is_alive()
