"""Chroma as the index of a large bank: reading it. It holds what can be derived from the store, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentmem.errors import InputError
from agentmem.memory.index_home import BATCH, Stopping, Unusable
from agentmem.memory.store_changes import Changes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HNSW = {"space": "ip", "max_neighbors": 32, "ef_construction": 200, "ef_search": 300}
"""With Chroma's own defaults (16, 100), clusters of 5,000 vectors gave a recall@10 of .86."""


class ChromaIndex:
    """One collection of Chroma, in a folder or at a server, as of one change of the store.

    Args:
        client: it is closed with the index.
        collection: its name.
        seq: the last change of the store that the collection holds.
        dimensions: of its vectors.
        release: called when the index is closed.
    """

    def __init__(
        self,
        client: Any,
        collection: str,
        seq: int,
        dimensions: int,
        *,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self.seq = seq
        self.dimensions = dimensions
        self._client = client
        self._collection = client.get_collection(collection, embedding_function=None)
        self._release = release
        self.count = int(self._collection.count())
        """Rows that it held when it was opened."""

    def nearest(self, query: NDArray[np.float32], k: int, *, without: Collection[str] = ()) -> list[str]:
        """The ids of (very nearly always) the `k` nearest vectors, most similar first."""
        wanted = k + min(len(without), k)
        while True:
            found = self._query(query, wanted)
            kept = [id for id in found if id not in without][:k]
            if len(kept) == k or len(found) < wanted or wanted >= k + len(without):
                return kept
            wanted = k + len(without)

    def vectors(self, ids: Collection[str]) -> None:
        """Chroma is not asked for them: it may have been tampered with."""

    def close(self) -> None:
        """Close the client; the collection stays."""
        if self._client is not None:
            client, self._client, self._collection = self._client, None, None
            close_client(client)
            self._release()

    def _query(self, query: NDArray[np.float32], k: int) -> list[str]:
        answer = self._collection.query(query_embeddings=query[None, :], n_results=k, include=[])
        return list(answer["ids"][0])


def send(changes: Changes, collection: Any, *, stopping: Stopping) -> int:
    """Write all changes into a collection, and return how many rows it has then. Repeating it does no harm."""
    import numpy as np

    for ids in _batches(list(changes.removed)):
        stopping()
        collection.delete(ids=ids)
    for ids in _batches(list(changes.added)):
        stopping()
        collection.upsert(ids=ids, embeddings=np.stack([changes.added[id] for id in ids]))
    return int(collection.count())


def folder_client(path: str) -> Any:
    """A client of the Chroma data in this folder, which one process at a time may write to."""
    import chromadb

    return chromadb.PersistentClient(path, settings=_settings())


def server_client(url: str, *, timeout: float) -> Any:
    """A client of the server that `chroma run` started.

    Raises:
        InputError: the address is none.
        Unusable: nothing there answers as Chroma does.
    """
    address = urlsplit(url)
    try:
        port = address.port or (443 if address.scheme == "https" else 80)
    except ValueError:
        port = None
    if address.scheme not in ("http", "https") or not address.hostname or port is None:
        raise InputError(f"index {url!r} is no address; write it in full, such as 'http://localhost:8000'.")
    import chromadb
    import httpx

    try:
        # Chroma waits for ever, and has no setting for it; a server that hangs must not hang who asks.
        httpx.get(f"{url.rstrip('/')}/api/v2/heartbeat", timeout=timeout).raise_for_status()
        client: Any = chromadb.HttpClient(
            host=address.hostname, port=port, ssl=address.scheme == "https", settings=_settings()
        )
    except (httpx.HTTPError, ValueError) as error:  # the latter is Chroma's word for every failure to connect
        raise Unusable(f"{url} cannot be reached ({error})") from error
    client._server._session.timeout = httpx.Timeout(timeout)
    return client


def close_client(client: Any) -> None:
    """Close it, with its connections, which Chroma itself leaves open."""
    for part in (client, client._admin_client):
        if session := getattr(part._server, "_session", None):
            session.close()
    client.close()


def _settings() -> Any:
    from chromadb.config import Settings

    # It complains of what its own `modify` writes.
    warnings.filterwarnings("ignore", message="legacy embedding function config", category=DeprecationWarning)
    # Without the first two, a `.env` in the working folder and the environment may switch tracing on.
    return Settings(_env_file=None, chroma_otel_collection_endpoint="", anonymized_telemetry=False)


def _batches(ids: list[str]) -> Iterator[list[str]]:
    return (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
