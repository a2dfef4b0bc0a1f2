"""One thing learned, and the library: an immutable version of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from pydantic import Field, ValidationError

from agentmem.domain.operation import (
    Add,
    Decision,
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
from agentmem.domain.provenance import Provenance, Trust
from agentmem.domain.trajectory import Message
from agentmem.domain.value import Value, fingerprint
from agentmem.domain.write_rules import admitted, inherited, redacted
from agentmem.errors import InputError

SCHEMA = 1
"""The version of the library's JSON form."""


class Effect(Value):
    """The effect of an experience on the reward: a normal posterior from a randomised experiment."""

    mean: float
    sd: float
    exposures: int
    """Rollouts that saw it while others of their group did not."""


class Experience(Value):
    """One lesson, or one worked example from the agent's own successes.

    A lesson is `text`, with when it applies. An example is kept as chat `turns`; its `text` says what it shows.
    """

    id: str
    """`e-` and a short hash of its first version; kept for life, never given again."""
    kind: Literal["lesson", "example"] = "lesson"
    text: str
    when: str = ""
    """The condition under which it applies."""
    when_not: str = ""
    """The condition under which it does not."""
    turns: tuple[Message, ...] = ()
    """Of an example: what was asked and what was answered."""
    origins: tuple[Origin, ...] = ()
    """The groups that taught it, first version first."""
    parents: tuple[str, ...] = ()
    """Of a merged experience: the ids that it replaced."""
    revision: int = 1
    """1 when added, one more with each modification."""
    gated: bool = False
    """Whether a gated data set had a part in it."""
    effect: Effect | None = None
    """What it does to the reward, by randomised inclusion; None where that was not measured."""
    # These two are written where they say something, so that a library from before them keeps its bytes and its hash.
    provenance: Provenance = Field(default=Provenance(), exclude_if=lambda value: value == Provenance())
    trust: Trust = Field(default="trusted", exclude_if=lambda value: value == "trusted")
    """A quarantined one is kept out of every prior."""
    tool: str = Field(default="", exclude_if=lambda value: not value)
    """The tool that it is about: of a planner, its executor sees it; empty for one about the tasks themselves."""


class Revision(Value):
    """The outcome of applying operations: the next library, and what became of each operation."""

    library: ExperienceLibrary
    decisions: tuple[Decision, ...]

    @property
    def accepted(self) -> tuple[Operation, ...]:
        """The operations that took effect."""
        return tuple(decision.operation for decision in self.decisions if decision.accepted)


