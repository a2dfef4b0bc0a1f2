"""An embedder without weights: hashed words and letter triples. For tests only."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np

from agentmem.memory.embedder import Vectors


class HashEmbedder:
    """Texts that share words are near each other; meaning plays no part.

    Example:
        >>> a, b, c = HashEmbedder().embed(["check the units", "check all units", "paris"])
        >>> bool(a @ b > a @ c)
        True
    """

    def __init__(self, dimensions: int = 256) -> None:
        self.name = f"hash-{dimensions}"
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            words = re.findall(r"\w+", text.casefold())
            for part in [*words, *(w[i : i + 3] for w in words for i in range(len(w) - 2))]:
                place = zlib.crc32(part.encode())
                vectors[row, place % self.dimensions] += 1.0 if place >> 16 & 1 else -1.0
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
