"""What an HTTP status means for a model call: the typed error, with a sentence that names the repair."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from agentmem.errors import (
    AccessDenied,
    BadRequest,
    MalformedReply,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from agentmem.models.chat_format import excerpt

_NO_MONEY = ("insufficient_quota", "billing_hard_limit", "billing_not_active", "insufficient_balance")


class Endpoint(NamedTuple):
    """Who was asked, for the sentences."""

    model: str
    """The model's full name, such as `openai/gpt-4.1-mini`."""
    server: str
    """Its address, or the provider's name."""
    key: str
    """Where the key comes from, such as `OPENAI_API_KEY`."""


def status_error(
    status: int,
    detail: Any,
    *,
    endpoint: Endpoint,
    headers: Mapping[str, str] | None = None,
    code: str = "",
) -> ModelError:
    """The error that an HTTP status stands for.

    Args:
        status: the HTTP status.
        detail: what the server said, as text or decoded JSON.
        endpoint: who was asked.
        headers: the response's headers, in lower case or case-insensitive.
        code: the `code` and `type` of the server's own error object.
    """
    model, server, key = endpoint
    said = f"the server said {excerpt(detail, 300)}"
    wait = retry_after(headers or {})
    if status == 402 or (status in (403, 429) and any(word in f"{code} {detail}" for word in _NO_MONEY)):
        return QuotaExhausted(
            f"No quota is left for {model} at {server}: add credit or raise the limit there, or use another key "
            f"({key}); {said}."
        )
    match status:
        case 401:
            return AccessDenied(
                f"{server} does not accept the key for {model} (401): set {key} to a valid key; {said}."
            )
        case 403:
            return AccessDenied(
                f"The key in {key} may not use {model} at {server} (403): enable the model for it or use another "
                f"key; {said}."
            )
        case 404:
            return AccessDenied(
                f"There is no {model} at {server} (404): check the model's name, and base_url if you set one; "
                f"{said}."
            )
        case 429:
            return RateLimited(
                f"{server} asks to be called less often (429) for {model}; {said}.", retry_after=wait
            )
        case 408 | 504:
            return ModelTimeout(f"{server} gave up waiting for {model} ({status}); {said}.", retry_after=wait)
        case _ if status >= 500 or status in (409, 425):
            return ModelUnavailable(f"{server} failed ({status}) on {model}; {said}.", retry_after=wait)
        case _ if status >= 400:
            return BadRequest(f"{server} refuses this request to {model} ({status}): {excerpt(detail, 300)}.")
        case _:
            return MalformedReply(f"{server} answered {model} with status {status} and no completion; {said}.")


def embedded_error(body: Any, *, endpoint: Endpoint) -> ModelError | None:
    """The error that some gateways put into a response of status 200, if it is one."""
    if not isinstance(body, Mapping) or not body.get("error") or body.get("choices"):
        return None
    error = body["error"]
    code = error.get("code") if isinstance(error, Mapping) else None
    detail = error.get("message", error) if isinstance(error, Mapping) else error
    if isinstance(code, int) and 400 <= code < 600:
        return status_error(code, detail, endpoint=endpoint)
    return MalformedReply(f"{endpoint.server} answered {endpoint.model} with an error in place of a completion: "
                          f"{excerpt(detail, 300)}.")  # fmt: skip


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until a server wants to be called again: `retry-after-ms`, or `retry-after` as seconds or date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        if (value := headers.get(name)) is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except ValueError:
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None
