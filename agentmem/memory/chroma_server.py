"""A Chroma server (`chroma run`) that holds the index of a bank: one collection, whose metadata say what it holds.

The collection is written to while others read it. That is safe, because a reader scans exactly all that changed since
the number that it found there, and so never needs what is being written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentmem.domain.value import fingerprint
from agentmem.memory.case_store import CaseStore
from agentmem.memory.chroma_index import HNSW, ChromaIndex, close_client, send, server_client
from agentmem.memory.index_home import BATCH, Stopping, Unusable
from agentmem.memory.store_changes import Changes

READ_TIMEOUT = 5.0
"""Seconds after which a reader does without the server."""
WRITE_TIMEOUT = 120.0
FORMAT = 1


class ChromaServer:
    """The collection of one bank.

    Args:
        bank: the bank's folder.
        url: the server's address.
    """

    def __init__(self, bank: Path, url: str) -> None:
        self.url = url
        self._bank = bank.resolve()

    def open(self, store: CaseStore) -> ChromaIndex | None:
        """The collection, if it holds what this bank was; None where a builder has to work on it first.

        Raises:
            Unusable: the server cannot be reached, or fails.
        """
        client = server_client(self.url, timeout=READ_TIMEOUT)
        try:
            if (found := self._sound(client, store)) is None:
                close_client(client)
                return None
            return ChromaIndex(client, found.name, found.metadata["seq"], found.metadata["dimensions"])
        except Exception as error:
            close_client(client)
            raise Unusable(f"{self.url} failed ({type(error).__name__}: {error})") from error

    def build(self, store: CaseStore, *, anew: bool = False, stopping: Stopping = lambda: None) -> None:
        """Bring the collection up to the store's last change. One builder at a time may do this.

        Args:
            store: what it is made from.
            anew: from nothing, whatever is there.
            stopping: called before each batch; it raises to stop the work, which the next builder repeats.
        """
        client = server_client(self.url, timeout=WRITE_TIMEOUT)
        try:
            found = None if anew else self._sound(client, store)
            changes = Changes(store, found.metadata["seq"] if found else 0)
            churn = found.metadata["churn"] + len(changes) if found else 0
            other = found and changes.added and found.metadata["dimensions"] != changes.dimensions
            if found and (other or churn > max(found.metadata["count"], BATCH)):
                found, churn, changes = None, 0, Changes(store)
            dimensions = changes.dimensions or (found.metadata["dimensions"] if found else 0)
            collection = found or self._new(client, store)
            count = send(changes, collection, stopping=stopping)
            # Written last: a reader believes what it says.
            said = {
                "seq": changes.seq,
                "mark": changes.mark,
                "count": count,
                "churn": churn,
                "dimensions": dimensions,
            }
            collection.modify(metadata={"format": FORMAT, **said})
            for name in self._names(client, store):
                if name != collection.name:
                    client.delete_collection(name)
        finally:
            close_client(client)

    def _sound(self, client: Any, store: CaseStore) -> Any:
        """The newest collection that holds what its metadata say, and that belongs to this store."""
        for name in reversed(self._names(client, store)):
            collection = client.get_collection(name, embedding_function=None)
            said = collection.metadata or {}
            if (
                said.get("format") == FORMAT
                and said["seq"] <= store.seq
                and said["mark"] == store.mark(said["seq"])
                and said["count"] == collection.count()
            ):
                return collection
        return None

    def _new(self, client: Any, store: CaseStore) -> Any:
        names = self._names(client, store)
        number = int(names[-1].rpartition("-")[2]) + 1 if names else 0
        return client.create_collection(
            f"{self._prefix(store)}{number:06}", embedding_function=None, configuration={"hnsw": HNSW}
        )

    def _names(self, client: Any, store: CaseStore) -> list[str]:
        names = (collection.name for collection in client.list_collections())
        return sorted(name for name in names if name.startswith(self._prefix(store)))

    def _prefix(self, store: CaseStore) -> str:
        # With the folder, because a copy of a bank goes its own way.
        return f"agentmem-{fingerprint([store.identity, str(self._bank)])}-"
