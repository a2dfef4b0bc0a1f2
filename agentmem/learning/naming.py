"""What to say of a name that is not there: the nearest ones that are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from agentmem.domain.experience import Experience
from agentmem.errors import InputError
from agentmem.learning.diff import short, words


def near(name: str, known: Sequence[str]) -> str:
    """` Did you mean 'x'?`, or which there are.

    Example:
        >>> near("3.11", ["3.1", "3.2"]), near("9", ["3.1", "3.2"]), near("9", [])
        (" Did you mean '3.1'?", ' It has 3.1, 3.2.', ' It has none.')
    """
    if close := get_close_matches(name, known, n=1, cutoff=0.6):
        return f" Did you mean {close[0]!r}?"
    more = f" and {len(known) - 8} more" if len(known) > 8 else ""
    return f" It has {', '.join(known[:8]) or 'none'}{more}."


def no_such_experience(id: str, known: Iterable[Experience], where: str | Path) -> InputError:
    """The error that offers the experiences with a similar id."""
    by_id = {experience.id: experience for experience in known}
    close = get_close_matches(id, by_id, n=1, cutoff=0.6) or [i for i in by_id if i.startswith(id)][:1]
    if not close:
        return InputError(f"{where} has no experience {id!r}.{near(id, list(by_id))}")
    said = short(words(by_id[close[0]]), 50)
    return InputError(f"{where} has no experience {id!r}. Did you mean {close[0]!r} ({said})?")
