"""JSON match: the JSON in the output equals the reference, whatever the order of its keys."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.rewards.reference import ReferenceReward
from agentmem.rewards.statement import readable


class JsonMatch(ReferenceReward):
    """1 where the one JSON value that the output states equals the reference, else 0.

    Objects are equal in any order of their keys, arrays in the same order, and `true` is not 1.
    Numbers may differ by `tolerance` (relative); by default integers must be equal, and others within 1e-9. With
    `metadata["subset"]` the output may have further keys. Broken JSON is a wrong answer.

    Example:
        >>> task = Task(id="t", input="?", answer='{"a": 1, "b": [2]}')
        >>> JsonMatch().compare(task, task.answer, 'Here: {"b": [2.0], "a": 1}').score
        1.0
    """

    def __init__(self, *, tolerance: float | None = None) -> None:
        self.name = "json"
        self.tolerance = tolerance

    def unscorable(self, task: Task) -> str:
        """Also a reference that is no JSON cannot be compared with."""
        if why := super().unscorable(task):
            return why
        return "" if _parsed(task.answer or "") else "the reference answer is no JSON"

    def compare(self, task: Task, answer: str, output: str) -> Reward:
        """Score the JSON that an output states."""
        expected = json.loads(answer)
        found = stated_json(readable(output))
        if not found:
            return self.wrong(answer, "no valid JSON")
        subset = bool(task.metadata.get("subset"))
        tolerance = task.metadata.get("tolerance", self.tolerance)
        why = [_difference(expected, value, "$", subset, tolerance) for value in found]
        if not any(why):
            return self.right(answer)
        if not all(why):
            return self.wrong(answer, "different JSON values at once")
        return self.wrong(answer, f"a difference: {why[-1]}")


def stated_json(text: str) -> list[Any]:
    """The JSON values in a text: the whole of it, else its fenced blocks, else the objects and arrays in it."""
    if whole := _parsed(text):
        return whole
    if blocks := [value for m in _FENCE.finditer(text) for value in _parsed(m.group(1))]:
        return blocks
    values, at, decoder = [], 0, json.JSONDecoder(parse_constant=_refuse)
    for _ in range(_TRIES):
        start = _OPENING.search(text, at)
        if not start:
            break
        try:
            value, at = decoder.raw_decode(text, start.start())
            values.append(value)
        except (ValueError, RecursionError):
            at = start.start() + 1
    return values


def _parsed(text: str) -> list[Any]:
    """The value of a text that is JSON as a whole, in a list; an empty list otherwise."""
    try:
        return [json.loads(text, parse_constant=_refuse)]
    except (ValueError, RecursionError):
        return []


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _difference(expected: Any, got: Any, place: str, subset: bool, tolerance: float | None) -> str:
    """Where the two values differ first; empty where they are equal."""
    match expected, got:
        case dict(), dict():
            if missing := [key for key in expected if key not in got]:
                return f"{place} has no {missing[0]!r}"
            if not subset and (extra := [key for key in got if key not in expected]):
                return f"{place} has an unexpected {str(extra[0])[:40]!r}"
            pairs = ((expected[key], got[key], f"{place}.{key}") for key in expected)
        case list(), list():
            if len(expected) != len(got):
                return f"{place} has {len(got)} items instead of {len(expected)}"
            pairs = ((e, g, f"{place}[{n}]") for n, (e, g) in enumerate(zip(expected, got, strict=True)))
        case (bool(), _) | (_, bool()):
            return "" if expected is got else f"{place} is {got!r:.40}"
        case (int() | float(), int() | float()):
            return "" if _close(expected, got, tolerance) else f"{place} is {got!r:.40}"
        case _:
            return "" if type(expected) is type(got) and expected == got else f"{place} is {got!r:.40}"
    return next((why for e, g, where in pairs if (why := _difference(e, g, where, subset, tolerance))), "")


def _close(a: float, b: float, tolerance: float | None) -> bool:
    if a == b or (tolerance is None and isinstance(a, int) and isinstance(b, int)):
        return a == b
    try:
        return math.isclose(a, b, rel_tol=1e-9 if tolerance is None else tolerance)
    except OverflowError:  # an integer beyond all floats
        return False


_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.S | re.I)
_OPENING = re.compile(r"[{\[]")
_TRIES = 200
"""Opening brackets at which a value is looked for, so that a page of brackets costs bounded time."""
