"""Every provider that LiteLLM knows: `anthropic/...`, `gemini/...`, `bedrock/...` and about a hundred more."""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from agentmem.errors import AccessDenied, InputError, MalformedReply, ModelError, ModelTimeout, ModelUnavailable
from agentmem.models.chat_format import chat_messages, chat_response_format, chat_tools, excerpt, read_reply
from agentmem.models.http_errors import Endpoint, status_error
from agentmem.models.model import Reply, Request
from agentmem.models.prices import known_models, table_key


class LiteLLMModel:
    """A model reached through LiteLLM. It neither retries, counts nor prices.

    LiteLLM is imported at the first request, which takes some seconds; its price download, retries, callbacks and
    hints are off. Parameters that a provider does not have (a seed, log-probabilities) are left out by LiteLLM.

    Args:
        model: the full name in LiteLLM's words, such as `anthropic/claude-sonnet-4-5`.
        base_url: another address than the provider's own.
        api_key: by default the provider's environment variable, such as `ANTHROPIC_API_KEY`.
        timeout: seconds that one request may take.

    Example:
        >>> LiteLLMModel("anthropic/claude-sonnet-4-5").name
        'anthropic/claude-sonnet-4-5'
    """

    parallel: int | None = None
    """Only the server knows."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.name = model
        self.base_url = base_url
        self.timeout = timeout
        self._litellm: Any = None
        self._key = api_key.strip() if api_key else None
        if self._key and not (self._key.isascii() and self._key.isprintable()):
            raise InputError(f"The key for {model} holds characters that no key has; copy it again.")

    @classmethod
    def from_name(cls, name: str, *, base_url: str | None = None, api_key: str | None = None) -> LiteLLMModel:
        """The model that LiteLLM knows by this name."""
        return cls(name, base_url=base_url, api_key=api_key)

    @property
    def supports_schema(self) -> bool:
        """Whether the price table says that the model takes a JSON Schema for its reply."""
        key = table_key(self.name)
        return key is not None and known_models()[key].schema

    async def prepare(self) -> None:
        """Import LiteLLM, which takes some seconds."""
        if self._litellm is None:
            # In a thread, so that whatever else runs on the loop does not seem to hang.
            self._litellm = await asyncio.to_thread(_litellm)

    async def complete(self, request: Request) -> Reply:
        """Answer one request with one HTTP request.

        Raises:
            ModelError: it failed; the error's class says whether to try again, its message what to repair.
        """
        await self.prepare()
        try:
            response = await self._litellm.acompletion(**self.params(request))
            body = response.model_dump()
        except Exception as error:
            raise self._translated(error) from error
        return read_reply(body, request)

    def params(self, request: Request) -> dict[str, Any]:
        """The arguments of `litellm.acompletion`."""
        params: dict[str, Any] = {
            "model": self.name,
            "messages": chat_messages(request.messages),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "timeout": self.timeout,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
        }
        if request.top_p != 1.0:  # some providers refuse it beside a temperature
            params["top_p"] = request.top_p
        if request.stop:
            params["stop"] = list(request.stop)
        if request.seed is not None:
            params["seed"] = request.seed
        if request.logprobs:
            params["logprobs"] = True
        if request.tools:
            params["tools"] = chat_tools(request)
            # Else LiteLLM looks for MCP servers among the tools, for which it needs the package mcp.
            params["_skip_mcp_handler"] = True
        if request.json_schema is not None and self.supports_schema:
            params["response_format"] = chat_response_format(request.json_schema)
        if self.base_url is not None:
            params["api_base"] = self.base_url
        if self._key is not None:
            params["api_key"] = self._key
        return params

    async def close(self) -> None:
        """Let LiteLLM finish its book-keeping on this event loop; its shared connections it closes at exit."""
        if self._litellm is None:
            return
        # LiteLLM notes every success in a queue of the event loop, also where nobody listens, and complains aloud
        # when the next loop finds some of it left over.
        with suppress(ImportError, AttributeError, TimeoutError):
            from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

            await asyncio.sleep(0)
            await asyncio.wait_for(GLOBAL_LOGGING_WORKER.flush(), timeout=2.0)

    def __repr__(self) -> str:
        return f"LiteLLMModel({self.name!r})"

    def _translated(self, error: Exception) -> ModelError:
        """LiteLLM's exception as ours.

        It gives lost connections and broken JSON the status 500, and drops the server's error code; what really
        happened is in the chain of exceptions behind it.
        """
        import httpx
        import openai

        server = self.base_url or self.name.partition("/")[0]
        chain = list(_chain(error))
        if isinstance(error, openai.APITimeoutError):
            return ModelTimeout(
                f"{server} gave no answer for {self.name} in {self.timeout:g} s; try again, or raise the timeout."
            )
        if any(isinstance(cause, json.JSONDecodeError) for cause in chain) or "invalid response from LLM" in str(
            error
        ):
            return MalformedReply(
                f"{server} answered {self.name} with no valid completion; if this goes on, check base_url: "
                f"{excerpt(str(error), 300)}."
            )
        if isinstance(chain[-1], ImportError):
            return AccessDenied(
                f"LiteLLM needs another package for {self.name}: {excerpt(str(chain[-1]))}; install it with pip."
            )
        if any(isinstance(cause, openai.APIConnectionError | httpx.TransportError) for cause in chain[1:]):
            return ModelUnavailable(
                f"The connection to {server} for {self.name} failed ({type(chain[-1]).__name__}: "
                f"{excerpt(str(chain[-1]))}); if this goes on, check the network, and base_url if you set one."
            )
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            return ModelUnavailable(
                f"LiteLLM failed on {self.name}: {type(error).__name__}: {excerpt(str(error), 300)}."
            )
        key = "api_key" if self._key else _key_variable(self.name) if status in (401, 403) else "its key"
        said = str(getattr(error, "message", error))
        return status_error(
            status,
            said,
            endpoint=Endpoint(self.name, server, key),
            headers=getattr(error, "litellm_response_headers", None) or {},
            code=" ".join(str(cause) for cause in chain[1:]),
        )


@cache
def _litellm() -> Any:
    # Without these, the import and the first calls to Anthropic fetch tables from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    # From a TypedDict of the openai SDK that LiteLLM hands to pydantic; nothing that a user could act on.
    warnings.filterwarnings("ignore", message=r"Item '\w+' on TypedDict class .*`ReadOnly`", category=UserWarning)
    import litellm

    litellm.suppress_debug_info = True
    return litellm


def _key_variable(name: str) -> str:
    try:
        missing = _litellm().validate_environment(model=name)["missing_keys"]
    except Exception:  # LiteLLM raises whatever comes up; the variable's name is an extra
        missing = []
    return " and ".join(missing) or f"the key of {name.partition('/')[0]}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__
