r"""Numbers as people write them: `1,234.5`, `-3`, `2e5`, `50%`, `$7`, `3 1/2`, `\frac{1}{2}`, `forty-one`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Number:
    """One number in a text."""

    value: Decimal
    start: int
    end: int
    """It is `text[start:end]`."""
    percent: bool = False
    whole: bool = False
    """Whether it is written as a whole number."""


def numbers(text: str) -> list[Number]:
    """The numbers in a text, in order; dates, times, versions, ordinals and list marks are none.

    Number words are not looked at; see `in_digits`.

    Example:
        >>> [str(n.value) for n in numbers("1. It costs $1,234.50, or 3 1/2 times -2e2.")]
        ['1234.50', '3.5', '-2E+2']
    """
    text = _blanked(text)
    return [number for match in _NUMBER.finditer(text) if (number := _read(match, text))]


def in_digits(text: str) -> str:
    """The text with its number words as digits, unless it has digits: then `one` is no number.

    Example:
        >>> in_digits("Two plus three is five."), in_digits("The larger one is forty-one."), in_digits("one of 7")
        ('2 plus 3 is 5.', 'The larger one is 41.', 'one of 7')
    """
    if any(char.isdigit() for char in text):
        return text
    return _WORD_RUN.sub(_spelled, text)


def _blanked(text: str) -> str:
    """The text, as long as before: fractions of LaTeX made plain, what only looks like a number blanked."""

    def fill(shorter: str, length: int) -> str:
        return shorter.ljust(length)

    text = _LATEX_FRACTION.sub(lambda m: fill(f"{m[1]}{m[2]}/{m[3]}", len(m[0])), text)
    text = text.replace("−", "-").replace("\\$", " $").replace("\\%", "% ")
    if _LIST.search(text):
        text = _ITEM.sub(lambda m: " " * len(m[0]), text)
    return _NO_NUMBER.sub(lambda m: " " * len(m[0]), text)


def _read(match: re.Match[str], text: str) -> Number | None:
    sign, start = -1 if (match["sign"] or match["sign2"]) else 1, match.start()
    if match["sign"] and match["sign"].strip() == "-" and _BINARY.search(text[max(0, start - 3) : start]):
        sign = 1  # a minus between two numbers subtracts, or is the dash of a range
    digits = (match["whole"] or "0").translate(_SEPARATORS)
    value = Decimal(digits + (match["decimals"] or match["point"] or ""))
    if match["over"]:
        if not int(match["over"][:20]):
            return None
        part = value if match["units"] is None else Decimal(match["units"])
        value = part / Decimal(match["over"]) + (value if match["units"] is not None else 0)
    power = match["power"] or match["power10"]
    if power:
        value = value.scaleb(int(power))
    whole = not (match["decimals"] or match["point"] or match["over"] or power)
    return Number(sign * value, start, match.end(), percent=bool(match["percent"]), whole=whole)


def _spelled(run: re.Match[str]) -> str:
    """A run of number words in digits: `forty-one`, `two hundred and five`, `minus three`."""
    if run[0].lower() == "one" and not _ONE.search(run.string[max(0, run.start() - 20) : run.start()]):
        return run[0]
    total, part = 0, 0
    for word in re.split(r"[\s-]+", run["words"].lower()):
        if word == "hundred":
            part = max(part, 1) * 100
        elif word in ("thousand", "million"):
            total, part = total + max(part, 1) * (1000 if word == "thousand" else 1_000_000), 0
        else:
            part += _UNITS.get(word, 0)
    return ("-" if run["sign"] else "") + str(total + part)


_SMALL = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_UNITS = {word: n for n, word in enumerate(_SMALL)} | {word: 10 * n for n, word in enumerate(_TENS, start=2)}
_TEN, _UNIT = "|".join(_TENS), "|".join(sorted(_SMALL, key=len, reverse=True))
_BELOW_100 = rf"(?:(?:{_TEN})(?:[\s-](?:{'|'.join(_SMALL[1:10])})\b)?|(?:{_UNIT}))"
_WORD_RUN = re.compile(
    rf"\b(?P<sign>(?:minus|negative)\s+)?(?P<words>{_BELOW_100}\b(?:\s+(?:hundred|thousand|million)\b"
    rf"(?:\s+(?:and\s+)?{_BELOW_100}\b)?)*)",
    re.I,
)
_ONE = re.compile(r"(?:^|\b(?:is|equals|makes|plus|minus)|[:=])[\s*_\"']*$", re.I)

_SEPARATORS = str.maketrans("", "", ",\u00a0\u202f ")
_LATEX_FRACTION = re.compile(r"(\d*)\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}")
_LIST = re.compile(r"^[ \t]*1[.)][ \t]+\S", re.M)
_ITEM = re.compile(r"^[ \t]*\d{1,3}[.)](?=[ \t]+\S)", re.M)
_NO_NUMBER = re.compile(
    r"\b\d{1,4}[-/]\d{1,2}[-/]\d{1,4}\b"  # a date
    r"|\b\d{1,2}:\d{2}(?::\d{2})?\b"  # a time
    r"|\b\d+(?:\.\d+){2,}"  # a version
    r"|\b\d+(?:st|nd|rd|th)\b"  # an ordinal
    r"|\b(?:step|question|example|problem|part|option|number)[ \t]+\d{1,2}(?=[:.)])"
    r"|\b(?!(?:USD|EUR|GBP|Rs)\d)[A-Za-z]+_?\d[\w.]*",  # x2
    re.I | re.M,
)
_BINARY = re.compile(r"[\d)}%][ \t]*$")
_NUMBER = re.compile(
    r"(?P<sign>-[ \t]?|\b(?:minus|negative)[ \t]+)?"
    r"(?:[$€£¥]|\b(?:USD|EUR|GBP)[ \t])?[ \t]?(?P<sign2>(?<=[$€£¥])-)?"
    r"(?:(?P<whole>\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?!\d)|\d{1,400})(?P<decimals>\.\d{1,400})?"
    r"|(?P<point>\.\d{1,400}))"
    r"(?:(?:[ \t](?P<units>\d{1,9}))?[ \t]?/[ \t]?(?P<over>\d{1,20})(?![\d.]))?"
    r"(?:[eE](?P<power>[+-]?\d{1,3})(?![\w])"
    r"|[ \t]?(?:[x×*·]|\\times|\\cdot)[ \t]?10[ \t]?(?:\^|\*\*)[ \t]?\{?(?P<power10>[+-]?\d{1,3})\}?)?"
    r"(?P<percent>[ \t]?(?:%|per[ \t]?cent\b))?",
    re.I,
)
