"""Where the index of a large bank comes from, whatever holds it: it is derived from the store, and never the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from agentmem.memory.case_store import CaseStore
from agentmem.memory.vector_index import VectorIndex

BATCH = 1000
"""Rows that are handed over at once."""

Stopping = Callable[[], None]
"""Called between two pieces of work; raises `Stopped` where nobody waits for them any more."""


class Unusable(Exception):
    """What there is of an index cannot be used; the message says why. The store still has it all."""


class Busy(Unusable):
    """Another process builds it."""


class Stopped(Exception):
    """Whoever asked for the index has gone."""


class IndexHome(Protocol):
    """Builds the index of one bank, and opens what was built."""

    @property
    def name(self) -> str:
        """What the index is called: `ivf`, `chroma`."""
        ...

    def open(self, store: CaseStore) -> VectorIndex | None:
        """The newest index; None where none was built. This may take seconds.

        Raises:
            Unusable: there is something, and it cannot be used.
        """
        ...

    def build(self, stopping: Stopping, *, anew: bool = False) -> None:
        """Bring it up to the store's last change; `anew`: from nothing, whatever is there.

        Raises:
            Busy: another process is at it.
            Unusable: it failed.
            Stopped: nobody waits for it any more.
        """
        ...

    def clear(self) -> None:
        """Forget what was built, on disk too."""
        ...

    def close(self) -> None:
        """Give back what is held in memory, and trust it no more."""
        ...
