"""Chat completions as a server sees them: the request that came in, and the answer that goes out."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentmem.domain.seed import split_seed
from agentmem.domain.trajectory import Message, ToolCall
from agentmem.domain.usage import Usage
from agentmem.domain.value import Value
from agentmem.models.model import Reply, Request, ToolSpec
from agentmem.testing.scripted import count_words, words_in


@dataclass(frozen=True)
class ChatRequest:
    """One request as the server received it."""

    body: dict[str, Any]
    """The decoded JSON."""
    hash: str
    """Equal for requests with the same content; a retry has the hash of what it repeats."""
    occurrence: int
    """How many requests with this hash came before it."""
    seed: int = 0
    """The server's seed."""

    def rng(self, name: str) -> random.Random:
        """Draws that depend on the seed, the content, the occurrence and `name` alone, never on timing."""
        return random.Random(split_seed(self.seed, name, self.hash, self.occurrence))

    @cached_property
    def request(self) -> Request:
        """The request in the library's own words."""
        return read_request(self.body)

    @property
    def last_user(self) -> str:
        """What the user said last."""
        return next((m.content for m in reversed(self.request.messages) if m.role == "user"), "")


class ChatAnswer(Value):
    """One answer; what is left out is filled in."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[tuple[str, float], ...] | None = None
    """Tokens with their log-probabilities (nats)."""
    usage: Usage | None = None
    """By default the words of the messages."""
    reasoning_tokens: int = 0
    """The part of the completion tokens that was hidden reasoning."""
    finish_reason: str | None = None
    """By default `tool_calls` where there are any, else `stop`."""

    @classmethod
    def of(cls, answer: str | ChatAnswer | Message | Reply) -> ChatAnswer:
        """Whatever a script returns, as an answer."""
        match answer:
            case ChatAnswer():
                return answer
            case str():
                return cls(text=answer)
            case Message():
                return cls(text=answer.content, tool_calls=answer.tool_calls)
            case Reply():
                return cls(
                    text=answer.text,
                    tool_calls=answer.message.tool_calls,
                    logprobs=tuple((t.token, t.logprob) for t in answer.logprobs) if answer.logprobs else None,
                    usage=answer.usage,
                    finish_reason=answer.finish_reason,
                )
        raise TypeError(f"a script returns str, ChatAnswer, Message or Reply, not {type(answer).__name__}")


def read_request(body: dict[str, Any]) -> Request:
    """A chat-completions body in the library's own words."""
    choice = body.get("response_format") or {}
    return Request(
        messages=tuple(_read_message(message) for message in body["messages"]),
        tools=tuple(
            ToolSpec(
                name=tool["function"]["name"],
                description=tool["function"].get("description", ""),
                parameters=tool["function"].get("parameters", {}),
            )
            for tool in body.get("tools") or ()
        ),
        temperature=body.get("temperature", 1.0),
        top_p=body.get("top_p", 1.0),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens") or 2048,
        stop=(body["stop"],) if isinstance(body.get("stop"), str) else tuple(body.get("stop") or ()),
        seed=body.get("seed"),
        logprobs=bool(body.get("logprobs")),
        json_schema=choice["json_schema"]["schema"] if choice.get("type") == "json_schema" else None,
    )


def completion(chat: ChatRequest, answer: ChatAnswer) -> dict[str, Any]:
    """The body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.tool_calls
        ]
    else:
        message["content"] = answer.text
    usage = answer.usage or count_words(
        chat.request, Message(role="assistant", content=answer.text, tool_calls=answer.tool_calls)
    )
    tokens = answer.logprobs
    if tokens is None and chat.body.get("logprobs"):
        tokens = tuple((word, -0.5) for word in words_in(answer.text))
    return {
        "id": f"chatcmpl-{chat.hash}-{chat.occurrence}",
        "object": "chat.completion",
        "created": 0,
        "model": chat.body.get("model", "scripted"),
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": answer.finish_reason or ("tool_calls" if answer.tool_calls else "stop"),
                "logprobs": tokens
                and {
                    "content": [
                        {"token": token, "logprob": value, "bytes": None, "top_logprobs": []}
                        for token, value in tokens
                    ],
                    "refusal": None,
                },
            }
        ],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
        },
    }


def _read_message(message: dict[str, Any]) -> Message:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return Message(
        role="system" if message["role"] == "developer" else message["role"],
        content=content,
        tool_calls=tuple(
            ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ),
        tool_call_id=message.get("tool_call_id"),
    )
