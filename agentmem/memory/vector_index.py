"""Which stored vectors are nearest to a query; derived from the store, and never the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class VectorIndex(Protocol):
    """Finds nearest vectors by cosine. It knows which change of the store it has seen last."""

    @property
    def seq(self) -> int:
        """The last change that it holds; the bank scans what came later exactly."""
        ...

    def nearest(self, query: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        """The ids of the `k` nearest vectors with their cosines, most similar first."""
        ...

    def update(self, added: Mapping[str, NDArray[np.float32]], removed: Sequence[str], *, seq: int) -> None:
        """Take in all changes up to `seq`: vectors that are new or changed, and ids that are gone."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class ExactIndex:
    """All vectors in one matrix in memory: exact, and fast enough up to some ten thousand cases.

    Args:
        dimensions: of the vectors.
    """

    def __init__(self, dimensions: int) -> None:
        import numpy as np

        self.seq = 0
        self._ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._matrix = np.zeros((64, dimensions), np.float32)

    def nearest(self, query: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        """The ids of the `k` nearest vectors with their cosines, most similar first."""
        import numpy as np

        n = len(self._ids)
        cosines = self._matrix[:n] @ query
        rows = np.argpartition(-cosines, k)[:k] if k < n else np.arange(n)
        rows = rows[np.lexsort((rows, -cosines[rows]))]
        return [(self._ids[row], float(cosines[row])) for row in rows]

    def update(self, added: Mapping[str, NDArray[np.float32]], removed: Sequence[str], *, seq: int) -> None:
        """Take in all changes up to `seq`."""
        for id in removed:
            self._remove(id)
        for id, vector in added.items():
            self._put(id, vector)
        self.seq = seq

    def close(self) -> None:
        """Nothing is held outside of memory."""

    def _put(self, id: str, vector: NDArray[np.float32]) -> None:
        import numpy as np

        if id not in self._rows:
            if len(self._ids) == len(self._matrix):
                self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
            self._rows[id] = len(self._ids)
            self._ids.append(id)
        self._matrix[self._rows[id]] = vector

    def _remove(self, id: str) -> None:
        row = self._rows.pop(id, None)
        if row is None:
            return
        last = self._ids.pop()
        if last != id:  # the last row takes the place of the removed one
            self._ids[row] = last
            self._rows[last] = row
            self._matrix[row] = self._matrix[len(self._ids)]
