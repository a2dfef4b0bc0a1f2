"""How a library, its versions and what was just done to it are shown."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from agentmem import format as fmt
from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.domain.operation import Operation
from agentmem.learning.diff import effect_words, short, words
from agentmem.learning.history import History, Version
from agentmem.learning.undo import find


@dataclass(frozen=True)
class Shown:
    """A library, and of a run its versions."""

    library: ExperienceLibrary
    history: History | None = None

    def table(self) -> fmt.Table | fmt.Tables:
        """One row for each experience; then one for each version."""
        library = self.library
        measured = any(e.effect for e in library)
        rows = tuple(
            (
                e.id,
                e.kind,
                short(words(e)),
                str(e.revision),
                fmt.count(len(e.origins), "group"),
                *((effect_words(e),) if measured else ()),
                "gated" if e.gated else "",
            )
            for e in library
        )
        columns = ("id", "", "says", "revision", "taught by", *(("effect",) if measured else ()), "")
        experiences = fmt.Table(
            title=f"library, version {library.version}: {fmt.count(len(library), 'experience')}",
            columns=tuple((name, "left") for name in columns) if rows else (),
            rows=rows,
            caption=f"{len(library.retired)} retired" if library.retired else "",
        )
        if self.history is None:
            return experiences
        made = fmt.Table(
            title="versions",
            columns=tuple((n, "left") for n in ("version", "made by", "operations", "experiences", "gate")),
            rows=tuple(_row(version) for version in self.history.versions),
        )
        return fmt.Tables((experiences, made))

    def to_json(self) -> str:
        """The library, and of a run its versions without theirs."""
        content: dict[str, object] = {"library": json.loads(self.library.to_json())}
        if self.history is not None:
            versions = self.history.versions
            content["versions"] = [
                {**v.model_dump(mode="json", exclude={"library"}), "experiences": len(v.library)} for v in versions
            ]
        return json.dumps(content, ensure_ascii=False)


@dataclass(frozen=True)
class Done:
    """What was just done to a library."""

    revision: Revision
    file: Path

    def table(self) -> fmt.Table:
        """One row for each operation."""
        library = self.revision.library
        rows = tuple(
            (d.operation.op, _about(d.operation, library), "" if d.accepted else f"left out: {d.reason}")
            for d in self.revision.decisions
        )
        return fmt.Table(
            title=f"{self.file}: version {library.version}, {fmt.count(len(library), 'experience')}",
            columns=(("operation", "left"), ("experience", "left"), ("", "left")) if rows else (),
            rows=rows,
        )

    def to_json(self) -> str:
        """For a program."""
        content = {
            "file": str(self.file),
            "version": self.revision.library.version,
            "experiences": len(self.revision.library),
            "decisions": [decision.model_dump(mode="json") for decision in self.revision.decisions],
        }
        return json.dumps(content, ensure_ascii=False)


def _row(version: Version) -> tuple[str, ...]:
    by = f"step {version.step + 1}" if version.made_by == "learning" else version.made_by
    ops = Counter(operation.op for operation in version.operations)
    done = ", ".join(f"{n} {op}" for op, n in ops.items())
    if version.evicted:
        done = ", ".join(part for part in (f"{len(version.evicted)} evicted", done) if part)
    refused = sum(decision.accepted for decision in version.proposed) - len(version.operations)
    if refused > 0:
        done = ", ".join(part for part in (done, f"{refused} refused") if part)
    gate = version.verdict.reason if version.verdict else ""
    return str(version.number), by, done or fmt.MISSING, str(len(version.library)), gate


def _about(operation: Operation, library: ExperienceLibrary) -> str:
    """The experiences that it names, with what one says now; or the words that it adds."""
    named = [operation.id] if hasattr(operation, "id") else list(getattr(operation, "ids", ()))
    known = find(library, named[0])[0] if len(named) == 1 else None
    said = words(known) if known else getattr(operation, "text", "")
    return " ".join((*named, short(said))).strip()