class ExperienceLibrary(Value):
    """All experiences in order of creation, as one immutable version (2510.08191, section 2.2).

    Example:
        >>> library = ExperienceLibrary().apply([Add(text="Check the units.")])
        >>> library.version, [e.text for e in library]
        (1, ['Check the units.'])
    """

    schema_version: int = Field(default=SCHEMA, alias="schema", serialization_alias="schema")
    version: int = 0
    """0 for the empty library; one more with every revision that changes something."""
    experiences: tuple[Experience, ...] = ()
    retired: tuple[Experience, ...] = ()
    """What was deleted or merged away, so that ids are never reused and any step can be undone."""
    distinct: tuple[tuple[str, str], ...] = ()
    """Pairs of similar experiences that are both wanted, so that nobody proposes to merge them again."""

    def revise(
        self, operations: Sequence[Operation], *, refuse: Callable[[Operation], str] | None = None
    ) -> Revision:
        """Apply operations in order, as one transaction; each is accepted or rejected with the reason.

        An operation on an unknown id is rejected; it is never turned into an addition.

        Args:
            operations: what to do.
            refuse: says why an operation must not be applied, such as the leak rule; empty where it may.
        """
        editor = _Editor(self)
        decisions = tuple(editor.decide(operation, refuse) for operation in operations)
        return Revision(library=editor.library(), decisions=decisions)

    def apply(self, operations: Sequence[Operation]) -> ExperienceLibrary:
        """The next version; `revise` also tells what became of each operation."""
        return self.revise(operations).library

    @property
    def trusted(self) -> tuple[Experience, ...]:
        """The experiences that may be shown, in order; the others are in quarantine."""
        return tuple(e for e in self.experiences if e.trust == "trusted")

    def only(self, ids: Iterable[str]) -> ExperienceLibrary:
        """The same version with these experiences alone: what a mask leaves visible."""
        wanted = set(ids)
        return self.model_copy(update={"experiences": tuple(e for e in self.experiences if e.id in wanted)})

    def with_effects(self, effects: Mapping[str, Effect]) -> ExperienceLibrary:
        """The same version with newly measured effects; what a prior says does not change by it."""
        measured = tuple(e.model_copy(update={"effect": effects.get(e.id, e.effect)}) for e in self.experiences)
        return self.model_copy(update={"experiences": measured})

    @property
    def hash(self) -> str:
        """Equal for libraries with the same experiences in the same order, whatever was measured of them."""
        return fingerprint([e.model_dump(mode="json", exclude={"effect"}) for e in self.experiences])

    def to_json(self) -> str:
        """Canonical JSON, the same bytes for equal libraries."""
        return self.model_dump_json(indent=1, by_alias=True) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "the library") -> ExperienceLibrary:
        """Read what `to_json` wrote.

        Raises:
            InputError: it is no library, was damaged, or was written by a newer agentmem.
        """
        try:
            library = cls.model_validate_json(text)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the top level"
            raise InputError(
                f"{source} is no experience library: {error.errors()[0]['msg']} at {where}. "
                "Restore it from its run's journal, or export it again."
            ) from None
        if library.schema_version > SCHEMA:
            raise InputError(
                f"{source} has schema {library.schema_version}, newer than this agentmem reads ({SCHEMA}); "
                "upgrade agentmem."
            )
        ids = [e.id for e in (*library.experiences, *library.retired)]
        if doubled := next((i for i in ids if ids.count(i) > 1), None):
            raise InputError(f"{source} holds the id {doubled!r} twice; remove or rename one of the two.")
        return library

    def __len__(self) -> int:
        return len(self.experiences)

    def __iter__(self) -> Iterator[Experience]:  # type: ignore[override]  # over experiences, not pydantic's fields
        return iter(self.experiences)

    def __getitem__(self, id: str) -> Experience:
        for experience in self.experiences:
            if experience.id == id:
                return experience
        raise KeyError(id)


