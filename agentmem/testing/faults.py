"""What can go wrong on the wire, and a reproducible plan of which request it happens to."""

from __future__ import annotations

import json
import random
from email.utils import formatdate
from time import time
from typing import Literal, NamedTuple, get_args

from pydantic import Field

from agentmem.domain.seed import split_seed
from agentmem.domain.value import Value

Transient = Literal[
    "rate_limit",
    "rate_limit_date",
    "server_error",
    "overloaded",
    "html",
    "html_ok",
    "hang",
    "drop",
    "drop_midway",
    "short_body",
    "malformed_json",
    "truncated_json",
    "empty_choices",
]
"""Faults after which the same request may succeed."""
Permanent = Literal["bad_request", "unauthorized", "forbidden", "not_found", "quota"]
"""Faults that trying again does not cure."""
Kind = Transient | Permanent

TRANSIENT: tuple[Kind, ...] = get_args(Transient)
PERMANENT: tuple[Kind, ...] = get_args(Permanent)


class Faults(Value):
    """Which requests fail, how, and how often. The plan depends on a request's content and `seed` alone.

    A retry has the same content, so it is the same request: a faulted one fails at most `per_request_cap` times,
    and is answered after that.

    Example:
        >>> plan = Faults(share=1.0, kinds=("server_error",), per_request_cap=2)
        >>> plan.of("some request") == plan.of("some request")
        True
    """

    share: float = Field(default=0.3, ge=0, le=1)
    """Share of the distinct requests that fail at least once."""
    kinds: tuple[Kind, ...] = TRANSIENT
    """What happens to them, drawn evenly."""
    per_request_cap: int = Field(default=4, ge=1)
    """Failures of one request at most."""
    always: bool = False
    """Every faulted request fails exactly `per_request_cap` times, instead of 1 to that many."""
    retry_after: float = Field(default=0.05, ge=0)
    """Seconds in the Retry-After header of 429 and 503; a date is rounded up to the next whole second."""
    seed: int = 0

    def of(self, key: str) -> tuple[Kind, ...]:
        """The failures of the request with this hash, in order, before it is answered."""
        draw = random.Random(split_seed(self.seed, "faults", key))
        if not self.kinds or draw.random() >= self.share:
            return ()
        count = self.per_request_cap if self.always else draw.randint(1, self.per_request_cap)
        return tuple(draw.choice(self.kinds) for _ in range(count))


class Wreck(NamedTuple):
    """A response gone wrong, as it goes on the wire."""

    status: int
    body: bytes
    headers: dict[str, str]


def wreck(kind: Kind, *, whole: bytes, retry_after: float) -> Wreck:
    """The response of a fault that still is a whole HTTP response.

    Args:
        kind: the fault; not one of `hang`, `drop`, `drop_midway` and `short_body`, which are none.
        whole: the body that the response would have had.
        retry_after: seconds for the Retry-After header.
    """
    match kind:
        case "rate_limit":
            return _error(
                429, "Rate limit reached for requests", code="rate_limit_exceeded", wait=f"{retry_after:g}"
            )
        case "rate_limit_date":
            date = formatdate(int(time() + retry_after) + 1, usegmt=True)
            return _error(429, "Rate limit reached for requests", code="rate_limit_exceeded", wait=date)
        case "server_error":
            return _error(500, "The server had an error while processing your request", kind="server_error")
        case "overloaded":
            return _error(503, "The engine is currently overloaded", kind="server_error", wait=f"{retry_after:g}")
        case "html":
            return Wreck(502, _HTML, {"Content-Type": "text/html"})
        case "html_ok":
            return Wreck(200, _HTML, {"Content-Type": "text/html"})
        case "malformed_json":
            return Wreck(200, b'{"id": "chatcmpl-1", "choices": [oops', _JSON)
        case "truncated_json":
            return Wreck(200, whole[: len(whole) * 2 // 3], _JSON)
        case "empty_choices":
            return Wreck(200, json.dumps({**json.loads(whole), "choices": []}).encode(), _JSON)
        case "bad_request":
            return _error(400, "This model's maximum context length is exceeded", code="context_length_exceeded")
        case "unauthorized":
            return _error(401, "Incorrect API key provided", code="invalid_api_key")
        case "forbidden":
            return _error(403, "Project does not have access to this model", code="model_not_found")
        case "not_found":
            return _error(404, "The model does not exist or you do not have access to it", code="model_not_found")
        case "quota":
            return _error(
                429, "You exceeded your current quota", kind="insufficient_quota", code="insufficient_quota"
            )
        case _:
            raise ValueError(f"{kind!r} is no whole HTTP response")


def error_body(message: str, *, kind: str = "invalid_request_error", code: str | None = None) -> bytes:
    """An error in OpenAI's shape."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


_JSON = {"Content-Type": "application/json"}
_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"


def _error(
    status: int, message: str, *, kind: str = "invalid_request_error", code: str | None = None, wait: str = ""
) -> Wreck:
    headers = {**_JSON, "Retry-After": wait} if wait else _JSON
    return Wreck(status, error_body(message, kind=kind, code=code), headers)
