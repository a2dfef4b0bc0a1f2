"""What can be known of a user's function without calling it."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any


def name_of(function: object) -> str:
    """What reports and errors call it."""
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def is_async(function: Any) -> bool:
    """Whether calling it gives an awaitable; objects with an async `__call__` count."""
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def source_hash(function: Any) -> str:
    """Changes when its source does. What it calls is not seen, so a run directory is not shared over edits."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):  # built in, or typed at a prompt
        source = repr(type(function))
    return hashlib.sha256(source.encode()).hexdigest()[:8]
