"""OpenAI and every server that speaks its chat-completions protocol, through the openai SDK."""

from __future__ import annotations

import json
import os
import re
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentmem.errors import InputError, MalformedReply, ModelError, ModelTimeout, ModelUnavailable
from agentmem.models.chat_format import chat_messages, chat_response_format, chat_tools, excerpt, read_reply
from agentmem.models.http_errors import Endpoint, embedded_error, status_error
from agentmem.models.model import Reply, Request

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from openai import AsyncOpenAI

KEY = "OPENAI_API_KEY"
_OPENAI_URL = "https://api.openai.com/v1"
_REASONING = re.compile(r"(o1|o3|o4|gpt-5)(?!.*-chat)")
_NO_SCHEMA = re.compile(r"gpt-3|gpt-4(-|$)|gpt-4o-2024-05|o1-(mini|preview)|chatgpt|ft:gpt-3")


class OpenAIModel:
    """A model behind the chat-completions protocol. It neither retries, counts nor prices.

    Args:
        model: the name that the server knows, such as `gpt-4.1-mini`.
        base_url: a compatible server's address, usually ending in `/v1`; by default `OPENAI_BASE_URL`, else
            OpenAI's own.
        api_key: by default `OPENAI_API_KEY`; a server of your own needs none.
        client: an `AsyncOpenAI` to use instead (or `AsyncAzureOpenAI`, or one with an HTTP client of your own);
            it stays yours to close, and belongs to one event loop.
        timeout: seconds without a sign of life after which a request counts as lost.
        supports_schema: whether the server takes a JSON Schema for the reply; by default known for OpenAI's own
            models and assumed not for other servers.

    Raises:
        InputError: there is no key, or the address or key cannot be one.

    Example:
        >>> OpenAIModel("my-model", base_url="http://localhost:8000/v1").name
        'openai/my-model'
    """

    parallel: int | None = None
    """Only the server knows."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: AsyncOpenAI | None = None,
        timeout: float = 600.0,
        supports_schema: bool | None = None,
    ) -> None:
        self.model = model
        self.name = f"openai/{model}"
        self.base_url = (
            str(client.base_url).rstrip("/")
            if client
            else _checked_url(base_url or os.environ.get("OPENAI_BASE_URL"))
        )
        self.timeout = timeout
        self._given = client.with_options(max_retries=0) if client else None
        self._key = "" if client else _key_for(self.name, self.base_url, api_key)
        self._own_key = api_key is not None
        # An httpx connection lives on the event loop that opened it, and each call of the sync API runs its own.
        self._clients: dict[AbstractEventLoop, AsyncOpenAI] = {}
        # Only OpenAI itself is known to want the reasoning models' dialect; other servers may serve any model
        # under any name.
        at_openai = _is_openai(self.base_url)
        self._reasoning = at_openai and _REASONING.match(model.removeprefix("ft:")) is not None
        self.supports_schema = (
            supports_schema if supports_schema is not None else at_openai and not _NO_SCHEMA.match(model)
        )
        """Whether a request's `json_schema` is sent; where not, it is left out."""

    @classmethod
    def from_name(cls, name: str, *, base_url: str | None = None, api_key: str | None = None) -> OpenAIModel:
        """The model `openai/NAME`."""
        return cls(name.removeprefix("openai/"), base_url=base_url, api_key=api_key)

    async def prepare(self) -> None:
        """Import the SDK, which takes about a second."""
        import asyncio

        await asyncio.to_thread(import_module, "openai")

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one HTTP request.

        Raises:
            ModelError: it failed; the error's class says whether to try again, its message what to repair.
        """
        import httpx
        import openai

        client = self._given or self._clients.get(_loop()) or self._open()
        try:
            # The SDK's typed method costs five times as much CPU as its own generic one, which sends the same
            # request: it walks over all messages and builds a typed object of the answer, only to be read once.
            response = await client.post("/chat/completions", cast_to=httpx.Response, body=self.params(request))
        except openai.APIStatusError as error:
            raise self._status_error(error) from error
        except openai.APITimeoutError as error:
            raise ModelTimeout(
                f"{self.base_url} gave no answer for {self.name} in {self.timeout:g} s; try again, or raise the "
                "timeout."
            ) from error
        except openai.OpenAIError as error:
            raise ModelUnavailable(
                f"The connection to {self.base_url} for {self.name} failed ({_root(error)}); if this goes on, "
                "check base_url and the network."
            ) from error
        try:
            body = json.loads(response.content)
        except ValueError as error:
            raise MalformedReply(
                f"{self.base_url} answered {self.name} with no valid JSON; if this goes on, check base_url (it "
                f"usually ends in /v1). The answer begins: {excerpt(response.text)}"
            ) from error
        if refused := embedded_error(body, endpoint=self._endpoint):
            raise refused
        reply = read_reply(body, request)
        return self._cut_at_stop(reply, request) if self._reasoning and request.stop else reply

    def params(self, request: Request) -> dict[str, Any]:
        """The body of the HTTP request, in this model's dialect."""
        params: dict[str, Any] = {"model": self.model, "messages": chat_messages(request.messages)}
        if self._reasoning:
            # Reasoning models refuse temperature, top_p, logprobs and stop.
            params["max_completion_tokens"] = request.max_tokens
        else:
            params["max_tokens"] = request.max_tokens
            # Always sent: some servers have other defaults than 1.
            params["temperature"] = request.temperature
            params["top_p"] = request.top_p
            if request.stop:
                params["stop"] = list(request.stop)
            if request.logprobs:
                params["logprobs"] = True
        if request.tools:
            params["tools"] = chat_tools(request)
        if request.seed is not None:
            params["seed"] = request.seed
        if request.json_schema is not None and self.supports_schema:
            params["response_format"] = chat_response_format(request.json_schema)
        return params

    async def close(self) -> None:
        """Close this event loop's connections; the model can be used again afterwards."""
        if client := self._clients.pop(_loop(), None):
            await client.close()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.model!r}, base_url={self.base_url!r})"

    @cached_property
    def _endpoint(self) -> Endpoint:
        return Endpoint(self.name, self.base_url, "api_key" if self._own_key else KEY)

    def _open(self) -> AsyncOpenAI:
        import httpx
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        timeout = httpx.Timeout(self.timeout, connect=min(15.0, self.timeout))
        client = AsyncOpenAI(
            api_key=self._key,
            base_url=self.base_url,
            max_retries=0,  # the gateway retries, and it alone
            timeout=timeout,
            # The one that the SDK makes for itself tries, when it is collected, to close the connections of a loop
            # that is gone, and fails with a traceback.
            http_client=DefaultAsyncHttpxClient(timeout=timeout),
        )
        self._clients = {loop: old for loop, old in self._clients.items() if not loop.is_closed()}
        self._clients[_loop()] = client
        return client

    def _status_error(self, error: Any) -> ModelError:
        body = error.body
        detail = body.get("message") or body if isinstance(body, dict) else body or error.response.text
        return status_error(
            error.status_code,
            detail,
            endpoint=self._endpoint,
            headers=error.response.headers,
            code=f"{error.code or ''} {error.type or ''}",
        )

    def _cut_at_stop(self, reply: Reply, request: Request) -> Reply:
        places = [place for stop in request.stop if (place := reply.text.find(stop)) >= 0]
        if not places:
            return reply
        message = reply.message.model_copy(update={"content": reply.text[: min(places)]})
        return reply.model_copy(update={"message": message})


def _checked_url(url: str | None) -> str:
    url = (url or _OPENAI_URL).strip()
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InputError(f"base_url {url!r} is no address; write it in full, such as 'http://localhost:8000/v1'.")
    return url


def _key_for(name: str, base_url: str, given: str | None) -> str:
    key = (given if given is not None else os.environ.get(KEY, "")).strip()
    if not key.isascii() or not key.isprintable():
        raise InputError(f"The key for {name} holds characters that no key has; copy it again into {KEY}.")
    if key:
        return key
    if _is_openai(base_url):
        raise InputError(
            f"There is no key for {name}: set {KEY}, or give base_url of a server of your own, or use a model "
            "that needs no key, such as 'local/smollm2'."
        )
    return "none"  # the SDK insists on one, and a server that wants none ignores it


def _is_openai(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host.endswith(("api.openai.com", ".openai.azure.com"))


def _root(error: BaseException) -> str:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return f"{type(error).__name__}: {excerpt(str(error))}" if str(error) else type(error).__name__


def _loop() -> AbstractEventLoop:
    import asyncio  # at use, as everything that is not needed to make an agent

    return asyncio.get_running_loop()
