"""The handle on a model that agents and rewards are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from agentmem.domain.trajectory import Message
from agentmem.models.model import Reply


class ModelHandle(Protocol):
    """A model as agents and rewards see it; its calls are seen by journal and budget."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        json_schema: dict[str, Any] | None = None,
    ) -> Reply:
        """Answer one request."""
        ...
