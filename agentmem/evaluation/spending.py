"""What a run spent, by purpose: calls that failed and were tried again are in it, and named."""

from __future__ import annotations

from collections.abc import Iterable

from agentmem.domain.usage import Usage
from agentmem.domain.value import Value

_UNKNOWN = "('sent', 'cancelled', 'model_unavailable', 'model_timeout', 'malformed_reply')"
"""Outcomes after which only the server knows what a call cost; see `agentmem.models.gateway`."""
ROWS = (
    f"SELECT purpose, count(*), sum(outcome != 'ok'), sum(outcome IN {_UNKNOWN}),"
    " total(prompt_tokens), total(completion_tokens),"
    " total(CASE WHEN outcome != 'ok' THEN prompt_tokens + completion_tokens END),"
    " total(dollars), total(CASE WHEN outcome != 'ok' THEN dollars END), sum(dollars IS NULL), total(seconds)"
    " FROM attempts GROUP BY purpose ORDER BY min(id)"
)
"""Of a journal's attempts."""


class Spent(Value):
    """What the calls of one purpose cost.

    What a call that brought no answer cost, only the server knows. Under a budget in tokens or dollars it stands at the
    most that it may have cost, else at nothing; `unknown` says how many there are. A run that was gone on with says the
    same as one that was not.
    """

    purpose: str
    """`act`, `judge`, `confidence` ..."""
    calls: int = 0
    """HTTP attempts, all of them."""
    failed: int = 0
    """Those that brought no answer."""
    unknown: int = 0
    """Those of them whose cost only the server knows, in flight at a kill included."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failed_tokens: int = 0
    """The part of all tokens that stands for failed calls."""
    dollars: float | None = 0.0
    """None where any of it has no known price."""
    failed_dollars: float | None = 0.0
    """The part of all dollars that stands for failed calls."""
    seconds: float = 0.0
    """Seconds spent waiting, summed over calls."""

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def usage(self) -> Usage:
        """The same as a usage."""
        return Usage(
            calls=self.calls,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            dollars=self.dollars,
            seconds=self.seconds,
        )


def spending(rows: Iterable[tuple[object, ...]]) -> tuple[Spent, ...]:
    """What each purpose cost, in order of its first call.

    Args:
        rows: what `ROWS` finds in a journal.

    Example:
        >>> found = spending([("act", 3, 1, 1, 300.0, 20.0, 120.0, 0.5, 0.2, 0, 4.0)])
        >>> found[0].calls, found[0].failed, found[0].tokens, found[0].failed_tokens
        (3, 1, 320, 120)
    """
    found = []
    for (
        purpose,
        calls,
        failed,
        unknown,
        prompt,
        completion,
        lost,
        dollars,
        lost_dollars,
        unpriced,
        seconds,
    ) in rows:
        priced = not unpriced
        found.append(
            Spent.model_validate(
                {
                    "purpose": purpose,
                    "calls": calls,
                    "failed": failed,
                    "unknown": unknown,
                    "prompt_tokens": prompt,
                    "completion_tokens": completion,
                    "failed_tokens": lost,
                    "dollars": dollars if priced else None,
                    "failed_dollars": lost_dollars if priced else None,
                    "seconds": seconds,
                }
            )
        )
    return tuple(found)


def total(spent: Iterable[Spent]) -> Usage:
    """All purposes together."""
    return sum((one.usage for one in spent), Usage())


def merged(*parts: Iterable[Spent]) -> tuple[Spent, ...]:
    """Several runs' spending as one, by purpose."""
    sums: dict[str, Spent] = {}
    for one in (one for part in parts for one in part):
        before = sums.get(one.purpose)
        sums[one.purpose] = one if before is None else _added(before, one)
    return tuple(sums.values())


def _added(one: Spent, other: Spent) -> Spent:
    fields = {name: (getattr(one, name), getattr(other, name)) for name in Spent.model_fields if name != "purpose"}
    sums = {name: None if None in pair else pair[0] + pair[1] for name, pair in fields.items()}
    return Spent(purpose=one.purpose, **sums)
