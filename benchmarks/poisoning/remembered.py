"""An embedder whose vectors are kept in a file: the same texts are compared in every arm."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentmem.memory.embedder import Embedder


class Remembered:
    """Asks another embedder once for each text.

    Args:
        embedder: the other.
        path: the file (.npz); made by `save`.
    """

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder, self._path = embedder, path
        self.name = embedder.name
        self._held: dict[str, NDArray[np.float32]] = {}
        if path.exists():
            with np.load(path, allow_pickle=False) as kept:
                self._held = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text."""
        keys = [hashlib.sha256(f"{self.name}\n{text}".encode()).hexdigest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._held}
        if missing:
            self._held |= zip(missing, self._embedder.embed(list(missing.values())), strict=True)
        return np.stack([self._held[key] for key in keys]).astype(np.float32)

    def save(self) -> None:
        """Write the file."""
        vectors = np.stack(list(self._held.values()))
        np.savez(self._path, keys=np.array(list(self._held)), vectors=vectors)
