"""What goes when a library has grown too large: the same rule as for cases."""

from __future__ import annotations

from collections.abc import Sequence

from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.operation import Delete
from agentmem.domain.write_rules import Standing, WriteRules, weakest


def surplus(library: ExperienceLibrary, rules: WriteRules) -> tuple[Delete, ...]:
    """The evictions that the limits of a memory ask for: of each source first, and then of all.

    Example:
        >>> from agentmem.domain.operation import Add
        >>> library = ExperienceLibrary().apply([Add(text="Check units."), Add(text="Read twice.")])
        >>> [delete.id == library.experiences[0].id for delete in surplus(library, WriteRules(capacity=1))]
        [True]
    """
    gone: list[Delete] = []
    left = list(library)
    if rules.per_source is not None:
        for source in dict.fromkeys(e.provenance.source for e in left):
            held = [e for e in left if e.provenance.source == source]
            gone += _weakest(held, rules.per_source, f"its source has {rules.per_source}")
    left = [e for e in left if e.id not in {delete.id for delete in gone}]
    if rules.capacity is not None:
        gone += _weakest(left, rules.capacity, f"the library has {rules.capacity}")
    return tuple(gone)


def _weakest(held: Sequence[Experience], room: int, full: str) -> list[Delete]:
    standings = [
        Standing(
            experience.id,
            uses=experience.effect.exposures if experience.effect else 0,
            value=experience.effect.mean * experience.effect.exposures if experience.effect else 0.0,
            age=len(held) - place,
        )
        for place, experience in enumerate(held)
    ]
    surplus = max(0, len(held) - room)
    ids = weakest(standings, surplus, mean=0.0, memory=len(held))
    return [Delete(id=id, why=f"gave way: {full}") for id in ids]
