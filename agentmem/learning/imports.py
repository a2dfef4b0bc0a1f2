"""Lessons from outside: another library, or a list of lessons in plain text or Markdown, as operations."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentmem.domain.clean_text import clean
from agentmem.domain.experience import Experience, ExperienceLibrary, Revision
from agentmem.domain.operation import Add, Decision
from agentmem.domain.origin import Origin
from agentmem.domain.value import fingerprint
from agentmem.errors import InputError
from agentmem.learning.export import GATED
from agentmem.text_file import BOM, decode, open_existing, refuse_foreign

EXTRACTOR = "import"
"""The extractor in the origin of what was imported; the origin's `task_id` is the name of the file."""


def import_file(library: ExperienceLibrary, path: str | os.PathLike[str]) -> Revision:
    """The next version of a library, with the experiences of a file added.

    What is there already, word for word but for case and white space, is rejected with the reason.

    Args:
        library: what to add to.
        path: a library's JSON, or a list of lessons in plain text or Markdown, one a bullet.

    Raises:
        InputError: there is no such file, or it holds no lesson.
    """
    file = Path(path)
    if file.is_dir() and (file / "library.json").is_file():
        file = file / "library.json"
    with open_existing(file, "file of lessons") as opened:
        content = opened.read()
    refuse_foreign(content, file)
    text = decode(content.removeprefix(BOM), path=file, where="")
    adds = read_additions(text, source=file.name, where=str(file))
    return add_new(library, adds)


def read_additions(text: str, *, source: str, where: str = "") -> list[Add]:
    r"""What a text proposes to add; all of it is cleaned, because it is data.

    Args:
        text: a library's JSON, or a list of lessons.
        source: its name in the origins.
        where: its name in errors.

    Raises:
        InputError: it holds no lesson, or is a broken library.

    Example:
        >>> adds = read_additions("Notes\n\n- Check the units.\n- Read it twice.\n", source="notes.md")
        >>> [add.text for add in adds], adds[0].origins[0].extractor
        (['Check the units.', 'Read it twice.'], 'import')
    """
    where = where or source
    if text.lstrip().startswith("{"):
        additions = [_as_addition(e, source) for e in ExperienceLibrary.from_json(text, source=where)]
        return [add for add in additions if add is not None]
    origin = Origin(step=-1, task_id=source, extractor=EXTRACTOR)
    lessons = [
        Add(
            text=lesson.text,
            when=lesson.when,
            when_not=lesson.when_not,
            gated=lesson.gated,
            origins=(origin,),
            why=f"imported from {source}",
        )
        for lesson in _listed(text)
    ]
    if not lessons:
        raise InputError(f"{where} holds no lesson; write one lesson a line, each after '- '.")
    return lessons


def add_new(library: ExperienceLibrary, additions: Iterable[Add]) -> Revision:
    """Add what the library does not hold yet, by the exact words but for case and white space."""
    known = {_normal(experience): experience.id for experience in library}
    decisions: dict[int, Decision] = {}
    fresh: list[tuple[int, Add]] = []
    for place, add in enumerate(additions):
        key = _normal(add)
        if key in known:
            reason = f"already in the library as {known[key]}" if known[key] else "given twice"
            decisions[place] = Decision(operation=add, accepted=False, reason=reason)
        else:
            known[key] = ""
            fresh.append((place, add))
    revision = library.revise([add for _, add in fresh])
    decisions |= {place: decision for (place, _), decision in zip(fresh, revision.decisions, strict=True)}
    return Revision(library=revision.library, decisions=tuple(decisions[place] for place in sorted(decisions)))


def _as_addition(experience: Experience, source: str) -> Add | None:
    text = clean(experience.text).strip()
    if not text:
        return None
    origin = Origin(step=-1, task_id=source, extractor=EXTRACTOR)
    return Add(
        kind=experience.kind,
        text=text,
        when=clean(experience.when).strip(),
        when_not=clean(experience.when_not).strip(),
        turns=tuple(turn.model_copy(update={"content": clean(turn.content)}) for turn in experience.turns),
        gated=experience.gated,
        provenance=experience.provenance.model_copy(
            update={"untrusted": experience.provenance.untrusted or experience.trust == "quarantined"}
        ),
        why=f"imported from {source}, where it is {experience.id}",
        origins=(*experience.origins, origin),
    )


_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*+•]|\d{1,4}[.)])[ \t]+(?P<text>.*)")
_ID = re.compile(r"(?:\*\*(e-[0-9a-f]+)\*\*|\[(e-[0-9a-f]+)\])\s+")
_ABOUT = re.compile(r"(Applies when|Does not apply when|Evidence|Effect|Merged from|Revision): ?(.*)")


@dataclass
class _Lesson:
    """One lesson of a list while it is read."""

    text: str
    when: str = ""
    when_not: str = ""
    gated: bool = False

    def take(self, line: str) -> None:
        """A line that belongs to it. Evidence is left out: it is another run's."""
        about = _ABOUT.match(line)
        match about[1] if about else "":
            case "Applies when":
                self.when = line.partition(":")[2].strip()
            case "Does not apply when":
                self.when_not = line.partition(":")[2].strip()
            case "":
                if line == GATED:
                    self.gated = True
                else:
                    self.text = f"{self.text} {line}".strip()


def _listed(text: str) -> list[_Lesson]:
    """The lessons of a list. Plain text, without a bullet or a heading, has a lesson in each line.

    Deeper bullets and indented lines belong to the lesson above them, as do lines that follow without a gap.
    """
    lines = list(_unfenced(clean(text)))
    bullets = [bullet for line in lines if (bullet := _BULLET.fullmatch(line))]
    if not bullets:
        plain = [] if any(line.startswith("#") for line in lines) else lines
        return [_Lesson(line.strip()) for line in plain if line.strip()]
    top = min(_depth(bullet["indent"]) for bullet in bullets)
    lessons: list[_Lesson] = []
    lesson: _Lesson | None = None
    above = ""
    for line in lines:
        bullet = _BULLET.fullmatch(line)
        if bullet and _depth(bullet["indent"]) <= top:
            lesson = _Lesson(_ID.sub("", bullet["text"], count=1).strip())
            lessons.append(lesson)
        elif lesson and line.strip() and (line[0] in " \t" or (above.strip() and line[0] != "#")):
            lesson.take((bullet["text"] if bullet else line).strip())
        elif line.strip():
            lesson = None  # a heading or a paragraph; what follows belongs to no lesson
        above = line
    return [lesson for lesson in lessons if lesson.text]


def _unfenced(text: str) -> Iterator[str]:
    """The lines that stand in no code block and no HTML comment."""
    fence = ""
    for line in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).split("\n"):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield line


def _depth(indent: str) -> int:
    return len(indent.expandtabs(4))


def _normal(item: Experience | Add) -> str:
    """Equal for the same words, whatever their case, white space and Unicode form."""

    def plain(text: str) -> str:
        return " ".join(unicodedata.normalize("NFKC", clean(text)).casefold().split())

    turns = [[turn.role, plain(turn.content)] for turn in item.turns]
    # What an example is called says nothing; its turns do.
    return fingerprint(
        [item.kind, "" if turns else plain(item.text), plain(item.when), plain(item.when_not), turns]
    )
