"""What tests of agents need: models that follow a script, and a server on a real socket that fails on demand.

Nothing in the package imports this room; it is for your tests and ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentmem.testing.chat import ChatAnswer, ChatRequest
    from agentmem.testing.faults import Faults
    from agentmem.testing.scripted import ScriptedModel
    from agentmem.testing.server import ChatServer, heavy_tail

__all__ = ["ChatAnswer", "ChatRequest", "ChatServer", "Faults", "ScriptedModel", "heavy_tail"]

_HOME = {
    "Faults": "faults",
    "ScriptedModel": "scripted",
    "ChatAnswer": "chat",
    "ChatRequest": "chat",
    "ChatServer": "server",
    "heavy_tail": "server",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
