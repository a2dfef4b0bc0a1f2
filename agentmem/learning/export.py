"""A library in other forms: JSON, Markdown, the text of its prior, and a section of an AGENTS.md."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, assert_never

from agentmem.agents.prior import render_prior
from agentmem.atomic import atomic_write
from agentmem.domain.clean_text import clean
from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.origin import Origin
from agentmem.errors import InputError
from agentmem.format import count, some
from agentmem.learning.diff import effect_words, short
from agentmem.text_file import BOM, decode, open_existing, refuse_foreign

Format = Literal["json", "markdown", "prompt", "agents-md"]
BEGIN = "<!-- agentmem:begin -->"
END = "<!-- agentmem:end -->"
GATED = "A gated data set had a part in it."


def export(
    library: ExperienceLibrary, format: Format, *, allow_gated: bool = False, prior_tokens: int = 2000
) -> str:
    """A library as text.

    Args:
        library: what to export.
        format: `json`: all of it, as `load_library` reads it. `markdown`: for people, with ids, conditions and
            evidence. `prompt`: the very text that an agent is given. `agents-md`: a section for an AGENTS.md.
        allow_gated: export also what a gated data set had a part in.
        prior_tokens: of `prompt`: tokens at most, as in a run.

    Raises:
        InputError: a gated data set had a part in an experience, and `allow_gated` is not set.

    Example:
        >>> from agentmem.domain.operation import Add
        >>> export(ExperienceLibrary().apply([Add(text="Check units.")]), "agents-md").splitlines()[1:-1]
        ['## Lessons from experience', '', '- Check units.']
    """
    _refuse_gated(library, format, allow_gated)
    match format:
        case "json":
            return library.to_json()
        case "markdown":
            return _markdown(library)
        case "prompt":
            return str(render_prior(library, max_tokens=prior_tokens))
        case "agents-md":
            return f"{BEGIN}\n{_lessons(library)}\n{END}\n"
    assert_never(format)


def write_export(
    library: ExperienceLibrary,
    path: str | os.PathLike[str],
    format: Format,
    *,
    allow_gated: bool = False,
    prior_tokens: int = 2000,
) -> None:
    """Write `export` to a file, whole or not at all.

    An `agents-md` section takes the place of the one that the file has, or is put at its end; the rest of the file
    stays as it is, byte for byte.

    Raises:
        InputError: see `export`; or the file cannot be written, or its section has lost one of its markers.
    """
    text = export(library, format, allow_gated=allow_gated, prior_tokens=prior_tokens)
    if format == "agents-md" and Path(path).exists():
        with open_existing(path, "file for the section") as file:
            content = file.read()
        refuse_foreign(content, path)
        mark = BOM.decode() if content.startswith(BOM) else ""
        text = mark + put_section(decode(content.removeprefix(BOM), path=path, where=""), text, where=str(path))
    atomic_write(path, text)


def put_section(document: str, section: str, *, where: str = "the document") -> str:
    """`document` with `section` in the place of the one between its markers, or at its end.

    Raises:
        InputError: there is one marker without the other, or there are several.
    """
    starts, ends = document.count(BEGIN), document.count(END)
    if (starts, ends) not in ((0, 0), (1, 1)) or document.find(END) < document.find(BEGIN):
        raise InputError(
            f"{where} has {starts} times {BEGIN} and {ends} times {END}; there must be one of each, in this order, "
            "or none. Mend that by hand."
        )
    if "\r\n" in document:
        section = section.replace("\n", "\r\n")
    if not starts:
        line = "\r\n" if "\r\n" in document else "\n"
        gap = "" if not document else line if document.endswith("\n") else 2 * line
        return document + gap + section
    head, rest = document[: document.index(BEGIN)], document[document.index(END) + len(END) :]
    return head + section.rstrip("\r\n") + rest


def _refuse_gated(library: ExperienceLibrary, format: Format, allow_gated: bool) -> None:
    shown = (*library, *library.retired) if format == "json" else library.experiences
    gated = [experience.id for experience in shown if experience.gated]
    if gated and not allow_gated:
        raise InputError(
            f"A gated data set had a part in {count(len(gated), 'experience')}: {some(gated)}. Its terms may forbid "
            "to pass them on; if they do not, export with --allow-gated (allow_gated=True)."
        )


def _markdown(library: ExperienceLibrary) -> str:
    lessons = [experience for experience in library if experience.kind == "lesson"]
    examples = [experience for experience in library if experience.kind == "example"]
    parts = [
        f"# Experience library, version {library.version}",
        f"{count(len(lessons), 'lesson')}, {count(len(examples), 'worked example')}.",
    ]
    if lessons:
        parts += ["## Lessons", "\n".join(map(_lesson, lessons))]
    if examples:
        parts += ["## Worked examples", *map(_example, examples)]
    return "\n\n".join(parts) + "\n"


def _lesson(lesson: Experience) -> str:
    lines = [f"- **{lesson.id}** {_line(lesson.text)}"]
    lines += [f"  - Applies when: {_line(lesson.when)}"] if lesson.when else []
    lines += [f"  - Does not apply when: {_line(lesson.when_not)}"] if lesson.when_not else []
    return "\n".join([*lines, *(f"  - {line}" for line in _evidence(lesson))])


def _example(example: Experience) -> str:
    lines = [f"### {example.id}", ""]
    for turn in example.turns:
        text = clean(turn.content)
        fence = "`" * max(3, 1 + max((len(run) for run in _runs(text)), default=0))
        lines += ["Question:" if turn.role == "user" else "Answer:", "", f"{fence}text", text, fence, ""]
    return "\n".join(lines + _evidence(example)).rstrip("\n")


def _runs(text: str) -> list[str]:
    """The runs of backticks in a text; a fence must be longer than all of them."""
    return "".join(char if char == "`" else " " for char in text).split()


def _evidence(experience: Experience) -> list[str]:
    lines = [f"Evidence: {_origin(origin)}" for origin in experience.origins]
    lines += [f"Merged from: {', '.join(experience.parents)}"] if experience.parents else []
    lines += [f"Effect: {effect_words(experience)} on the reward"] if experience.effect else []
    lines += [f"Revision: {experience.revision}"] if experience.revision > 1 else []
    lines += ["In quarantine: no prompt shows it."] if experience.trust == "quarantined" else []
    return lines + ([GATED] if experience.gated else [])


def _origin(origin: Origin) -> str:
    by = f", by {origin.extractor}" if origin.extractor else ""
    if not origin.rewards:
        return f"{_line(origin.task_id)}{by}"
    attempts = ", ".join(map(str, origin.rollouts)) or "–"
    rewards = ", ".join(f"{reward:g}" for reward in origin.rewards)
    return f"task {_line(origin.task_id)}, step {origin.step + 1}, attempt {attempts} of rewards {rewards}{by}"


def _lessons(library: ExperienceLibrary) -> str:
    lessons, examples = [], []
    for experience in library.trusted:
        if experience.kind == "example":
            turns = [_line(turn.content) for turn in experience.turns]
            examples.append(f"- {' → '.join(short(turn, 120) for turn in turns)}")
        else:
            when = f" (Applies when: {_line(experience.when)})" if experience.when else ""
            when_not = f" (Does not apply when: {_line(experience.when_not)})" if experience.when_not else ""
            lessons.append(f"- {_line(experience.text)}{when}{when_not}")
    parts = ["## Lessons from experience"]
    parts += ["\n".join(lessons)] if lessons else []
    parts += ["Worked examples:", "\n".join(examples)] if examples else []
    return "\n\n".join(parts if len(parts) > 1 else [*parts, "None yet."])


def _line(text: str) -> str:
    """One line that cannot end an HTML comment, begin one, or pass for our markers."""
    return " ".join(clean(text).replace("<!--", "<! --").replace("-->", "-- >").split())
