"""Typed values out of a model: strict parse, repair, validation, one re-ask that shows the error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from agentmem.domain.trajectory import Message
from agentmem.errors import StructuredOutputError
from agentmem.models.model import Reply

T = TypeVar("T", bound=BaseModel)


class Completes(Protocol):
    """The part of a `ModelHandle` that is needed here."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        temperature: float | None = None,
        json_schema: dict[str, Any] | None = None,
    ) -> Reply:
        """Answer one conversation."""
        ...


async def structured(
    model: Completes,
    messages: Sequence[Message],
    schema: type[T],
    *,
    temperature: float | None = None,
    context: dict[str, Any] | None = None,
) -> T:
    """A value of type `schema`, as the model answered it.

    Args:
        model: the handle to ask with.
        messages: the conversation; it says in words what is wanted.
        schema: a pydantic class; its JSON Schema is sent along, for models that can promise it.
        temperature: by default the handle's.
        context: what the schema's validators are told (pydantic's validation context).

    Raises:
        StructuredOutputError: no valid value, also after the model was shown its error once.
    """
    asked = tuple(messages)
    json_schema = schema.model_json_schema()
    reply = await model.complete(asked, temperature=temperature, json_schema=json_schema)
    try:
        return parse(reply.text, schema, context=context)
    except ValueError as error:
        wanted = f"Answer again with nothing but JSON of this schema:\n{json.dumps(json_schema)}"
        complaint = f"That is not valid: {error}\n{wanted}"
    asked = (*asked, Message(role="assistant", content=reply.text), Message(role="user", content=complaint))
    again = await model.complete(asked, temperature=temperature, json_schema=json_schema)
    try:
        return parse(again.text, schema, context=context)
    except ValueError as error:
        raise StructuredOutputError(
            f"No valid {schema.__name__}, also after one re-ask: {error} The reply was {again.text[:200]!r}."
        ) from None


def parse(text: str, schema: type[T], *, context: dict[str, Any] | None = None) -> T:
    """The value in a reply: strict JSON first, then the JSON inside fences or prose, repaired.

    Raises:
        ValueError: there is none; the message says what is wrong, for the model to read.
    """
    stripped = text.strip()
    try:
        return schema.model_validate_json(stripped, context=context)
    except ValidationError as error:
        strict = _sentence(error)
    from json_repair import loads  # some 20 ms to import, and seldom needed

    opening = min((i for i in (stripped.find("{"), stripped.find("[")) if i >= 0), default=-1)
    if opening < 0:
        raise ValueError(f"no JSON in it ({strict})")
    repaired: Any = loads(stripped[opening:])
    # Repair may turn broken prose into another shape; only an object may stand for an object.
    if not isinstance(repaired, dict):
        raise ValueError(strict)
    try:
        return schema.model_validate(repaired, context=context)
    except ValidationError as error:
        raise ValueError(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    parts = [f"{'.'.join(map(str, e['loc'])) or 'the whole'}: {e['msg']}" for e in error.errors()[:3]]
    return "; ".join(parts) + "."
