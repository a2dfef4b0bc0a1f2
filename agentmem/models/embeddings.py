"""Embeddings from an API: OpenAI and servers that speak its protocol, or any provider that LiteLLM knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from agentmem.errors import InputError, MalformedReply, ModelTimeout, ModelUnavailable
from agentmem.models.chat_format import excerpt
from agentmem.models.http_errors import embedded_error
from agentmem.models.litellm import LiteLLMModel, _litellm
from agentmem.models.openai import OpenAIModel
from agentmem.models.prices import known_providers

TIMEOUT = 60.0
"""Seconds that one request may take."""


class Embedded(NamedTuple):
    """What one request gave."""

    vectors: list[list[float]]
    tokens: int
    """As the server counted them; 0 where it does not say."""


class EmbeddingModel(Protocol):
    """Turns texts into vectors at a server. Like a `Model`, it neither retries, counts nor prices."""

    name: str

    def embed(self, texts: Sequence[str]) -> Embedded:
        """One vector a text, by one HTTP request; it blocks.

        Raises:
            ModelError: it failed; the error's class says whether to try again, its message what to repair.
        """
        ...


def open_embeddings(name: str) -> EmbeddingModel:
    """The embedding model of this name: `openai/NAME`, or a name in LiteLLM's words such as `cohere/NAME`.

    Raises:
        InputError: no adapter knows the name, or it lacks a key; nothing was sent.
    """
    prefix, _, rest = name.partition("/")
    if rest.strip() and prefix == "openai":
        return OpenAIEmbeddings(rest)
    if rest.strip() and prefix in known_providers():
        return LiteLLMEmbeddings(name)
    raise InputError(
        f"No embedder named {name!r}. Known: minilm, openai/... such as openai/text-embedding-3-small, or a provider "
        "of LiteLLM such as cohere/embed-v4.0; or pass an object with `name` and `embed`."
    )


class OpenAIEmbeddings:
    """`POST /embeddings` of OpenAI or of a compatible server (`OPENAI_BASE_URL`)."""

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None) -> None:
        # The chat adapter beside this one knows where the server is, which key it wants, and what failures mean.
        self._chat = OpenAIModel(model, base_url=base_url, api_key=api_key, timeout=TIMEOUT)
        self.name = self._chat.name

    def embed(self, texts: Sequence[str]) -> Embedded:
        """One vector a text, by one HTTP request."""
        import httpx
        import openai

        server = self._chat.base_url
        body = {"model": self._chat.model, "input": list(texts), "encoding_format": "float"}
        try:
            with openai.OpenAI(api_key=self._chat._key, base_url=server, max_retries=0, timeout=TIMEOUT) as client:
                response = client.post("/embeddings", cast_to=httpx.Response, body=body)
        except openai.APIStatusError as error:
            raise self._chat._status_error(error) from error
        except openai.APITimeoutError as error:
            raise ModelTimeout(
                f"{server} gave no embeddings of {self.name} in {TIMEOUT:g} s; try again."
            ) from error
        except openai.OpenAIError as error:
            raise ModelUnavailable(
                f"The connection to {server} for {self.name} failed ({type(error.__cause__ or error).__name__}); if "
                "this goes on, check OPENAI_BASE_URL and the network."
            ) from error
        try:
            answer = json.loads(response.content)
        except ValueError as error:
            raise MalformedReply(
                f"{server} answered {self.name} with no valid JSON; if this goes on, check OPENAI_BASE_URL (it usually "
                f"ends in /v1). The answer begins: {excerpt(response.text)}"
            ) from error
        if refused := embedded_error(answer, endpoint=self._chat._endpoint):
            raise refused
        return _read(answer, self.name, server, len(texts))


class LiteLLMEmbeddings:
    """The embeddings of any provider that LiteLLM knows; it is imported at the first request."""

    def __init__(self, name: str) -> None:
        self._chat = LiteLLMModel(name, timeout=TIMEOUT)
        self.name = name

    def embed(self, texts: Sequence[str]) -> Embedded:
        """One vector a text, by one HTTP request."""
        try:
            response = _litellm().embedding(
                model=self.name, input=list(texts), timeout=TIMEOUT, num_retries=0, max_retries=0
            )
            answer = response.model_dump()
        except Exception as error:
            raise self._chat._translated(error) from error
        return _read(answer, self.name, self.name.partition("/")[0], len(texts))


def _read(answer: Any, name: str, server: str, texts: int) -> Embedded:
    try:
        rows: dict[int, list[float]] = {
            int(row.get("index", place)): [float(number) for number in row["embedding"]]
            for place, row in enumerate(answer["data"])
        }
        vectors = [rows[place] for place in range(texts)]
        usage = answer.get("usage") or {}
        tokens = int(usage.get("prompt_tokens") or usage.get("total_tokens") or 0)
        if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
            raise ValueError("the vectors have different lengths")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MalformedReply(
            f"{server} answered {name} with no valid embeddings of {texts} texts ({type(error).__name__}: {error}); if "
            f"this goes on, check that {name} is an embedding model."
        ) from error
    return Embedded(vectors, tokens)
