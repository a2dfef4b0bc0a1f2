"""Undoing what was done to a library: one operation, or all since a version. Both are operations themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentmem.domain.experience import Experience, ExperienceLibrary, Revision
from agentmem.domain.operation import (
    Add,
    Delete,
    Keep,
    Merge,
    Modify,
    Operation,
    Promote,
    Quarantine,
    Restore,
    Unkeep,
)
from agentmem.domain.origin import Origin
from agentmem.domain.provenance import Trust
from agentmem.errors import InputError

WORDS = ("text", "when", "when_not", "turns")
"""The fields of an experience that say something."""


@dataclass(frozen=True)
class Applied:
    """One operation in a library's past, with the library right before and right after it."""

    operation: Operation
    before: ExperienceLibrary
    after: ExperienceLibrary
    name: str = ""
    """What people call it: `3.2` is the second operation of version 3."""
    order: tuple[str, ...] = ()
    """The ids of `before` and of what was retired by then, each in the place where it stood."""

    @property
    def created(self) -> str:
        """The id that an addition or a merge gave; empty where it gave none."""
        known = {e.id for e in (*self.before, *self.before.retired)}
        return next((e.id for e in self.after if e.id not in known), "")

    def touches(self, id: str) -> bool:
        """Whether it changed this experience, or was about it."""
        named = self.operation.ids if isinstance(self.operation, Keep | Unkeep | Merge) else ()
        return id in named or find(self.before, id) != find(self.after, id)


def one_by_one(
    library: ExperienceLibrary,
    operations: Iterable[Operation],
    *,
    version: int | None = None,
    order: Sequence[str] = (),
) -> list[Applied]:
    """Apply operations one after the other, and keep what each one did; what did nothing is left out.

    Args:
        library: what they are applied to.
        operations: in order.
        version: the version that they make together, for their names.
        order: what is known of the order up to here; see `standing`.
    """
    done: list[Applied] = []
    for operation in operations:
        order = standing(library, order)
        revision = library.revise([operation])
        if revision.library is not library:
            name = f"{library.version + 1 if version is None else version}.{len(done) + 1}"
            done.append(Applied(operation, library, revision.library, name, tuple(order)))
        library = revision.library
    return done


def standing(library: ExperienceLibrary, order: Sequence[str] = ()) -> tuple[str, ...]:
    """The ids of a library in their order, and those that are gone behind what they stood behind.

    Without it, two that were retired one after the other would change places when they come back the other way round.

    Args:
        library: its experiences decide where they are in it.
        order: what this gave for the version before; by default nothing is known of those that are gone.
    """
    ids = [e.id for e in library]
    used = set(ids)
    for place, id in enumerate(order):
        if id not in used:
            ids.insert(ids.index(order[place - 1]) + 1 if place else 0, id)
    return tuple(ids)


def find(library: ExperienceLibrary, id: str) -> tuple[Experience | None, bool]:
    """The experience of this id, and whether it is in use; a retired one is not."""
    for in_use, experiences in ((True, library.experiences), (False, library.retired)):
        for experience in experiences:
            if experience.id == id:
                return experience, in_use
    return None, False


def revert(library: ExperienceLibrary, applied: Applied, *, why: str = "") -> Revision:
    """The next version, without what one operation did; all that was done since stays.

    An added experience is retired, a deleted one comes back under its id, a modified one gets its words back, and
    of a merge the parents come back. No id is ever used for something else.

    Args:
        library: the newest version.
        applied: what is to be undone.
        why: the reason, in words.

    Raises:
        InputError: something later stands in the way, or it is undone already; the message says what.

    Example:
        >>> first = ExperienceLibrary().apply([Add(text="Check units.")])
        >>> done, = one_by_one(first, [Delete(id=first.experiences[0].id)])
        >>> revert(done.after, done).library.experiences == first.experiences
        True
    """
    why = why or f"revert of {applied.name or applied.operation.op}"
    return _whole(library, _inverse(library, applied, why), f"Operation {applied.name or applied.operation.op}")


def rollback(library: ExperienceLibrary, target: ExperienceLibrary, *, why: str = "") -> Revision:
    """The next version, with the experiences of an earlier one, in its order.

    Args:
        library: the newest version; it must know every experience of the target, in use or retired.
        target: the version to go back to.
        why: the reason, in words.

    Raises:
        InputError: the library holds these experiences already.
    """
    why = why or f"rollback to version {target.version}"
    wanted = [e.id for e in target]
    shared = [e.id for e in library if e.id in set(wanted)]
    # What stands in another order is taken out and put back.
    placed = set(shared) if shared == [id for id in wanted if id in set(shared)] else set()
    operations: list[Operation] = [Delete(id=e.id, why=why) for e in library if e.id not in placed]
    for place, experience in enumerate(target):
        old, _ = find(library, experience.id)
        if old is None:
            raise InputError(f"The library has never held {experience.id!r}, so it cannot go back to having it.")
        words = {f: new for f in WORDS if (new := getattr(experience, f)) != getattr(old, f)}
        if old.origins != experience.origins:
            words["taught_by"] = experience.origins
        if old.gated != experience.gated:
            words["gated"] = experience.gated
        if words or experience.id not in placed:
            after = wanted[place - 1] if place else ""
            operations.append(Restore.model_validate({"id": experience.id, "after": after, "why": why, **words}))
        if old.trust != experience.trust:
            operations.append(_trusting(experience.id, experience.trust, why))
    operations += [Unkeep(ids=pair, why=why) for pair in _both(library, target, wanted)]
    operations += [Keep(ids=pair, why=why) for pair in _both(target, library, wanted)]
    return _whole(library, operations, f"Version {target.version}")


