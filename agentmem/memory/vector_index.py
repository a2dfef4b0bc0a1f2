"""Which stored vectors are nearest to a query; derived from the store, and never the truth."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class VectorIndex(Protocol):
    """Finds nearest vectors, and knows which change of the store it has seen last."""

    seq: int
    """The last change that it holds."""
    dimensions: int
    """Of the vectors."""

    @property
    def count(self) -> int:
        """Vectors that it holds."""
        ...

    def nearest(self, query: NDArray[np.float32], k: int, *, without: Collection[str] = ()) -> list[str]:
        """The ids of the `k` nearest vectors, most similar first, as if those in `without` were not there."""
        ...

    def vectors(self, ids: Collection[str]) -> NDArray[np.float32] | None:
        """The vectors of these ids, [n, dimensions], as the store has them; None where the index cannot say."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class ExactIndex:
    """All vectors in one matrix in memory: exact, and fast enough up to some ten thousand cases.

    Args:
        dimensions: of the vectors.
        seq: the change after which its own begin: it may hold the newest ones alone.
    """

    def __init__(self, dimensions: int, *, seq: int = 0) -> None:
        import numpy as np

        self.seq = seq
        self.dimensions = dimensions
        self._ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._matrix = np.zeros((64, dimensions), np.float32)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def count(self) -> int:
        """Vectors that it holds."""
        return len(self._ids)

    def nearest(self, query: NDArray[np.float32], k: int, *, without: Collection[str] = ()) -> list[str]:
        """The ids of the `k` nearest vectors, most similar first; of equals the one that came earlier."""
        import numpy as np

        n = len(self._ids)
        # A product of matrix and vector would be shared out over all cores, and wait for the slowest: on a busy machine
        # that took thirty times as long.
        cosines = np.vecdot(self._matrix[:n], query)
        if rows_out := [self._rows[id] for id in without if id in self._rows]:
            cosines[rows_out] = -np.inf
        k = min(k, n - len(rows_out))
        rows = np.argpartition(-cosines, k)[:k] if k < n else np.arange(n)
        rows = rows[np.lexsort((rows, -cosines[rows]))]
        return [self._ids[row] for row in rows]

    def vectors(self, ids: Collection[str]) -> NDArray[np.float32]:
        """The vectors of these ids, [n, dimensions]; all must be there."""
        return self._matrix[[self._rows[id] for id in ids]]

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    def update(self, added: Mapping[str, NDArray[np.float32]], removed: Collection[str], *, seq: int) -> None:
        """Take in all changes up to `seq`: vectors that are new or changed, and ids that are gone."""
        for id in removed:
            self._remove(id)
        self._make_room(len(added))
        for id, vector in added.items():
            row = self._rows.setdefault(id, len(self._ids))
            if row == len(self._ids):
                self._ids.append(id)
            self._matrix[row] = vector
        self.seq = seq

    def close(self) -> None:
        """Nothing is held outside of memory."""

    def _make_room(self, more: int) -> None:
        import numpy as np

        wanted = len(self._ids) + more
        if wanted > len(self._matrix):
            grown = np.zeros((max(wanted, len(self._matrix) * 3 // 2), self._matrix.shape[1]), np.float32)
            grown[: len(self._ids)] = self._matrix[: len(self._ids)]
            self._matrix = grown

    def _remove(self, id: str) -> None:
        row = self._rows.pop(id, None)
        if row is None:
            return
        last = self._ids.pop()
        if last != id:  # the last row takes the place of the removed one
            self._ids[row] = last
            self._rows[last] = row
            self._matrix[row] = self._matrix[len(self._ids)]
