"""Zip archives: listed, and read member by member in memory, never unpacked to disk."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from agentmem.errors import ToolError
from agentmem.tools.files import FILE_MB, FileContent

MEMBERS = 10_000
"""Members that an archive may have."""
TOTAL_MB = 256
"""What all members together may unpack to."""
RATIO = 200
"""How many times its own size an archive may unpack to, from 10 MB on; text rarely passes 20."""
NESTING = 3
"""Archives within archives."""
LISTED = 200


def contents(file: FileContent) -> str:
    """The list of an archive's members, with their sizes.

    Raises:
        ToolError: it is broken, or so made that unpacking it would fill memory.
    """
    with _opened(file) as archive:
        # Not `is_dir`, which fails on a damaged name that is empty.
        members = [member for member in archive.infolist() if not member.filename.endswith("/")]
        lines = [f"{_size(member.file_size):>9}  {member.filename}{_marks(member)}" for member in members[:LISTED]]
    more = f"\n... and {len(members) - LISTED} more" if len(members) > LISTED else ""
    example = f" Read one as `{file.name}/{members[0].filename}`." if members else ""
    return f"A zip archive with {len(members)} files.{example}\n" + "\n".join(lines) + more


def member(file: FileContent, path: str, *, depth: int = 1) -> FileContent:
    """One member of an archive, or of an archive in it.

    Args:
        file: the archive.
        path: the member's path; it may go on into a member that is an archive itself.
        depth: how many archives it is in already.

    Raises:
        ToolError: there is no such member, it is encrypted or damaged, or unpacks to too much.
    """
    if depth > NESTING:
        raise ToolError(
            f"{file.name!r} lies in {depth - 1} archives, and {NESTING} are the most.", error_class="refused"
        )
    path = path.strip("/")
    with _opened(file) as archive:
        names = archive.namelist()
        parts = path.split("/")
        found = next((n for n in range(len(parts), 0, -1) if "/".join(parts[:n]) in names), 0)
        name, rest = "/".join(parts[:found]), "/".join(parts[found:])
        if not found:
            near = get_close_matches(path, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Read `{file.name}` for the list."
            raise ToolError(f"{file.name!r} holds no {path!r}.{hint}", error_class="no_file")
        inner = FileContent(f"{file.name}/{name}", _unpacked(archive, archive.getinfo(name), file.name))
    if not rest:
        return inner
    if not is_zip(inner.content):
        raise ToolError(f"{inner.name!r} is no archive, so there is no {rest!r} in it.", error_class="no_file")
    return member(inner, rest, depth=depth + 1)


def check(file: FileContent) -> list[str]:
    """The names in an archive (or a document that is one), after the same checks; nothing is unpacked.

    Raises:
        ToolError: as `contents`.
    """
    with _opened(file) as archive:
        return archive.namelist()


def is_zip(content: bytes) -> bool:
    """Whether these are the bytes of a zip archive."""
    return content[:4] in (b"PK\x03\x04", b"PK\x05\x06")


@contextmanager
def _opened(file: FileContent) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            _refuse_bomb(archive, file)
            yield archive
    # The last: what a damaged header says of versions and methods that there are none of.
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as error:
        raise ToolError(f"{file.name!r} is a damaged archive: {error}.", error_class="unreadable") from None


def _refuse_bomb(archive: zipfile.ZipFile, file: FileContent) -> None:
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    size = len(file.content)
    why = ""
    if len(members) > MEMBERS:
        why = f"it holds {len(members)} files, and {MEMBERS} are the most"
    elif total > TOTAL_MB << 20:
        why = f"it would unpack to {_size(total)}, and {TOTAL_MB} MB are the most"
    elif total > 10 << 20 and total > RATIO * size:
        why = f"it would unpack to {total // max(1, size)} times its size"
    elif packed > size:
        why = "its members overlap"  # the trick by which few bytes are unpacked many times
    if why:
        raise ToolError(f"{file.name!r} is refused: {why}.", error_class="refused")


def _unpacked(archive: zipfile.ZipFile, about: zipfile.ZipInfo, of: str) -> bytes:
    name = f"{of}/{about.filename}"
    if _escapes(about.filename):
        raise ToolError(f"{name!r} is refused: the path leads out of the archive.", error_class="refused")
    if about.flag_bits & 1:
        raise ToolError(f"{name!r} is encrypted; without its password it cannot be read.", error_class="encrypted")
    if about.file_size > FILE_MB << 20:
        raise ToolError(
            f"{name!r} has {_size(about.file_size)}, and {FILE_MB} MB are the most.", error_class="too_large"
        )
    try:
        with archive.open(about) as opened:
            return opened.read(about.file_size + 1)
    except Exception as error:  # zlib, bz2 and lzma have errors of their own
        raise ToolError(f"{name!r} is damaged: {error}.", error_class="unreadable") from None


def _escapes(name: str) -> bool:
    return name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":"


def _marks(about: zipfile.ZipInfo) -> str:
    encrypted = " (encrypted)" if about.flag_bits & 1 else ""
    return encrypted + (" (its path leads out of the archive; refused)" if _escapes(about.filename) else "")


def _size(count: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count_in = count / 1024
        count = round(count_in)
    return f"{count} GB"
