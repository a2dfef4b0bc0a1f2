"""A bank's vectors: each text is embedded once, and all of them by one embedder."""

from __future__ import annotations

from collections.abc import Sequence

from agentmem.errors import EmbedderMismatch, InputError
from agentmem.memory.case_change import changing
from agentmem.memory.case_store import CaseStore, text_hash
from agentmem.memory.embedder import Embedder, MiniLM, Vectors, open_embedder

_BATCH = 512


class _Absent:
    """Stands for an embedder that a program of its own made: all but embedding works without it."""

    def __init__(self, name: str, place: str) -> None:
        self.name = name
        self._place = place

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise EmbedderMismatch(
            f"{self._place} was written with the embedder {self.name}, which has to be given: "
            "CaseBank(path, embedder=…), or --embedder FILE.py:FUNCTION. Or embed its texts again: "
            "CaseBank(path).reembed('minilm'), or `agentmem memory reembed`."
        )


def own(store: CaseStore) -> Embedder:
    """The embedder that a bank was written with; MiniLM for a new one."""
    held = store.embedder
    if held is None or held[0] == MiniLM.name:
        return open_embedder("minilm")
    try:
        return open_embedder(held[0])
    except InputError:  # one that a program made itself, or that lacks its key here
        return _Absent(held[0], str(store.path.parent))


def vectors(store: CaseStore, embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """One vector a text; those that the bank has are not embedded again.

    Raises:
        EmbedderMismatch: the bank's vectors are another embedder's.
        InputError: the embedder gave something else than a finite vector a text.
    """
    import numpy as np

    held = store.check_embedder(embedder.name)
    if not texts:
        return np.zeros((0, held[1] if held else 0), np.float32)
    distinct = list(dict.fromkeys(texts))
    known = {text: vector for text in distinct if (vector := store.vector(text, embedder.name)) is not None}
    new = [text for text in distinct if text not in known]
    for first in range(0, len(new), _BATCH):
        part = new[first : first + _BATCH]
        known.update(zip(part, _embedded(embedder, part), strict=True))
    found = np.stack([known[text] for text in texts])
    if new or held is None or held[1] != found.shape[1]:  # embedding takes long: all may have been embedded anew
        store.check_embedder(embedder.name, found.shape[1])
    return found


def reembed(store: CaseStore, embedder: Embedder) -> None:
    """Embed all texts of a bank with another embedder, and make the bank its own, in one change."""
    model, last = embedder.name, 0
    insert = "INSERT OR IGNORE INTO vectors (hash, model, text, vector) VALUES (?,?,?,?)"
    missing = (
        "SELECT MAX(id), text FROM vectors WHERE id > ? AND model != ? AND hash NOT IN"
        " (SELECT hash FROM vectors WHERE model = ?) GROUP BY hash ORDER BY 1 LIMIT ?"
    )
    while page := store.rows(missing, (last, model, model, _BATCH)):
        last = page[-1][0]
        texts = [text for _, text in page]
        made = _embedded(embedder, texts)
        with store.writing() as db:
            db.executemany(
                insert, [(text_hash(t), model, t, v.tobytes()) for t, v in zip(texts, made, strict=True)]
            )
    with changing(store, "reembed", why=f"embedder {model}") as change:
        late = [text for _, text in change.rows(missing, (0, model, model, -1))]  # written meanwhile
        for text, vector in zip(late, _embedded(embedder, late) if late else (), strict=True):
            change.db.execute(insert, (text_hash(text), model, text, vector.tobytes()))
        for table in ("cases", "uses"):
            change.db.execute(
                f"UPDATE {table} SET vector = (SELECT n.id FROM vectors o JOIN vectors n ON n.hash = o.hash"
                f" WHERE o.id = {table}.vector AND n.model = ?)",
                (model,),
            )
        change.db.execute("DELETE FROM vectors WHERE model != ?", (model,))
        row = change.rows("SELECT LENGTH(vector) / 4 FROM vectors LIMIT 1")
        if row:
            about = (("embedder", model), ("dimensions", str(row[0][0])))
            change.db.executemany("INSERT OR REPLACE INTO meta VALUES (?,?)", about)
        change.db.execute("UPDATE cases SET seq = ?", (change.seq,))  # every index takes all of them in anew


def _embedded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    import numpy as np

    found = np.ascontiguousarray(embedder.embed(texts), dtype=np.float32)
    if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
        raise InputError(
            f"The embedder {embedder.name} gave an array of shape {found.shape} for {len(texts)} texts; "
            "it must give one finite vector a text."
        )
    return found
