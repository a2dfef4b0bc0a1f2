"""What may be remembered, and what goes when there is too much: one set of rules for cases and for experiences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agentmem.domain.provenance import Provenance, Trust
from agentmem.domain.redaction import redact
from agentmem.domain.reward import Reward
from agentmem.domain.value import Value, encodable

MOST_CHARACTERS = 32_768
"""Of one remembered text; a longer one loses its middle."""
_EDGE = 20_000
"""Characters beyond a cut that are searched for secrets too: the longest of them."""
OPINIONS = frozenset({"", "judge", "agreement", "user"})
"""Rewards that verify nothing: without a name, a model's opinion, a vote, the word of whoever asked. Who wrote the text
may have swayed them."""


class Entry(Protocol):
    """What all that is remembered has in common."""

    @property
    def id(self) -> str:
        """Kept for life, never given again."""
        ...

    @property
    def trust(self) -> Trust:
        """Whether it may reach a prompt."""
        ...

    @property
    def gated(self) -> bool:
        """Whether a gated data set had a part in it."""
        ...

    @property
    def parents(self) -> tuple[str, ...]:
        """What went into it."""
        ...


@dataclass(frozen=True)
class WriteRules:
    """The limits of a memory.

    Args:
        merge_at: entries that say the same, of which the conditions are at least this similar, become one; None: only
            entries that are equal.
        capacity: entries at most; the weakest gives way. None: as many as there are.
        per_source: entries of one source at most; its weakest gives way, so that nobody can flood a memory.
    """

    merge_at: float | None = 0.97
    capacity: int | None = None
    per_source: int | None = None


@dataclass(frozen=True)
class Standing:
    """How an entry has done so far."""

    id: str
    uses: int
    value: float
    """Sum of what came of its uses."""
    age: int
    """Changes of the memory since it was written or last used."""


def admitted(trust: Trust, provenance: Provenance, *, reward: Reward | None = None) -> Trust:
    """Whether a new entry may reach a prompt: what rests on untrusted text may where its success was verified.

    Example:
        >>> admitted("trusted", Provenance(untrusted=True))
        'quarantined'
        >>> admitted("trusted", Provenance(untrusted=True), reward=Reward.of(1.0, source="exact"))
        'trusted'
    """
    if provenance.untrusted and not (reward is not None and verifies(reward)):
        return "quarantined"
    return trust


def verifies(reward: Reward) -> bool:
    """Whether a reward proves an entry right: a success, by something that words cannot sway."""
    return reward.score is not None and reward.score >= 0.5 and reward.source not in OPINIONS


def inherited(entries: Sequence[Entry]) -> tuple[Trust, bool]:
    """Trust and gatedness of what is made of these entries: one that is quarantined, or gated, makes the whole so."""
    trusted = all(entry.trust == "trusted" for entry in entries)
    return "trusted" if trusted else "quarantined", any(entry.gated for entry in entries)


def lineage(entries: Iterable[Entry]) -> tuple[str, ...]:
    """All that went into these entries, and they themselves, each once."""
    return tuple(dict.fromkeys(id for entry in entries for id in (*entry.parents, entry.id)))


def weakest(standings: Sequence[Standing], n: int, *, mean: float, memory: int) -> tuple[str, ...]:
    """The `n` entries that are missed least: those that helped least, and of these the oldest.

    Utility is the mean value of the uses over what is usual, with two usual uses added, so that one failure is no
    verdict. Something new or lately used has a bonus that halves with every turn-over of the memory.

    Args:
        standings: of all entries that may go.
        n: how many must go.
        mean: what a use is usually worth.
        memory: the number of entries; a change each is one turn-over.

    Example:
        >>> helped, failed = Standing("a", 5, 5.0, 100), Standing("b", 5, 0.0, 100)
        >>> weakest([helped, failed, Standing("new", 0, 0.0, 0)], 1, mean=0.5, memory=3)
        ('b',)
    """

    def worth(one: Standing) -> float:
        utility = (one.value - mean * one.uses) / (one.uses + 2)
        return float(utility + 0.25 * 0.5 ** (one.age / max(1, memory)))

    return tuple(one.id for one in sorted(standings, key=lambda one: (worth(one), -one.age, one.id))[:n])


def storable(text: str, *, what: str, limit: int = MOST_CHARACTERS) -> tuple[str, tuple[str, ...]]:
    """A text as it may be written to disk, and what was done to it, in words.

    Half characters become `?`, the middle of what is too long goes, and secrets are taken out.

    Example:
        >>> storable("x" * 50, what="The action", limit=20)[1]
        ('The action has 50 characters; the first 14 and the last 6 were kept (limit 20).',)
    """
    whole = encodable(text)
    notes = [f"{what} had half characters (lone surrogates); each became '?'."] if whole != text else []
    if len(whole) <= limit:
        kept, kinds = redact(whole)
    else:
        tail = limit // 3
        head = limit - tail
        # Redacted before it is cut, or half a secret would stay at the cut; but no pattern is run over 10 MB.
        first, kinds = redact(whole[: head + _EDGE])
        last, more = redact(whole[-tail - _EDGE :])
        kinds = tuple(dict.fromkeys(kinds + more))
        kept = f"{first[:head]}\n[… {len(whole) - limit:,} characters left out …]\n{last[-tail:]}"
        notes.append(
            f"{what} has {len(whole):,} characters; the first {head:,} and the last {tail:,} were kept"
            f" (limit {limit:,})."
        )
    return kept, (*notes, *(f"{what} held a secret ({kind}); it was taken out." for kind in kinds))


AnyValue = TypeVar("AnyValue", bound=Value)


def redacted(value: AnyValue) -> AnyValue:
    """A value, such as an operation on a library, without secrets in any of its texts; `why` says what was taken out.

    Example:
        >>> from agentmem.domain.operation import Add
        >>> redacted(Add(text="Use postgres://app:s3cr3t@db.")).text
        'Use postgres://app:[redacted: password in a URL]@db.'
    """
    kinds: list[str] = []

    def cleaned(part: object) -> object:
        match part:
            case str():
                text, found = redact(part)
                kinds.extend(found)
                return text
            case Value():
                fields = {name: getattr(part, name) for name in type(part).model_fields}
                new = {name: after for name, old in fields.items() if (after := cleaned(old)) is not old}
                return part.model_copy(update=new) if new else part
            case tuple():
                items = tuple(map(cleaned, part))
                return part if all(a is b for a, b in zip(items, part, strict=True)) else items
        return part

    result = cleaned(value)
    if not kinds:
        return value
    assert isinstance(result, type(value))
    why = getattr(result, "why", None)
    said = f"secrets were taken out: {', '.join(dict.fromkeys(kinds))}"
    return result if why is None else result.model_copy(update={"why": f"{why} ({said})" if why else said})
