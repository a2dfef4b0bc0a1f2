"""A blocking function in a thread of its own, for which nobody waits at exit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T], *, name: str = "agentmem-call") -> T:
    """Run `function` in a new daemon thread and wait for it, without blocking the loop.

    A thread cannot be killed. When the waiting is cancelled, the function runs on and its result is dropped; it
    neither takes a place in a pool from others nor keeps the interpreter from exiting.

    Raises:
        Exception: whatever `function` raises.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except StopIteration as error:  # a future refuses this one kind
            wrapped = RuntimeError(f"StopIteration: {error}")
            wrapped.__cause__ = error
            settle(lambda: done.set_exception(wrapped))
        except BaseException as error:
            settle(lambda error=error: done.set_exception(error))  # type: ignore[misc]
        else:
            settle(lambda: done.set_result(result))

    def settle(how: Callable[[], None]) -> None:
        def unless_given_up() -> None:
            if not done.done():
                how()

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(unless_given_up)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await done
