"""The chat-completions format: how a `Request` is written in it, and how a `Reply` is read from it.

Both remote adapters speak it. Everything here is plain dictionaries, so that nothing is validated twice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from agentmem.domain.media import Media
from agentmem.domain.trajectory import Message, ToolCall
from agentmem.domain.usage import Usage, bound_tokens
from agentmem.errors import MalformedReply
from agentmem.models.model import Reply, Request, TokenLogprob

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "other"]


def chat_messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """The messages of a request."""
    return [_chat_message(message) for message in messages]


def chat_tools(request: Request) -> list[dict[str, Any]]:
    """The tools of a request."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in request.tools
    ]


def chat_response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """The demand that the reply be JSON of this schema; strict where the schema allows it."""
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema, "strict": is_strict(schema)},
    }


def is_strict(schema: Any) -> bool:
    """Whether every object in a JSON Schema is closed and requires all its properties, as strict mode demands."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        names = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(names):
            return False
        return all(is_strict(part) for part in names.values()) and is_strict(schema.get("$defs"))
    return all(is_strict(part) for part in schema.values())


def read_reply(body: Any, request: Request) -> Reply:
    """The reply that a chat completion holds.

    Args:
        body: the decoded JSON of the response.
        request: what it answers. Where the server reports no usage, the upper bound of the tokens is charged, so
            that a budget holds: an unknown cost is never booked as 0.

    Raises:
        MalformedReply: there is no first choice with a message in it.
    """
    try:
        choice = body["choices"][0]
        message = choice["message"]
        calls = tuple(
            ToolCall(id=call.get("id") or f"call-{n}", name=clean(call["function"]["name"]), arguments=arguments)
            for n, call in enumerate(message.get("tool_calls") or ())
            if (arguments := _arguments(call["function"].get("arguments"))) is not None
        )
        text = _text(message.get("content"))
        refusal = message.get("refusal")
        return Reply(
            message=Message(role="assistant", content=text or clean(refusal or ""), tool_calls=calls),
            finish_reason="content_filter" if refusal else _finish_reason(choice.get("finish_reason"), calls),
            usage=_usage(body.get("usage"), request, text, calls),
            logprobs=_logprobs(choice.get("logprobs")),
            model=body.get("model") or "",
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise MalformedReply(
            f"The server's answer is no chat completion ({_what_is_wrong(body, error)}); if this goes on, check "
            f"that base_url names an OpenAI-compatible endpoint. It begins: {excerpt(body)}"
        ) from error


def clean(text: str) -> str:
    """The text without lone surrogates, which models now and then write and which no UTF-8 request can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def excerpt(body: Any, length: int = 120) -> str:
    """The beginning of what a server said, on one line."""
    text = body if isinstance(body, str) else json.dumps(body, default=str)
    line = " ".join(text.split())
    return repr(line if len(line) <= length else line[:length] + "...")


def _chat_message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "content": clean(message.content), "tool_call_id": message.tool_call_id}
    if message.media:
        text = [{"type": "text", "text": clean(message.content)}] if message.content else []
        return {"role": message.role, "content": [*text, *map(_part, message.media)]}
    if not message.tool_calls:
        return {"role": message.role, "content": clean(message.content)}
    return {
        "role": message.role,
        "content": clean(message.content) or None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _valid_json(call.arguments)},
            }
            for call in message.tool_calls
        ],
    }


def _part(media: Media) -> dict[str, Any]:
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": f"data:image/{media.format};base64,{media.data}"}}
    return {"type": "input_audio", "input_audio": {"data": media.data, "format": media.format}}


def _valid_json(arguments: str) -> str:
    # Servers parse the arguments of past calls and refuse the whole conversation where a model wrote broken JSON;
    # that would turn the model's own mistake, about which it was told, into a failed rollout.
    try:
        json.loads(arguments)
    except ValueError:
        return json.dumps({"invalid_json": arguments})
    return clean(arguments)


def _arguments(arguments: Any) -> str:
    if arguments is None or arguments == "":
        return "{}"
    return clean(arguments) if isinstance(arguments, str) else json.dumps(arguments)


def _text(content: Any) -> str:
    match content:
        case None:
            return ""
        case str():
            return clean(content)
        case list():  # parts: some servers put reasoning and text side by side
            return clean("".join(part.get("text") or "" for part in content if part.get("type") == "text"))
        case _:
            raise TypeError(f"content is a {type(content).__name__}")


def _finish_reason(reason: Any, calls: tuple[ToolCall, ...]) -> FinishReason:
    match reason:
        case "stop" | "length" | "tool_calls" | "content_filter":
            return "tool_calls" if calls and reason == "stop" else reason
        case "function_call":
            return "tool_calls"
        case _:
            return "other"


def _usage(usage: Any, request: Request, text: str, calls: tuple[ToolCall, ...]) -> Usage:
    if not isinstance(usage, Mapping) or usage.get("prompt_tokens") is None:
        written = bound_tokens(text) + sum(bound_tokens(call.name + call.arguments) for call in calls)
        return Usage(prompt_tokens=request.prompt_bound, completion_tokens=min(written, request.max_tokens))
    prompt, completion = int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0)
    # Some servers leave hidden reasoning out of completion_tokens and show it in the total alone; it is paid for.
    completion = max(completion, int(usage.get("total_tokens") or 0) - prompt)
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=min(int(cached), prompt))


def _logprobs(logprobs: Any) -> tuple[TokenLogprob, ...] | None:
    if not logprobs or not (content := logprobs.get("content")):
        return None
    # Minus infinity is legal in some servers' JSON, but in no stored value.
    return tuple(
        TokenLogprob(
            token=clean(part["token"]), logprob=value if math.isfinite(value := part["logprob"]) else -9999.0
        )
        for part in content
    )


def _what_is_wrong(body: Any, error: Exception) -> str:
    if not isinstance(body, Mapping):
        return f"a {type(body).__name__} where an object belongs"
    if "choices" not in body:
        return "it has no 'choices'"
    if not body["choices"]:
        return "its 'choices' are empty"
    return f"{type(error).__name__}: {excerpt(str(error), 80)}"
