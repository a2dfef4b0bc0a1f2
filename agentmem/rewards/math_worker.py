"""What the math reward's helper process runs: math-verify, without its own timers."""

from __future__ import annotations

import logging
from typing import Any

from math_verify import parse, verify

logging.disable(logging.ERROR)  # it warns that its timers are off; the worker's clock replaces them


def handle(payload: dict[str, Any]) -> dict[str, Any]:
    """Whether `output` means the same as `answer`, and what was read in both."""
    answer = _parse(payload["answer"])
    output = _parse(payload["output"])
    right = bool(answer and output) and verify(answer, output, timeout_seconds=None)
    return {"right": bool(right), "answer": bool(answer), "read": str(output[-1])[:200] if output else ""}


def _parse(text: str) -> list[Any]:
    parsed: list[Any] = parse(text, parsing_timeout=None)
    return parsed
