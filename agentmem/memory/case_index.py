"""The index that follows a store: every change is found at once, whatever holds the bulk of the vectors."""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from agentmem.errors import InputError, MemoryIndexError
from agentmem.memory.case_store import CaseStore
from agentmem.memory.index_home import Busy, IndexHome, Stopped, Unusable
from agentmem.memory.vector_index import ExactIndex, VectorIndex

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

LARGE = "chroma" if sys.platform == "darwin" else "ivf"
"""What `auto` takes for many cases. On macOS, FAISS and torch bring an OpenMP each, and may crash together."""
EXACT_BELOW = {"ivf": 10_000, "chroma": 20_000}
"""Cases below which `auto` compares all of them: there, neither index is worth what it costs to build."""
TAIL = 1_000
"""Changes beyond what the index of a large bank holds that are compared before it takes them in; or 2 % of it."""
PATIENCE = 20
"""Reads after which an index is opened, or built: a process that reads less is done before."""
RETRY_SECONDS = 30.0
"""Until an index that could not be used is tried again."""


class Near(NamedTuple):
    """The nearest cases of a query, most similar first; of equals in the order of their ids."""

    ids: tuple[str, ...]
    cosines: NDArray[np.float64]
    """[n], computed from the stored vectors, so that they do not depend on the index that found them."""
    vectors: NDArray[np.float32]
    """[n, dimensions]"""
    seq: int
    """The last change that was looked at."""


