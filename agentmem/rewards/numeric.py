"""Numeric match: the number that the output states last, however it is written, equals the reference."""

from __future__ import annotations

import re
from decimal import Decimal

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.rewards.number import Number, in_digits, numbers
from agentmem.rewards.reference import ReferenceReward, shortened
from agentmem.rewards.statement import explicit, readable, sentences


class Numeric(ReferenceReward):
    """1 where the output clearly states the reference number, else 0.

    Whole numbers must be equal, others within a millionth; `tolerance` or `metadata["tolerance"]` (in the answer's
    own unit) replaces both. A percentage counts as written and as a value: `50%` matches `50` and `0.5`. A range
    or a choice of several numbers states none.

    Example:
        >>> Numeric().compare(Task(id="t", input="?", answer="1234.5"), "1234.5", "That makes $1,234.50.").score
        1.0
    """

    def __init__(self, *, tolerance: float | None = None) -> None:
        self.name = "numeric"
        self.tolerance = tolerance

    def unscorable(self, task: Task) -> str:
        """Also a reference that is not one number cannot be compared with."""
        if why := super().unscorable(task):
            return why
        return "" if len(numbers(in_digits(task.answer or ""))) == 1 else "the reference answer is not one number"

    def compare(self, task: Task, answer: str, output: str) -> Reward:
        """Score the number that an output states."""
        stated = stated_number(output, task.input)
        if stated is None:
            return self.wrong(answer, "no clear number")
        tolerance = task.metadata.get("tolerance", self.tolerance)
        if _equal(numbers(in_digits(answer))[0], stated, tolerance):
            return self.right(answer)
        return self.wrong(answer, f"'{shortened(f'{stated.value:f}', length=40)}{'%' if stated.percent else ''}'")


def stated_number(output: str, question: str = "") -> Number | None:
    """The number that an output states as its answer; None where it states none, a range, or several.

    Args:
        output: what was said.
        question: what was asked; it decides whether `17 is smaller than 41` answers with 17 or with 41.

    Example:
        >>> [n and int(n.value) for n in map(stated_number, ("2 + 3 = 5", "The larger is 41.", "between 3 and 5"))]
        [5, 41, None]
    """
    text = in_digits(readable(output))
    side = _direction(question)
    if marked := explicit(text):
        return next((n for reading in marked[-1].readings if (n := _stated(reading, side))), None)
    asserted = [s for s in sentences(text) if numbers(s)]
    strong = next((n for sentence in reversed(asserted) if (n := _strongly_stated(sentence, side))), None)
    return strong or (_only(asserted[-1], brief=True) if asserted else None)


def _stated(text: str, side: int) -> Number | None:
    return _strongly_stated(text, side) or _only(text)


def _strongly_stated(text: str, side: int) -> Number | None:
    """What a sentence concludes, equates, says of its subject, or prefers in a comparison."""
    clauses = list(_CONCLUSION.finditer(text))
    if clauses and (concluded := _stated(text[clauses[-1].end() :], side)):
        return concluded
    if "=" in text:
        parts = [numbers(part) for part in text.split("=")]
        after = text.rpartition("=")[2]
        if parts[-1]:
            value = None if _is_vague(after, parts[-1][0]) else _first(after)
            return value or (parts[0][0] if len(parts[0]) == 1 else None)
        return parts[0][0] if len(parts[0]) == 1 else None
    found = numbers(text)[-50:]
    said = [n for n in found if _is_said(text, n, side) and not _is_vague(text, n)]
    return said[-1] if said else _compared(text, found, side)


def _first(text: str) -> Number | None:
    """The number right after an equals sign; None where an expression follows."""
    first = numbers(text)[0]
    return None if _OPERATOR.match(text[first.end :]) else first


def _is_said(text: str, number: Number, side: int) -> bool:
    """Whether a verb stands right before the number, without a doubt or a negation."""
    before = text[max(0, number.start - 160) : number.start]
    verb = _SAYS.search(before)
    if not verb or _OPERATOR.match(text[number.end :]):
        return False
    subject = re.split(r"[,;]\s", before[: verb.start()])[-1]
    if _BARE.fullmatch(subject):  # `50 is 83` says nothing
        return False
    return not _DENIES.search(before[: verb.end()]) and (not side or _direction(subject) in (0, side))


def _compared(text: str, found: list[Number], side: int) -> Number | None:
    """`41 is larger (than 17)`: the number that is what was asked for, where the sentence says so."""
    for n, number in enumerate(found):
        comparison = _COMPARES.match(text, number.end)
        if not comparison or _DENIES.search(comparison[0]):
            continue
        direction = _direction(comparison[0])
        if not direction or not side or direction == side:
            return number
        if comparison["than"] and len(found) == n + 2:
            return found[n + 1]
    return None


