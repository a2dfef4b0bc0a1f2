"""What changed in a store since some change: what an index that is derived from it has to take in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmem.memory.case_store import CaseStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Changes:
    """The newest vector of each case that changed, and the ids that are gone.

    Args:
        store: the bank's.
        since: the last change that the index holds.
    """

    def __init__(self, store: CaseStore, since: int = 0) -> None:
        self.seq = store.seq
        self.mark = store.mark(self.seq)
        self.added: dict[str, NDArray[np.float32]] = {}
        self.removed: dict[str, None] = {}
        for id, gone, vector in store.changes(since):  # a case that is written meanwhile may come twice
            if gone:
                self.added.pop(id, None)
                self.removed[id] = None
            else:
                self.removed.pop(id, None)
                self.added[id] = vector

    def __len__(self) -> int:
        return len(self.added) + len(self.removed)

    @property
    def dimensions(self) -> int:
        """Of the vectors; 0 where none was added."""
        return next((len(vector) for vector in self.added.values()), 0)
