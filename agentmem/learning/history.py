"""The past of a learned library, as its run's journal has it: every version, and what made it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Decision, Operation
from agentmem.domain.value import Value
from agentmem.errors import InputError, JournalError
from agentmem.learning.diff import LibraryDiff, diff
from agentmem.learning.naming import near, no_such_experience
from agentmem.learning.step import StepRecord
from agentmem.learning.undo import Applied, one_by_one, standing
from agentmem.learning.verdict import Verdict
from agentmem.library_files import load_library
from agentmem.runs.records import Records

V = TypeVar("V", bound=Value)


class ByHand(Value):
    """What a person did to a library, as the journal keeps it."""

    verb: Literal["revert", "rollback", "import", "promote", "quarantine", "edit"]
    """`edit`: `library.json` was changed by other means than ours, and was found so."""
    base: int
    """The version that it was done to."""
    decisions: tuple[Decision, ...] = ()
    why: str = ""


class Version(Value):
    """One version of a library, and what made it. A step that changed nothing has the number of the one before."""

    number: int
    made_by: Literal["start", "learning", "revert", "rollback", "import", "promote", "quarantine", "edit"]
    step: int
    """The learning step that made it; of what people made, the last one before. -1 is before the first."""
    base: int | None = None
    """The number of the version that the operations were applied to."""
    library: ExperienceLibrary
    evicted: tuple[Operation, ...] = ()
    """What credit did to its base: it took away what was measured to be harmful. No gate is asked for that."""
    operations: tuple[Operation, ...] = ()
    """What made it of its base after that, in order."""
    proposed: tuple[Decision, ...] = ()
    """All that was proposed, with the reason where the library refused it."""
    verdict: Verdict | None = None
    """What the gate said; None where none was asked."""

    @property
    def changed(self) -> bool:
        """Whether it differs from the one before."""
        return self.base is None or self.number != self.base


@dataclass(frozen=True)
class History:
    """Every version of the library of one learning run, oldest first. Use `History.of`."""

    records: Records
    versions: tuple[Version, ...]
    """A version for every learning step, also for those that changed nothing, and for what people did."""
    found: ExperienceLibrary | None = None
    """What the run's `library.json` holds; None where it is missing or unreadable."""
    fault: str = ""
    """Why `library.json` cannot be read."""

    @classmethod
    def of(cls, folder: str | Path) -> History:
        """Read a learning run's journal; nothing in the folder is changed, and the run may be under way.

        Raises:
            InputError: the folder holds no learning run, or one that has finished no step.
            JournalError: the journal is damaged, or a newer agentmem wrote it.
        """
        records = Records(Path(folder))
        found, fault = _library_file(records.folder)  # first: the journal has every version before the file does
        versions = _versions(records)
        history = cls(records, versions, found, fault)
        edited = history._edited()
        return cls(records, (*versions, edited), found, fault) if edited else history

    @property
    def newest(self) -> Version:
        """The last version that was made."""
        return self.versions[-1]

    @property
    def current(self) -> Version:
        """The version in the run's `library.json`, which agents use; the newest where that file is gone.

        Raises:
            InputError: the file cannot be read.
        """
        if self.fault:
            raise InputError(f"{self.fault} Or name a version, or move the file away to take the newest one.")
        return next((v for v in reversed(self.versions) if v.library == self.found), self.newest)

    def version(self, number: int) -> Version:
        """The version of this number, as it was first made.

        Raises:
            InputError: there is none; the message says which there are.
        """
        for version in self.versions:
            if version.number == number:
                return version
        known = sorted({version.number for version in self.versions})
        raise InputError(f"{self.records.folder} has no version {number}; it has {_ranges(known)}.")

    def library(self, version: int | None = None) -> ExperienceLibrary:
        """The library as of a version; by default the current one.

        Raises:
            InputError: there is no such version.
        """
        if version is None:
            return self.current.library
        self.version(version)
        # Steps that changed nothing may have measured something: the last one knows most.
        return next(v.library for v in reversed(self.versions) if v.number == version)

    def diff(self, before: int, after: int | None = None) -> LibraryDiff:
        """What differs between two versions; the second is by default the current one.

        Raises:
            InputError: there is no such version.
        """
        return diff(self.library(before), self.library(after))

    @cached_property
    def applied(self) -> tuple[tuple[Version, tuple[Applied, ...]], ...]:
        """What each version's operations did, one by one; none where that is not known (an edited file)."""
        return tuple((version, self._applied(version)) for version in self.versions)

    def operation(self, name: str) -> Applied:
        """The operation of this name, such as `3.2`; or, given an experience's id, the last one that touched it.

        Raises:
            InputError: there is none; near matches are offered.
        """
        every = [applied for _, done in self.applied for applied in done]
        matching = [applied for applied in every if name == applied.name or applied.touches(name)]
        if matching:
            return matching[-1]
        if "." in name or not every:
            names = [applied.name for applied in every]
            raise InputError(
                f"{self.records.folder} has no operation {name!r}.{near(name, names)} "
                "`agentmem library blame` names the operations behind an experience."
            )
        if name in self.experience_ids:
            raise InputError(f"No operation of this run touched {name!r}: the run began with it.")
        raise no_such_experience(name, self._everything(), self.records.folder)

    @cached_property
    def experience_ids(self) -> frozenset[str]:
        """Every id that some version knows, in use or retired."""
        return frozenset(e.id for version in self.versions for e in (*version.library, *version.library.retired))

    def require(self, id: str) -> None:
        """Make sure that some version knows this experience.

        Raises:
            InputError: none does; near matches are offered.
        """
        if id not in self.experience_ids:
            raise no_such_experience(id, self._everything(), self.records.folder)

    @property
    def last_step(self) -> int:
        """The last learning step that was finished."""
        return max(version.step for version in self.versions)

    def _everything(self) -> list[Any]:
        known = {e.id: e for v in self.versions for e in (*v.library.retired, *v.library)}
        return list(known.values())

    def _applied(self, version: Version) -> tuple[Applied, ...]:
        base = next((v.library for v in self.versions if v.number == version.base), None)
        if base is None or not version.changed:
            return ()
        order: tuple[str, ...] = ()
        for earlier in self.versions:
            if earlier.number <= base.version:
                order = standing(earlier.library, order)
        operations = (*version.evicted, *version.operations)
        done = one_by_one(base, operations, version=version.number, order=order)
        # A file that was edited, or a journal of another agentmem: then only the difference is known.
        return tuple(done) if done and done[-1].after.hash == version.library.hash else ()

    def _edited(self) -> Version | None:
        """`library.json` as a version of its own, where it is none that we made."""
        if self.found is None or any(self.found == version.library for version in self.versions):
            return None
        number = max(version.number for version in self.versions) + 1
        known = {e.id for e in (*self.found, *self.found.retired)}
        lost = [experience for experience in self._everything() if experience.id not in known]
        # What was cut out of the file is retired, so that it can be brought back and its id is not given again.
        library = self.found.model_copy(update={"version": number, "retired": (*self.found.retired, *lost)})
        return Version(
            number=number, made_by="edit", step=self.last_step, base=self.newest.number, library=library
        )


