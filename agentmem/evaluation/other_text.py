"""Texts that stand in for a memory: nothing at all, and advice about something else, as long as wanted."""

from __future__ import annotations

_NOTHING = (
    "This line is here to take up room and it tells the reader nothing that could be of use for the task at hand, "
    "so it may be passed over."
)
_HOUSEHOLD = (
    "Water a fern when the top of its soil is dry to the touch.",
    "Let bread cool on a rack before it is cut, or the crumb will tear.",
    "Oil a squeaking hinge at the pin and move the door a few times.",
    "Store onions in a dry and airy place, apart from potatoes.",
    "Wash wool in cold water and lay it flat to dry.",
    "Sharpen a kitchen knife at a low angle, the same on both sides.",
    "Sweep a chimney before the first fire of the winter.",
    "Paint with the grain of the wood, and sand lightly between coats.",
    "Turn a mattress in spring and in autumn, so that it wears evenly.",
    "Prune apple trees on a dry day, while they are without leaves.",
    "Soak beans overnight and pour the water away.",
    "Hang a picture from two hooks, and it will stay level.",
)


def filler(text: str, place: int) -> str:
    """Words without a message, about as many tokens as the text has.

    Example:
        >>> filler("Check the units first.", 0)
        'This line is here to take'
    """
    return _as_long(_NOTHING.split(), text)


def unrelated(text: str, place: int) -> str:
    """Household advice, about as many tokens as the text has; another piece for each place."""
    start = place % len(_HOUSEHOLD)
    ordered = (*_HOUSEHOLD[start:], *_HOUSEHOLD[:start])
    return _as_long(" ".join(ordered).split(), text)


def _as_long(words: list[str], text: str) -> str:
    """So many of the words, again and again, that they are as long as the text in bytes."""
    size = len(text.encode("utf-8", "surrogatepass"))
    made: list[str] = []
    length = 0
    while words and length < size:
        word = words[len(made) % len(words)]
        made.append(word)
        length += len(word.encode()) + 1
    return " ".join(made)