class CaseIndex:
    """Finds the nearest cases of a store that any process may write to.

    Small banks are compared whole. Beyond `EXACT_BELOW` cases, an index (the base) holds what there was at some
    change, and what changed later (the tail) is compared exactly and takes precedence. The base is derived: where it
    is missing, damaged, out of reach or being built, all cases are the tail, and only the time differs.

    Args:
        store: the truth.
        index: `auto`, `exact`, `ivf` (FAISS, in memory) or `chroma` (on disk), whatever the size, or the address of a
            Chroma server.

    Raises:
        InputError: the index is none of these.
    """

    def __init__(self, store: CaseStore, *, index: str = "auto") -> None:
        self.index = _checked(index)
        self.notes: list[str] = []
        """What the user should know of the index, each said once."""
        self._store = store
        self._bank = store.path.parent
        self._home = _home(self._bank, index)
        self._lock = threading.RLock()
        self._base: VectorIndex | None = None
        self._tail: ExactIndex | None = None
        self._changed: set[str] = set()
        """Cases that changed after what the base holds: its word on them does not count."""
        self._reads = 0
        self._tending: threading.Thread | None = None
        self._retry_at = 0.0
        self._closed = threading.Event()
        self._stopped = threading.Event()

    @property
    def serving(self) -> str:
        """What answers now: `exact`, or `ivf` or `chroma` with the exact tail."""
        return "exact" if self._base is None else self._home.name

    def nearest(self, query: NDArray[np.float32], k: int) -> Near:
        """The `k` nearest cases, every change that was committed before included."""
        with self._lock:
            self._reads += 1
            tail = self._followed(len(query))
            near = self._scored(tail, query, k)
        if self._wants_tending(tail):
            self._start_tending()
        return near

    def reindex(self) -> str:
        """Build the derived index anew and wait for it, which may take minutes; returns what serves afterwards.

        Raises:
            MemoryIndexError: it cannot be built; all cases are compared, and nothing is lost.
        """
        if self.index == "exact":
            return self.serving
        self._stop_tending()
        with self._lock:
            self._forget_base()
            self._home.close()
        self._home.clear()
        try:
            self._rebuild()
            self._open_base()
        except Unusable as error:
            raise MemoryIndexError(self._sentence(error)) from error
        return self.serving

    def settle(self, timeout: float = 600.0) -> str:
        """Wait until what works in the background is done; returns what serves then."""
        if (tending := self._tending) is not None:
            tending.join(timeout)
        return self.serving

    def close(self) -> None:
        """Stop what works in the background, and give back what is held."""
        with self._lock:  # so that nothing begins to tend it afterwards
            self._closed.set()
        self._stop_tending()
        with self._lock:
            self._forget_base()
            self._home.close()

    # Reading

    def _followed(self, dimensions: int) -> ExactIndex:
        """The tail, brought up to the store's last change."""
        if self._tail is not None and self._tail.dimensions != dimensions:  # all was embedded anew
            self._forget_base()
            self._tail = None
        if self._tail is None:
            self._tail, self._changed = ExactIndex(dimensions), set()
        changed = _follow(self._tail, self._store)
        if self._base is not None:
            self._changed |= changed
            if len(self._changed) > max(TAIL, self._base.count // 2):  # it would find little that still counts
                self._forget_base()
                return self._followed(dimensions)
        return self._tail

    def _scored(self, tail: ExactIndex, query: NDArray[np.float32], k: int) -> Near:
        import numpy as np

        ids = tail.nearest(query, k)
        vectors = tail.vectors(ids)
        if self._base is not None:
            try:
                others, theirs = self._in_base(self._base, query, k, tail.seq)
            except Exception as error:  # vendors raise whatever comes up, and no read may fail for it
                self._distrust(error)
                return self._scored(self._followed(len(query)), query, k)
            ids, vectors = [*ids, *others], np.concatenate([vectors, theirs])
        # Row by row and in double precision: a product of matrices rounds differently with each shape.
        cosines = np.asarray((vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1))
        order = sorted(range(len(ids)), key=lambda row: (-cosines[row], ids[row]))[:k]
        return Near(tuple(ids[row] for row in order), cosines[order], vectors[order], tail.seq)

    def _in_base(
        self, base: VectorIndex, query: NDArray[np.float32], k: int, seq: int
    ) -> tuple[list[str], NDArray[np.float32]]:
        """What the base finds among the cases that did not change since, with their vectors."""
        import numpy as np

        ids = base.nearest(query, k, without=self._changed)
        if (vectors := base.vectors(ids)) is not None:
            return ids, vectors
        stored = self._store.vectors(ids)
        if len(stored) < len(ids) and self._store.seq == seq:
            raise Unusable("it holds cases that the bank does not")
        return list(stored), np.array(list(stored.values()), np.float32).reshape(len(stored), len(query))

    def _distrust(self, error: Exception) -> None:
        self._say(error)
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._forget_base()
        self._home.close()

    def _forget_base(self) -> None:
        if self._base is not None:
            base, self._base, self._tail = self._base, None, None
            with suppress(Exception):  # of a client whose server or files are gone
                base.close()

    # Tending, on a thread of its own

    def _wants_tending(self, tail: ExactIndex) -> bool:
        if self.index == "exact" or self._reads < PATIENCE or time.monotonic() < self._retry_at:
            return False
        if self._tending is not None and self._tending.is_alive():
            return False
        if self._base is None:
            return len(tail) > 0 if self.index != "auto" else planned("auto", len(tail)) != "exact"
        return self._behind()

    def _behind(self) -> bool:
        base = self._base  # another thread may take it away
        return base is None or len(self._changed) >= max(TAIL, base.count // 50)

    def _start_tending(self) -> None:
        with self._lock:
            if not self._closed.is_set() and (self._tending is None or not self._tending.is_alive()):
                self._stopped = threading.Event()
                self._tending = threading.Thread(target=self._tend, args=(self._stopped,), name="agentmem index")
                self._tending.start()

    def _stop_tending(self) -> None:
        self._stopped.set()
        if self._tending is not None:
            self._tending.join()

    def _tend(self, stopped: threading.Event) -> None:
        """Take over what was built; where that is too little, build first."""

        def stopping() -> None:
            if stopped.is_set() or not threading.main_thread().is_alive():
                raise Stopped

        self._retry_at = time.monotonic() + RETRY_SECONDS
        # The thread is nobody's to look after, and the bank serves without it: so no error leaves it.
        try:
            self._open_base()
        except Exception as error:
            self._say(error)
        try:
            if self._behind():
                self._home.build(stopping)
                self._open_base()
        except Stopped:
            return
        except Exception as error:
            self._say(error)
        if not self._behind():
            self._retry_at = 0.0

    def _rebuild(self) -> None:
        while True:
            try:
                return self._home.build(lambda: None, anew=True)
            except Busy:
                time.sleep(0.2)

    def _open_base(self) -> None:
        """Take over what was built last.

        Raises:
            Unusable: what is there cannot be used.
        """
        store = CaseStore(self._bank)  # of its own: this runs beside readers and writers
        try:
            base = self._home.open(store)
            if base is None:
                return
            if (held := store.embedder) and held[1] != base.dimensions:  # all was embedded anew since
                base.close()
                return
            tail = ExactIndex(base.dimensions, seq=base.seq)
            changed = _follow(tail, store)
        finally:
            store.close()
        with self._lock:
            self._forget_base()
            self._base, self._tail, self._changed = base, tail, changed

    def _say(self, why: object) -> None:
        sentence = self._sentence(why)
        if sentence not in self.notes:
            self.notes.append(sentence)
            logging.getLogger("agentmem").warning("%s", sentence)

    def _sentence(self, why: object) -> str:
        said = str(why) if isinstance(why, Unusable | str) else f"{type(why).__name__}: {why}"
        return (
            f"The {self._home.name} index of {self._bank} is not in use: {said.rstrip('.')}. All cases are compared "
            "instead, which is slower and misses none; it is rebuilt from the cases when it can be."
        )


def planned(index: str, cases: int) -> str:
    """Which index a bank of so many cases is searched with, once it has been read a few times."""
    if index == "auto":
        return "exact" if cases < EXACT_BELOW[LARGE] else LARGE
    return index


def _home(bank: Path, index: str) -> IndexHome:
    """Where the index of a large bank comes from; each loads what it needs when it is used."""
    if (LARGE if index == "auto" else index) in ("ivf", "exact"):  # for the latter it is never asked
        from agentmem.memory.ivf_index import IvfHome

        return IvfHome(bank)
    from agentmem.memory.chroma_home import ChromaHome

    return ChromaHome(bank, index if "://" in index else "")


def _follow(index: ExactIndex, store: CaseStore) -> set[str]:
    """Bring an index up to the store's last change; returns the ids that changed."""
    seq = store.seq
    if index.seq >= seq:
        return set()
    changes = {id: None if gone else vector for id, gone, vector in store.changes(index.seq)}
    added = {id: vector for id, vector in changes.items() if vector is not None}
    index.update(added, [id for id, vector in changes.items() if vector is None], seq=seq)
    return set(changes)


def _checked(index: str) -> str:
    if index in ("auto", "exact", "ivf", "chroma"):
        return index
    address = urlsplit(index)
    if address.scheme in ("http", "https") and address.hostname:
        return index
    raise InputError(
        f"No index {index!r}. Known: auto, exact, ivf, chroma, or the address of a Chroma server such as "
        "'http://localhost:8000'."
    )