def _only(text: str, *, brief: bool = False) -> Number | None:
    """The number of a text that holds one, be it repeatedly; none where it is denied.

    Args:
        text: a sentence or a marked answer.
        brief: the text must say little else, or end with the number: who rambles about a number does not answer.
    """
    found = numbers(text)
    if len({(n.value, n.percent) for n in found}) != 1 or _DENIES.search(text[: found[0].start]):
        return None
    if _OPERATOR_AFTER.match(text[found[-1].end :]):
        return None
    rest = text[found[-1].end :].split()
    return (
        found[-1] if not brief or len(text.split()) <= 8 or (len(rest) <= 2 and len(text.split()) <= 25) else None
    )


def _is_vague(text: str, number: Number) -> bool:
    """Whether the number is one end of a range, or one of several on offer."""
    before, after = text[: number.start], text[number.end :]
    return bool(
        _RANGE_BEFORE.search(before) or _RANGE_AFTER.match(after) or re.search(r"\bbetween\s*$", before, re.I)
    )


def _direction(text: str) -> int:
    """1: asks or speaks of the larger, -1: of the smaller, 0: of neither or both."""
    return bool(_LARGER.search(text)) - bool(_SMALLER.search(text))


def _equal(expected: Number, stated: Number, tolerance: float | None) -> bool:
    pairs = [(expected.value, stated.value)]
    if expected.percent != stated.percent:
        pairs.append(
            (expected.value / 100, stated.value) if expected.percent else (expected.value, stated.value / 100)
        )
    return any(_close(a, b, tolerance, exact=expected.whole and stated.whole) for a, b in pairs)


def _close(a: Decimal, b: Decimal, tolerance: float | None, *, exact: bool) -> bool:
    if tolerance is not None:
        return abs(a - b) <= Decimal(str(tolerance))
    return a == b or (not exact and abs(a - b) <= Decimal("1e-6") * max(abs(a), abs(b)))


_LARGER = re.compile(r"\b(?:larg|bigg|great|high)(?:er|est)\b|\b(?:more|maximum|max|most)\b|>", re.I)
_SMALLER = re.compile(r"\b(?:small|low|few)(?:er|est)\b|\b(?:less|least|minimum|min)\b|<", re.I)
_CONCLUSION = re.compile(r"(?:^|[,;]\s*|\s)(?:so|therefore|thus|hence|altogether|in total)\b,?\s", re.I)
_SAYS = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals|has|have|had|makes?|gives?|gets?|leaves?|left|costs?|totals?|becomes?|yields?|"
    r"needs?)\b|[:→≈]|[-=]>)\s*"
    r"(?:(?:now|then|still|only|simply|just|exactly|about|around|approximately|roughly|nearly|equal to|a total of|"
    r"the number|that|the|to|at)\s+)*[\s*_\"'“`(\\$\[]*$",
    re.I,
)
_COMPARES = re.compile(
    r"[\s*_\"'”`)]*(?:(?:is|was)(?P<not>n['’]t|\s+not)?\s+(?:the\s+|a\s+)?(?:[a-z]+\s+){0,2}?"
    r"(?:larg|bigg|great|high|small|low|few)(?:er|est)\b|(?:is|was)\s+(?:more|less)\b|[<>])"
    r"(?P<than>(?:\s+(?:number|one|value))?\s+than\b|(?<=[<>]))?",
    re.I,
)
_DENIES = re.compile(
    r"\b(?:not|never|neither|nor|whether|if|unless|unsure|maybe|perhaps|isn|wrong|incorrect)\b|n['’]t\b", re.I
)
_OPERATOR = re.compile(
    r"\s*[*_]*\s*(?:[+×÷^/]|[-–]\s*\d|\*\s*\d|\\times|\\cdot|(?:plus|minus|times|divided by)\b)", re.I
)
_OPERATOR_AFTER = re.compile(r"\s*(?:[+×÷^/=<>]|-\s*(?:\d|$)|\*\s*\d|\\times|\\cdot)", re.I)
_BARE = re.compile(r"\W*\d+\W*")
_RANGE_BEFORE = re.compile(
    r"\d\s*[%°]?\s*(?:-|–|—|\bto\b|\bor\b|\bthrough\b)\s*[$€£]?\s*$|\bbetween\b[^.;]{0,40}\band\s*$", re.I
)
_RANGE_AFTER = re.compile(
    r"\s*[%°]?\s*(?:(?:-|–|—)\s*[$€£]?\d|\b(?:to|or|through)\b\s*[$€£]?-?\d|\s*,?\s*and\s+-?\d[\d.]*\b(?!\s+(?:is|are|was)\b))",
    re.I,
)
