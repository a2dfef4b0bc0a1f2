"""A frozen value: what all words of the domain are made of."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen record that is equal by content, refuses unknown fields and turns to and from JSON."""

    # Built at first use: whoever makes a Task and an Agent needs few of the words, and building all took as long as
    # importing pydantic does.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def fingerprint(content: Any, *, length: int = 16) -> str:
    """The SHA-256 of JSON-able content, independent of key order, as `length` hexadecimal digits.

    Example:
        >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
        True
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def encodable(text: str) -> str:
    """The text without half characters (lone surrogates, as in undecodable file names), which nothing can store."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"cannot fingerprint a {type(value).__name__}")
