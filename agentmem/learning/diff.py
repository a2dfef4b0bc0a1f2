"""What differs between two versions of a library: what was added, changed, merged, retired or brought back."""

from __future__ import annotations

from typing import Literal

from agentmem import format as fmt
from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.value import Value

SHOWN = 80
"""Characters of an experience that a table shows; JSON has all of them."""


class Difference(Value):
    """What became of one experience from one version to the other."""

    change: Literal["added", "changed", "merged", "retired", "restored"]
    id: str
    before: tuple[str, ...] = ()
    """What it said; of a merged one what its parents said."""
    after: str | None = None
    """What it says; None where it is there no more."""
    parents: tuple[str, ...] = ()
    """Of a merged one: the ids that it replaced."""


class LibraryDiff(Value):
    """All that differs between two versions.

    Example:
        >>> from agentmem.domain.operation import Add, Modify
        >>> old = ExperienceLibrary().apply([Add(text="Check units.")])
        >>> new = old.apply([Modify(id=old.experiences[0].id, when="in physics")])
        >>> [(d.change, d.before, d.after) for d in diff(old, new).differences]
        [('changed', ('Check units.',), 'Check units. (when: in physics)')]
    """

    before: int
    """The version compared with."""
    after: int
    differences: tuple[Difference, ...]

    def table(self) -> fmt.Table:
        """One row for each experience that differs."""
        rows = tuple(
            (d.change, d.id, " | ".join(short(text) for text in d.before), short(d.after or ""))
            for d in self.differences
        )
        counts = {d.change: sum(o.change == d.change for o in self.differences) for d in self.differences}
        return fmt.Table(
            title=f"version {self.before} → version {self.after}",
            columns=(("", "left"), ("id", "left"), ("before", "left"), ("after", "left")) if rows else (),
            rows=rows,
            caption=", ".join(f"{n} {change}" for change, n in counts.items()) or "The same experiences.",
        )

    def to_json(self) -> str:
        """For a program."""
        return self.model_dump_json()

    def __str__(self) -> str:
        return str(self.table())


def diff(before: ExperienceLibrary, after: ExperienceLibrary) -> LibraryDiff:
    """What differs, in the order of the newer version; what is there no more comes last."""
    old, new = {e.id: e for e in before}, {e.id: e for e in after}
    everything = old | {e.id: e for e in (*before.retired, *after.retired)} | new
    retired = {e.id for e in before.retired}
    found: list[Difference] = []
    replaced: set[str] = set()
    for id, experience in new.items():
        now = words(experience)
        if id in old:
            if (then := words(old[id])) != now:
                found.append(Difference(change="changed", id=id, before=(then,), after=now))
        elif id in retired:
            found.append(Difference(change="restored", id=id, after=now))
        elif experience.parents:
            replaced.update(experience.parents)
            said = tuple(words(everything[p]) for p in experience.parents if p in everything)
            found.append(Difference(change="merged", id=id, before=said, after=now, parents=experience.parents))
        else:
            found.append(Difference(change="added", id=id, after=now))
    gone = [e for id, e in old.items() if id not in new and id not in replaced]
    found += [Difference(change="retired", id=e.id, before=(words(e),)) for e in gone]
    return LibraryDiff(before=before.version, after=after.version, differences=tuple(found))


def words(experience: Experience) -> str:
    """All that an experience says, in one line: a lesson with its conditions, an example with its turns."""
    turns = [turn.content for turn in experience.turns]
    said = " → ".join(turns) if turns else experience.text
    conditions = [f"when: {experience.when}"] if experience.when else []
    conditions += [f"not when: {experience.when_not}"] if experience.when_not else []
    conditions += ["in quarantine"] if experience.trust == "quarantined" else []
    if conditions:
        said += f" ({'; '.join(conditions)})"
    return " ".join(said.split())


def effect_words(experience: Experience) -> str:
    """Its measured effect on the reward; empty where it was not measured."""
    effect = experience.effect
    if effect is None:
        return ""
    return f"{fmt.signed(effect.mean)} ± {fmt.number(effect.sd)} ({fmt.count(effect.exposures, 'exposure')})"


def short(text: str, limit: int = SHOWN) -> str:
    """One line of at most `limit` characters; the middle is left out.

    Example:
        >>> short("What is 17 * 23? Let me multiply them: 391", 18)
        'What is 17…m: 391'
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    tail = limit // 3
    return f"{line[: limit - tail - 1].rstrip()}…{line[-tail:].lstrip()}"