class _Editor:
    """The library while operations are applied: a working copy that becomes the next version."""

    def __init__(self, library: ExperienceLibrary) -> None:
        self.before = library
        self.active = {e.id: e for e in library.experiences}
        self.retired = {e.id: e for e in library.retired}
        self.distinct = list(library.distinct)

    def decide(self, operation: Operation, refuse: Callable[[Operation], str] | None) -> Decision:
        operation = redacted(operation)  # before it is logged, too
        why_not = (refuse(operation) if refuse else "") or self._apply(operation)
        return Decision(operation=operation, accepted=not why_not, reason=why_not)

    def library(self) -> ExperienceLibrary:
        after = ExperienceLibrary(
            version=self.before.version + 1,
            experiences=tuple(self.active.values()),
            retired=tuple(self.retired.values()),
            distinct=tuple(self.distinct),
        )
        unchanged = after.model_copy(update={"version": self.before.version}) == self.before
        return self.before if unchanged else after

    def _apply(self, operation: Operation) -> str:
        """Apply it, or say why not."""
        match operation:
            case Add():
                return self._add(operation)
            case Modify(id=id):
                if id not in self.active:
                    return f"no experience {id!r}"
                old = self.active[id]
                changes = {f: v for f in ("text", "when", "when_not") if (v := getattr(operation, f)) is not None}
                if all(getattr(old, field) == value for field, value in changes.items()):
                    return "changes nothing"
                changes |= {"revision": old.revision + 1, "origins": (*old.origins, *operation.origins)}
                changes["gated"] = old.gated or operation.gated
                changes |= _standing(operation, old.trust, old.provenance)
                self.active[id] = old.model_copy(update=changes)
            case Merge():
                ids = tuple(dict.fromkeys(operation.ids))
                if missing := [id for id in ids if id not in self.active]:
                    return f"no experience {missing[0]!r}"
                if len(ids) < 2:
                    return "a merge needs two experiences"
                sources = [self.active[id] for id in ids]
                trust, gated = inherited(sources)
                merged = self._new(
                    Add(
                        text=operation.text,
                        when=operation.when,
                        when_not=operation.when_not,
                        tool=_tool_of(sources),
                    ),
                    parents=ids,
                    origins=(*(o for source in sources for o in source.origins), *operation.origins),
                    gated=operation.gated or gated,
                    trust=trust,
                ).model_copy(update=_standing(operation, trust, _heritage(sources)))
                for id in ids:
                    self.retired[id] = self.active.pop(id)
                self.active[merged.id] = merged
            case Delete(id=id):
                if id not in self.active:
                    return f"no experience {id!r}"
                self.retired[id] = self.active.pop(id)
            case Keep(ids=ids):
                if missing := [id for id in ids if id not in self.active]:
                    return f"no experience {missing[0]!r}"
                self.distinct.extend(pair for pair in _pairs(ids) if pair not in self.distinct)
            case Restore():
                return self._restore(operation)
            case Unkeep(ids=ids):
                if missing := [id for id in ids if id not in self.active]:
                    return f"no experience {missing[0]!r}"
                if not set(_pairs(ids)) & set(self.distinct):
                    return "changes nothing"
                self.distinct = [pair for pair in self.distinct if pair not in _pairs(ids)]
            case Promote(id=id) | Quarantine(id=id):
                if id not in self.active:
                    return f"no experience {id!r}"
                trust = "trusted" if isinstance(operation, Promote) else "quarantined"
                if self.active[id].trust == trust:
                    return "changes nothing"
                self.active[id] = self.active[id].model_copy(update={"trust": trust})
        return ""

    def _add(self, operation: Add) -> str:
        if any(_content(e) == _content(operation) for e in self.active.values()):
            return "already in the library"
        new = self._new(operation, origins=operation.origins, gated=operation.gated)
        self.active[new.id] = new.model_copy(update=_standing(operation, "trusted", Provenance()))
        return ""

    def _restore(self, operation: Restore) -> str:
        id, retired = operation.id, operation.id in self.retired
        if not retired and id not in self.active:
            return f"no experience {id!r}"
        old = self.retired[id] if retired else self.active[id]
        fields = ("text", "when", "when_not", "turns")
        words = {
            field: v for field in fields if (v := getattr(operation, field)) not in (None, getattr(old, field))
        }
        changes: dict[str, object] = {**words, "revision": old.revision + 1} if words else {}
        if operation.taught_by not in (None, old.origins):
            changes["origins"] = operation.taught_by
        if operation.gated not in (None, old.gated):
            changes["gated"] = operation.gated
        if not retired and not changes:
            return "changes nothing"
        restored = old.model_copy(update=changes)
        if retired:
            del self.retired[id]
            order = list(self.active.items())
            ids = ["", *self.active]
            place = ids.index(operation.after) if operation.after in ids else len(order)
            self.active = dict([*order[:place], (id, restored), *order[place:]])
        else:
            self.active[id] = restored
        return ""

    def _new(
        self,
        add: Add,
        *,
        parents: tuple[str, ...] = (),
        origins: tuple[Origin, ...] = (),
        gated: bool = False,
        trust: Trust = "trusted",
    ) -> Experience:
        salt = 0
        while (id := f"e-{fingerprint([*_content(add), salt], length=8)}") in self.active or id in self.retired:
            salt += 1
        return Experience(
            id=id,
            kind=add.kind,
            text=add.text,
            when=add.when,
            when_not=add.when_not,
            turns=add.turns,
            origins=origins,
            parents=parents,
            gated=gated,
            trust=trust,
            tool=add.tool,
        )


def _standing(written: Add | Modify | Merge, trust: Trust, provenance: Provenance) -> dict[str, object]:
    """Trust and provenance of what has these new words, given those that it had."""
    if not written.provenance.untrusted:
        said = written.provenance if written.provenance != Provenance() else provenance
        return {"trust": trust, "provenance": said}
    said = written.provenance
    return {"trust": trust if written.vouched else admitted(trust, said), "provenance": said}


def _heritage(sources: Sequence[Experience]) -> Provenance:
    """What is made of an untrusted text is untrusted."""
    return next((source.provenance for source in sources if source.provenance.untrusted), Provenance())


def _tool_of(sources: Sequence[Experience]) -> str:
    """The tool that all of them are about; empty where they are about different ones, or about none."""
    tools = {source.tool for source in sources}
    return tools.pop() if len(tools) == 1 else ""


def _pairs(ids: Iterable[str]) -> list[tuple[str, str]]:
    """Every two of the ids, each pair in one order."""
    return list(combinations(sorted(set(ids)), 2))


def _content(item: Experience | Add) -> tuple[object, ...]:
    return (
        item.kind,
        item.text,
        item.when,
        item.when_not,
        [turn.model_dump(mode="json") for turn in item.turns],
    )


Revision.model_rebuild()
