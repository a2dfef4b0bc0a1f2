"""Inverted lists (IVF) by FAISS: the index of a large bank, in memory alone.

The vectors are sorted into cells around centroids, and a query is compared with those of the nearest cells. How many
cells that takes depends on the vectors; it is measured on a sample of them when the index is built.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmem.domain.seed import split_seed
from agentmem.memory.case_policy import POOL
from agentmem.memory.case_store import CaseStore
from agentmem.memory.index_home import BATCH, Stopping, Unusable
from agentmem.memory.store_changes import Changes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

RECALL = 0.99
"""Share of the `POOL` nearest that is to be found, on the sample."""
SAMPLE = 100
"""Vectors that are looked up to measure it."""
ROUNDS = 6
"""Of k-means; more move the centroids little."""
FEWEST = 8
"""Cells that are looked at at least: a query may lie between cells, where no vector of the sample does."""
STEP = 1.3
"""How much more cells are looked at next where they were too few."""
POINTS = 30
"""Vectors a centroid that k-means looks at."""
SLACK = 8
"""Further ones that are asked for: half precision may confuse neighbours that are equally near."""


class IvfIndex:
    """Vectors in cells, as of one change of the store.

    Args:
        ids: of the vectors, which are unique.
        vectors: [n, dimensions], of length 1; n is at least 1.
        seq: the last change of the store that they hold.
        stopping: called between two pieces of the work; raises to end it.
    """

    def __init__(
        self, ids: Sequence[str], vectors: Vectors, *, seq: int, stopping: Stopping = lambda: None
    ) -> None:
        import faiss
        import numpy as np

        self.seq = seq
        self.dimensions = vectors.shape[1]
        self.cells = max(1, min(round(2 * sqrt(len(ids))), len(ids)))
        self.churn = 0
        """Vectors that were added or removed since it was built: the centroids know nothing of them."""
        self._built = len(ids)
        self._ids: list[str] = []
        self._keys: dict[str, int] = {}
        self._vectors = vectors
        """[keys, dimensions]: as they were given; those of a key that is not in use any more stay."""
        order = np.random.default_rng(split_seed(0, "ivf", "centroids")).permutation(len(vectors))
        # Recall is measured on others than the centroids were drawn from.
        drawn = vectors[order[: max(self.cells, min(self.cells * POINTS, len(vectors) - SAMPLE))]]
        centroids = faiss.IndexFlatIP(self.dimensions)
        centroids.add(_centroids(drawn, self.cells, stopping))
        half = faiss.ScalarQuantizer.QT_fp16  # half of the memory to go through, and so half of the time
        self._lists = faiss.IndexIVFScalarQuantizer(
            centroids, self.dimensions, self.cells, half, faiss.METRIC_INNER_PRODUCT, False
        )
        self._lists.is_trained = True  # by the centroids; half precision needs nothing more
        self._put(ids, vectors, stopping)
        self.probes = self._probes_for(vectors[order[-SAMPLE:]], stopping)
        """Cells that a query is compared with."""

    @property
    def count(self) -> int:
        """Vectors that it holds."""
        return len(self._keys)

    def worn_by(self, changes: int) -> bool:
        """Whether so much will have changed that the centroids should be drawn anew."""
        return self.churn + changes > max(self._built, BATCH)

    def nearest(self, query: NDArray[np.float32], k: int, *, without: Collection[str] = ()) -> list[str]:
        """The ids of (very nearly always) the `k` nearest vectors, most similar first."""
        import numpy as np

        wanted = k + SLACK + min(len(without), k)
        while True:
            found = self._found(query, wanted)
            kept = [id for id in found if id not in without][: k + SLACK]
            if len(kept) >= k or len(found) < wanted:
                break
            wanted = k + SLACK + len(without)
        order = np.argsort(-np.vecdot(self.vectors(kept), query), kind="stable")[:k]
        return [kept[row] for row in order]

    def vectors(self, ids: Collection[str]) -> Vectors:
        """The vectors of these ids, [n, dimensions], as they were given; all must be there."""
        return self._vectors[[self._keys[id] for id in ids]]

    def changed(
        self,
        added: Mapping[str, Vectors],
        removed: Collection[str],
        *,
        seq: int,
        stopping: Stopping = lambda: None,
    ) -> IvfIndex:
        """The index with these changes; this one stays as it is, for whoever reads it."""
        import faiss
        import numpy as np

        other = copy.copy(self)
        other._lists = faiss.clone_index(self._lists)
        other._ids, other._keys = list(self._ids), dict(self._keys)
        other.seq, other.churn = seq, self.churn + len(added) + len(removed)
        other._drop([*added, *removed])
        if added:
            new = np.stack(list(added.values()))
            other._vectors = np.concatenate([self._vectors, new])
            other._put(list(added), new, stopping)
            living = np.array(list(other._keys.values()))
            order = np.random.default_rng(split_seed(0, "ivf", "sample", other.churn)).permutation(len(living))
            other.probes = other._probes_for(other._vectors[living[order[:SAMPLE]]], stopping)
        return other

    def close(self) -> None:
        """Nothing is held outside of memory."""

    def _found(self, query: NDArray[np.float32], k: int) -> list[str]:
        import faiss

        if not (k := min(k, self.count)):
            return []
        probes = self.probes
        while True:
            parameters = faiss.SearchParametersIVF(nprobe=probes)
            _, keys = self._lists.search(query[None, :], k, params=parameters)
            found = [self._ids[key] for key in keys[0].tolist() if key >= 0]
            if len(found) == k or probes == self.cells:
                return found
            probes = min(2 * probes, self.cells)

    def _put(self, ids: Sequence[str], vectors: Vectors, stopping: Stopping) -> None:
        import numpy as np

        for start in range(0, len(ids), BATCH):
            stopping()
            part = ids[start : start + BATCH]
            keys = range(len(self._ids), len(self._ids) + len(part))
            self._lists.add_with_ids(vectors[start : start + BATCH], np.array(keys, dtype=np.int64))
            self._ids += part
            self._keys.update(zip(part, keys, strict=True))

    def _drop(self, ids: Collection[str]) -> None:
        import numpy as np

        if keys := [self._keys.pop(id) for id in ids if id in self._keys]:
            self._lists.remove_ids(np.array(keys, dtype=np.int64))

    def _probes_for(self, sample: Vectors, stopping: Stopping) -> int:
        """About the fewest cells with which a sample of the vectors finds its neighbours."""
        import faiss
        import numpy as np

        stopping()
        k = min(POOL + 1, self.count)  # each finds itself
        living = self._vectors[list(self._keys.values())] if self.churn else self._vectors
        right, _ = faiss.knn(sample, living, k, metric=faiss.METRIC_INNER_PRODUCT)
        del living
        enough = right[:, -1:] - 1e-6  # by similarity, because of equals any will do
        probes = min(FEWEST, self.cells)
        while probes < self.cells:
            stopping()
            wanted = min(k + SLACK, self.count)
            _, keys = self._lists.search(sample, wanted, params=faiss.SearchParametersIVF(nprobe=probes))
            found = np.vecdot(self._vectors[keys], sample[:, None, :])
            found[keys < 0] = -np.inf
            hits = (found >= enough).sum(axis=1).clip(max=k) - 1
            if hits.sum() >= RECALL * len(sample) * (k - 1):
                break
            probes = min(int(probes * STEP), self.cells)
        return probes


class IvfHome:
    """Builds the index of one bank from its store, in this process: it takes seconds, and nothing is left on disk.

    Args:
        bank: the bank's folder.
    """

    name = "ivf"

    def __init__(self, bank: Path) -> None:
        self._bank = bank
        self._newest: IvfIndex | None = None
        self._of: tuple[object, str] = (None, "")
        """Whose vectors the newest index holds, and the store's mark of its last change."""

    def open(self, store: CaseStore) -> IvfIndex | None:
        """What was built last; None where nothing was."""
        return self._newest

    def build(self, stopping: Stopping, *, anew: bool = False) -> None:
        """Take in what changed, or build from nothing where that is much; on half of the cores."""
        try:
            import faiss
        except ImportError as error:
            raise Unusable(f"FAISS cannot be loaded ({error}); install it with: pip install faiss-cpu") from error
        cores = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(max(1, (os.cpu_count() or 2) // 2))  # whoever reads has the others
        try:
            self._build(stopping, anew=anew)
        except (RuntimeError, MemoryError) as error:
            raise Unusable(f"FAISS failed ({type(error).__name__}: {error})") from error
        finally:
            faiss.omp_set_num_threads(cores)

    def _build(self, stopping: Stopping, *, anew: bool) -> None:
        import numpy as np

        index = None if anew else self._newest
        store = CaseStore(self._bank)  # of its own: this runs beside readers and writers
        try:
            if index and self._of != (
                store.embedder,
                store.mark(index.seq),
            ):  # embedded anew, or restored from a copy
                index = None
            changes = Changes(store, index.seq if index else 0)
            if index and index.worn_by(len(changes)):
                index, changes = None, Changes(store)
            of = (store.embedder, changes.mark)
        finally:
            store.close()
        if index:
            index = index.changed(changes.added, changes.removed, seq=changes.seq, stopping=stopping)
        elif changes.added:
            ids, seq = list(changes.added), changes.seq
            vectors = np.empty((len(ids), changes.dimensions), np.float32)
            for row, vector in enumerate(
                changes.added.values()
            ):  # stacked at once, no reader could go on meanwhile
                vectors[row] = vector
            del changes  # as large as the vectors
            index = IvfIndex(ids, vectors, seq=seq, stopping=stopping)
        self._newest, self._of = index, of

    def clear(self) -> None:
        """Forget what was built."""
        self._newest = None

    def close(self) -> None:
        """Forget what was built."""
        self._newest = None


def _centroids(sample: Vectors, cells: int, stopping: Stopping) -> Any:
    """By k-means on a sample, one round at a time, so that it can be stopped."""
    import faiss

    kmeans = faiss.Kmeans(
        sample.shape[1],
        cells,
        niter=1,
        spherical=True,
        seed=split_seed(0, "ivf", "k-means"),
        min_points_per_centroid=1,
        max_points_per_centroid=len(sample),
    )
    for _ in range(ROUNDS):
        stopping()
        kmeans.train(sample, init_centroids=kmeans.centroids)
    return kmeans.centroids
