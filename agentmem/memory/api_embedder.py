"""An embedder behind an API: batched, retried, counted and priced."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentmem.domain.usage import Usage
from agentmem.errors import BadRequest, ModelError
from agentmem.memory.embedder import VectorCache, Vectors, cached
from agentmem.models.embeddings import Embedded, EmbeddingModel, open_embeddings
from agentmem.models.prices import embedding_of

if TYPE_CHECKING:
    from tenacity import RetryCallState

BATCH_TEXTS, BATCH_BYTES = 256, 400_000
"""Of one request; OpenAI takes 2,048 texts and 300,000 tokens."""
ATTEMPTS = 5
WINDOW = 8191
"""Tokens of one text, where the model's own number is not known."""


class ApiEmbedder:
    """Embeds texts by an API, such as `openai/text-embedding-3-small`. Threads may share it.

    What it costs is counted in `usage`; it is no part of a run's budget. A text beyond the model's window is cut.

    Args:
        model: `openai/NAME`, a name in LiteLLM's words, or an `EmbeddingModel`.

    Raises:
        InputError: no adapter knows the name, or it lacks a key; nothing was sent.
    """

    def __init__(self, model: str | EmbeddingModel) -> None:
        self._model = open_embeddings(model) if isinstance(model, str) else model
        self.name = self._model.name
        known = embedding_of(self.name)
        self.window = (known.window if known else None) or WINDOW
        """Tokens that are compared; the rest of a longer text plays no part."""
        self.price = known.price if known else None
        """US dollars per token; None where it is not known."""
        self.usage = Usage(dollars=0.0 if self.price is not None else None)
        """What all requests cost so far."""
        self._cache = VectorCache()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text; those that were embedded before are not sent again.

        Raises:
            ModelError: the API failed, retries included; the message says what to repair.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32)
        return cached(texts, self._cache, self._bought)

    def _bought(self, texts: list[str]) -> Vectors:
        import numpy as np

        found: list[list[float]] = []
        for batch in _batches([_cut(text, 3 * self.window) for text in texts]):
            try:
                found += self._ask(batch)
            except BadRequest:
                # No model has more tokens than bytes; most have a third, and those texts came through whole.
                shorter = [_cut(text, self.window) for text in batch]
                if shorter == batch:
                    raise
                found += self._ask(shorter)
        vectors = np.asarray(found, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)

    def _ask(self, texts: list[str]) -> list[list[float]]:
        from tenacity import Retrying, retry_if_exception, stop_after_attempt

        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=_wait,
            retry=retry_if_exception(lambda error: isinstance(error, ModelError) and error.retryable),
            reraise=True,
        )
        answer: Embedded = retrying(self._model.embed, texts)
        dollars = None if self.price is None else answer.tokens * self.price
        with self._lock:
            self.usage += Usage(calls=1, prompt_tokens=answer.tokens, dollars=dollars)
        return answer.vectors


def _wait(state: RetryCallState) -> float:
    """What the server asks for, up to a minute; else a random exponential time."""
    from tenacity import wait_random_exponential

    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, ModelError) else None
    return min(asked, 60.0) if asked is not None else wait_random_exponential(multiplier=0.5, max=20)(state)


def _cut(text: str, most: int) -> str:
    """At most so many bytes of a text; an empty one becomes a space, because APIs refuse empty texts."""
    content = text.encode("utf-8", "replace")
    return (text if len(content) <= most else content[:most].decode("utf-8", "ignore")) or " "


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode("utf-8", "replace"))
        if batch and (len(batch) == BATCH_TEXTS or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch
