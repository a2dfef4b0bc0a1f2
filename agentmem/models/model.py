"""The `Model` protocol: one request in, one reply out."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, Protocol, runtime_checkable

from agentmem.domain.trajectory import Message
from agentmem.domain.usage import Usage, bound_tokens
from agentmem.domain.value import Value


class ToolSpec(Value):
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments object."""


class Request(Value):
    """One chat completion."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 2048
    """Tokens that the reply may have, hidden reasoning included."""
    stop: tuple[str, ...] = ()
    seed: int | None = None
    logprobs: bool = False
    json_schema: dict[str, Any] | None = None
    """The reply must be JSON of this schema, where the model can promise that."""

    @property
    def fingerprint(self) -> str:
        """Verifies that a stored reply answers this request."""
        return hashlib.sha256(self.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def prompt_bound(self) -> int:
        """At most how many tokens the prompt has: one a byte, those of pictures, 16 around each message."""
        tools = sum(bound_tokens(tool.model_dump_json()) + 32 for tool in self.tools)
        schema = bound_tokens(str(self.json_schema)) if self.json_schema else 0
        calls = sum(bound_tokens(c.name + c.arguments) + 16 for m in self.messages for c in m.tool_calls)
        media = sum(media.tokens for m in self.messages for media in m.media)
        return 64 + tools + schema + calls + media + sum(bound_tokens(m.content) + 16 for m in self.messages)


class TokenLogprob(Value):
    """The log-probability (nats) of one sampled token."""

    token: str
    logprob: float


class Reply(Value):
    """One completion."""

    message: Message
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter", "other"] = "stop"
    usage: Usage = Usage()
    """Without `calls` and `dollars`: the gateway adds them."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    model: str = ""
    """The exact model that answered, in the server's words."""

    @property
    def text(self) -> str:
        """The reply's text."""
        return self.message.content


@runtime_checkable
class Model(Protocol):
    """A language model.

    Adapters translate; they neither retry, count nor price. `complete` raises `ModelError` and nothing else.
    """

    @property
    def name(self) -> str:
        """The name under which it was asked for, such as `openai/gpt-4.1-mini`."""
        ...

    @property
    def parallel(self) -> int | None:
        """Requests that it can usefully take at once; None where only the server knows."""
        ...

    async def prepare(self) -> None:
        """Load what the first request needs (an SDK, weights); called before it, outside of any time limit."""
        ...

    async def complete(self, request: Request) -> Reply:
        """Answer one request."""
        ...

    async def close(self) -> None:
        """Give back what belongs to the running event loop, such as connections; it may be used again."""
        ...