def _whole(library: ExperienceLibrary, operations: Sequence[Operation], what: str) -> Revision:
    """All of the operations, or none."""
    revision = library.revise(operations)
    if refused := next((d for d in revision.decisions if not d.accepted), None):
        raise InputError(
            f"{what} cannot be brought back: {refused.operation.op} is refused ({refused.reason}). "
            "Roll back to a version instead."
        )
    if revision.library is library:
        raise InputError(f"{what} is what the library holds already; there is nothing to undo.")
    return revision


def _inverse(library: ExperienceLibrary, applied: Applied, why: str) -> list[Operation]:
    operation, before, after = applied.operation, applied.before, applied.after
    match operation:
        case Add():
            _must_be_used(library, applied.created)
            return [Delete(id=applied.created, why=why)]
        case Delete(id=id):
            _must_be_retired(library, id)
            return [_restored(library, applied.order, id, why)]
        case Modify(id=id):
            return [_former_words(library, before, after, id, why)]
        case Merge(ids=ids):
            _must_be_used(library, applied.created)
            undone: list[Operation] = [Delete(id=applied.created, why=why)]
            library = library.apply(undone)
            for parent in (e.id for e in before if e.id in ids):
                _must_be_retired(library, parent)
                undone.append(_restored(library, applied.order, parent, why))
                library = library.apply(undone[-1:])  # so that the next one finds its place
            return undone
        case Keep():
            fresh = _both(after, before, [e.id for e in library])
            return [Unkeep(ids=pair, why=why) for pair in fresh if pair in library.distinct]
        case Restore(id=id):
            if find(before, id)[1]:
                return [_former_words(library, before, after, id, why)]
            _must_be_used(library, id)
            return [Delete(id=id, why=why)]
        case Promote(id=id) | Quarantine(id=id):
            _must_be_used(library, id)
            return [_trusting(id, before[id].trust, why)]
        case Unkeep():
            lost = _both(before, after, [e.id for e in library])
            return [Keep(ids=pair, why=why) for pair in lost if pair not in library.distinct]


def _trusting(id: str, trust: Trust, why: str) -> Promote | Quarantine:
    return Promote(id=id, why=why) if trust == "trusted" else Quarantine(id=id, why=why)


def _both(one: ExperienceLibrary, other: ExperienceLibrary, ids: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs that `one` keeps apart and `other` does not, of these ids."""
    return [pair for pair in one.distinct if pair not in other.distinct and set(pair) <= set(ids)]


def _restored(library: ExperienceLibrary, order: Sequence[str], id: str, why: str) -> Restore:
    """It comes back behind the nearest of those that stood before it and are there."""
    used = {e.id for e in library}
    ahead = [other for other in order[: order.index(id)] if other in used]
    return Restore(id=id, after=ahead[-1] if ahead else "", why=why)


def _former_words(
    library: ExperienceLibrary, before: ExperienceLibrary, after: ExperienceLibrary, id: str, why: str
) -> Restore:
    _must_be_used(library, id)
    old, new, now = before[id], after[id], library[id]
    changed = [field for field in WORDS if getattr(old, field) != getattr(new, field)]
    if later := [field for field in changed if getattr(now, field) != getattr(new, field)]:
        raise InputError(
            f"{id!r} was changed again since ({later[0]}); undo that first, or roll back to a version."
        )
    words = {field: getattr(old, field) for field in changed}
    if old.gated != new.gated and now.origins == new.origins:  # else a later group may be of a gated data set too
        words["gated"] = old.gated
    return Restore.model_validate({"id": id, "why": why, "taught_by": _groups(old, new, now), **words})


def _groups(old: Experience, new: Experience, now: Experience) -> tuple[Origin, ...]:
    """The groups of `now`, but for those that came from `old` to `new`; those that went come back."""
    if now.origins == new.origins:
        return old.origins
    added = Counter(new.origins) - Counter(old.origins)
    kept: list[Origin] = []
    for origin in reversed(now.origins):  # of equal ones, those that were added later go
        if added[origin] > 0:
            added[origin] -= 1
        else:
            kept.append(origin)
    return (*reversed(kept), *(Counter(old.origins) - Counter(new.origins)).elements())


def _must_be_used(library: ExperienceLibrary, id: str) -> None:
    if find(library, id)[1]:
        return
    merged = next((e.id for e in (*library, *library.retired) if id in e.parents), None)
    if merged and find(library, merged)[1]:
        raise InputError(f"{id!r} was merged into {merged!r} since; undo that first, or roll back to a version.")
    raise InputError(f"{id!r} is not in the library any more; there is nothing to undo.")


def _must_be_retired(library: ExperienceLibrary, id: str) -> None:
    if find(library, id)[1]:
        raise InputError(f"{id!r} is in the library again already; there is nothing to undo.")
