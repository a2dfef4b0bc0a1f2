"""Structured output: a reply that is a value of a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from agentmem.domain.trajectory import Message
from agentmem.errors import StructuredOutputError
from agentmem.models.handle import ModelHandle

T = TypeVar("T", bound=BaseModel)


async def structured(handle: ModelHandle, messages: Sequence[Message], schema: type[T]) -> T:
    """One reply as a value of `schema`."""
    reply = await handle.complete(messages, json_schema=schema.model_json_schema())
    try:
        return schema.model_validate_json(reply.text)
    except ValidationError as error:
        raise StructuredOutputError(str(error)) from None
