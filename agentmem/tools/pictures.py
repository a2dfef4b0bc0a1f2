"""Image and audio files as parts of a message, where the model takes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from agentmem.domain.media import FORMATS, MOST_BYTES, Media, MediaKind
from agentmem.errors import ToolError
from agentmem.tools.files import FileContent
from agentmem.tools.kinds import kind_of


def media_of(file: FileContent, accepted: Collection[MediaKind]) -> Media | None:
    """The file as a part of a message; None where it is no image or recording, or the model takes none.

    Raises:
        ToolError: the model takes such files, but not this one; the message says how to make one that it takes.
    """
    if not accepted:
        return None
    kind, form = kind_of(file)
    if (kind != "image" and kind != "audio") or kind not in accepted:
        return None
    format = form.lower()
    if format not in FORMATS[kind]:
        known = ", ".join(sorted(FORMATS[kind]))
        raise ToolError(
            f"{file.name!r} is {form}, which you cannot be shown; make it one of {known} with the python tool, if you "
            "have it.",
            error_class="no_text",
        )
    if len(file.content) > MOST_BYTES:
        raise ToolError(
            f"{file.name!r} has {len(file.content) / 1e6:.1f} MB, and you can be shown {MOST_BYTES / 1e6:.0f}; make it "
            "smaller with the python tool, if you have it.",
            error_class="too_large",
        )
    return Media.of(file.content, kind, format, name=file.name)


def shown_with_question(files: Iterable[Path], accepted: Collection[MediaKind]) -> tuple[Media, ...]:
    """Those of a task's files that the model can be shown with the question; the others are left to tools."""
    found = []
    for path in files if accepted else ():
        try:
            if path.stat().st_size <= MOST_BYTES:
                found.append(media_of(FileContent(path.name, path.read_bytes()), accepted))
        except (OSError, ToolError):
            continue
    return tuple(media for media in found if media is not None)