def _library_file(folder: Path) -> tuple[ExperienceLibrary | None, str]:
    try:
        return load_library(folder / "library.json"), ""
    except InputError as error:
        return None, str(error) if (folder / "library.json").exists() else ""


def _versions(records: Records) -> tuple[Version, ...]:
    libraries, decisions = records.rows(
        ("SELECT step, library FROM libraries ORDER BY step", ()),
        ("SELECT step, result FROM steps WHERE phase='learn' AND purpose='decision' ORDER BY step", ()),
    )
    if not any(step >= 0 for step, _ in libraries):
        verb = records.asked.get("verb", "learn")
        if verb != "learn":
            raise InputError(
                f"{records.folder} is a run of `agentmem {verb}`, which learns nothing; name a learning run."
            )
        raise InputError(
            f"{records.folder} has finished no learning step yet, so it has no library; "
            "start its command again, or wait for its first step."
        )
    path = records.journal
    made = {step: read_value(StepRecord, text, f"{path}, decision of step {step}") for step, text in decisions}
    versions: list[Version] = []
    for step, text in libraries:
        library = _library(text, f"{path}, step {step}")
        if not versions and step >= 0 and not records.asked.get("fingerprints", {}).get("library", "?"):
            versions.append(Version(number=0, made_by="start", step=-1, library=ExperienceLibrary()))
        record = made.get(step)
        versions.append(
            Version(
                number=library.version,
                made_by="start" if step < 0 else "learning",
                step=step,
                base=versions[-1].number if versions else None,
                library=library,
                evicted=tuple(d.operation for d in record.evicted if d.accepted) if record else (),
                operations=record.kept if record else (),
                proposed=record.proposed if record else (),
                verdict=record.verdict if record else None,
            )
        )
    by_hand = _by_hand(records)
    # In the order in which they came to be: what people did after a step stands behind it.
    return tuple(sorted((*versions, *by_hand), key=lambda version: version.step))


def _by_hand(records: Records) -> Iterable[Version]:
    if not records.has("revisions"):
        return
    (rows,) = records.rows(("SELECT id, step, version, library, record FROM revisions ORDER BY id", ()))
    for id, step, number, text, record in rows:
        where = f"{records.journal}, revision {id}"
        what = read_value(ByHand, record, where)
        yield Version(
            number=number,
            made_by=what.verb,
            step=step,
            base=what.base,
            library=_library(text, where),
            operations=tuple(decision.operation for decision in what.decisions if decision.accepted),
            proposed=what.decisions,
        )


def _library(text: str, where: str) -> ExperienceLibrary:
    try:
        return ExperienceLibrary.from_json(text, source=where)
    except InputError as error:
        raise JournalError(str(error)) from None


def read_value(kind: type[V], text: str, where: str) -> V:
    """A value that the journal holds.

    Raises:
        JournalError: it cannot be read as one.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the top level"
        raise JournalError(
            f"{where}: {first['msg']} at {place}. The journal was changed by other means, or a newer agentmem wrote "
            "it; restore it from a copy, or upgrade agentmem."
        ) from None


def _ranges(numbers: list[int]) -> str:
    """`0 to 4, 7`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]} to {part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
