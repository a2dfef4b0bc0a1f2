"""Which files a tool may read, and how: those of the attempt's folder, the task's own, and what the user opened up."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from agentmem.errors import ToolError
from agentmem.tools.tool import ToolContext

FILE_MB = 64
"""Larger files are for the python tool."""


@dataclass(frozen=True)
class FileContent:
    """What a file held when it was read."""

    name: str
    """How the model named it."""
    content: bytes
    ending: str = ""
    """What its name should end with, such as `.html`, where something else than the name says so."""

    @property
    def suffix(self) -> str:
        """The ending in small letters."""
        return (self.ending or PurePosixPath(self.name).suffix).lower()


def read_content(path: str, context: ToolContext, *, folders: Sequence[Path] = ()) -> tuple[FileContent, str]:
    """Read a file that the model named, if it may.

    Args:
        path: relative to the attempt's folder, or the whole path of a permitted file, or a task file's name. It may
            go on behind a file's name, into an archive.
        context: the attempt's folder and the task's files.
        folders: other folders whose files may be read.

    Returns:
        The file, and the part of the path behind it (empty where there is none).

    Raises:
        ToolError: there is no such file, it lies elsewhere, or it cannot be read.
    """
    if "\0" in path or not path.strip():
        raise ToolError(f"{path!r} names no file.", error_class="no_file")
    asked = Path(path.strip())
    roots = [context.folder, *folders]
    own = {file.absolute() for file in context.files}
    outside = True
    among_own = [place for file in own if (place := _place(file, asked)) is not None]
    for candidate in (*(root / asked for root in roots), *among_own):
        # Looked at by name first, so that nothing is told about what lies elsewhere, not even whether it exists.
        if not _permitted(Path(os.path.realpath(candidate)), roots, own):
            continue
        outside = False
        with contextlib.suppress(OSError, ValueError):
            file, rest = _file_and_rest(candidate)
            return FileContent(str(asked), _read(file, path, roots, own)), rest
    if outside:
        raise _outside(path)
    raise ToolError(_not_there(path, roots, own), error_class="no_file")


def _permitted(real: Path, roots: Sequence[Path], own: set[Path]) -> bool:
    places = {Path(os.path.realpath(file)) for file in own}
    return any(real.is_relative_to(os.path.realpath(root)) for root in roots) or any(
        place == real or place in real.parents for place in places
    )


def _place(file: Path, asked: Path) -> Path | None:
    """The path that is meant if it is a task's file, by its whole path or its name; it may go on into an archive."""
    if asked == file or file in asked.parents:
        return asked
    return file.joinpath(*asked.parts[1:]) if asked.parts and asked.parts[0] == file.name else None


def _file_and_rest(path: Path) -> tuple[Path, str]:
    """The file on the way of `path`, and what comes behind it."""
    for place in (path, *path.parents):
        if place.is_file():
            return place, "" if place == path else path.relative_to(place).as_posix()
        if place.exists():
            break
    raise FileNotFoundError(str(path))


def _read(file: Path, path: str, roots: Sequence[Path], own: set[Path]) -> bytes:
    """The content of the very file that was checked: it is opened first, and then asked where it lies."""
    # Not blocking: a pipe without a writer would be waited for in open().
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as opened:
        about = os.fstat(descriptor)
        if not _permitted(_real_path(descriptor, file), roots, own):
            raise _outside(path)
        if not stat.S_ISREG(about.st_mode):
            raise ToolError(f"{path!r} is no ordinary file.", error_class="refused")
        content = opened.read((FILE_MB << 20) + 1)
    if len(content) > FILE_MB << 20:
        raise ToolError(
            f"{path!r} has {about.st_size / 2**20:.0f} MB, and {FILE_MB} MB are the most; read parts of it with the "
            "python tool.",
            error_class="too_large",
        )
    return content


def _real_path(descriptor: int, file: Path) -> Path:
    """Where an open file lies. The system itself knows; asking by name again could be answered about another."""
    known = f"/proc/self/fd/{descriptor}"
    return Path(os.path.realpath(known if os.path.exists(known) else file))


def _outside(path: str) -> ToolError:
    return ToolError(
        f"{path!r} lies outside of the folder that may be read; name a file of the working folder, such as "
        "`notes.txt`, or one of the task's files.",
        error_class="refused",
    )


def _not_there(path: str, roots: Sequence[Path], own: set[Path]) -> str:
    names = sorted({file.name for file in own})
    for root in roots:
        with contextlib.suppress(OSError):
            names += sorted(entry.name + "/" * entry.is_dir() for entry in root.iterdir())
    names = list(dict.fromkeys(names))  # the folder holds copies of the task's files
    near = get_close_matches(path, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"There is no file {path!r}.{hint} {'There is: ' + listed if names else 'There is none to be read'}."
