"""A text file that a user named: found and decoded, or one sentence that names the fault and the repair."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from agentmem.errors import InputError

BOM = b"\xef\xbb\xbf"
"""UTF-8's byte order mark, which some editors put at the start of a file."""


def open_existing(path: str | os.PathLike[str], what: str) -> BinaryIO:
    """Open a file for reading its bytes.

    Args:
        path: what the user named.
        what: what it should be, such as `"task file"`.

    Raises:
        InputError: there is no such file (files with a similar name are offered), or it cannot be read.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise InputError(f"{path} is a folder; name the {what} in it.{_offer(_names(file), file, 'It holds')}")
        return file.open("rb")
    except FileNotFoundError:
        raise InputError(f"There is no {what} {str(path)!r}.{_near(file)}") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"Cannot read the {what} {str(path)!r}: {reason}; check its name and permissions."
        ) from None


def decode(content: bytes, *, path: str | os.PathLike[str], where: str) -> str:
    """UTF-8 bytes as text.

    Args:
        content: bytes without a byte order mark.
        path: the file they are from.
        where: their place in it, such as `"line 3"`; empty for the whole file.

    Raises:
        InputError: they are not UTF-8; the message names the byte and the command that converts the file.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        spot = f"{where}, byte {error.start + 1}" if where else f"byte {error.start + 1}"
        # Nobody can know what it is; most often it is Windows' Western encoding.
        repair = _repair(path, "WINDOWS-1252")
        raise InputError(f"{path}, {spot}: 0x{content[error.start]:02x} is not UTF-8. {repair}") from None


def refuse_foreign(start: bytes, path: str | os.PathLike[str]) -> None:
    """Refuse a file whose first bytes show that it is no UTF-8 text: compressed, Parquet, or UTF-16.

    Raises:
        InputError: names what it is and the command that converts it.
    """
    for mark, name in _MARKS.items():
        if start.startswith(mark):
            raise InputError(f"{path}, line 1, byte 1: this is {name}, not UTF-8. {_repair(path, name)}")
    for mark, kind in _FORMATS.items():
        if start.startswith(mark):
            raise InputError(f"{path}, line 1, byte 1: this is {kind}, not text; unpack or convert it first.")
    # ASCII in UTF-16 without a mark: every other byte is zero.
    head = start[:64]
    for offset, name in ((1, "UTF-16LE"), (0, "UTF-16BE")):
        if len(head) >= 4 and not any(head[offset::2]) and all(head[1 - offset :: 2]):
            raise InputError(
                f"{path}, line 1, byte {offset + 1}: this is {name}, not UTF-8. {_repair(path, name)}"
            )


_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_FORMATS = {
    b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a zip file (or a spreadsheet)",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"BZh": "a bzip2 file",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
}


def _repair(path: str | os.PathLike[str], encoding: str) -> str:
    name = Path(path)
    return (
        f"Convert it, for example (if it is {encoding}): "
        f"iconv -f {encoding} -t UTF-8 {name.name} > {name.stem}.utf8{name.suffix}"
    )


def _near(file: Path) -> str:
    """The files beside it whose names are similar."""
    if not file.parent.is_dir():
        return f" There is no folder {str(file.parent)!r} either; check the path (you are in {os.getcwd()})."
    names = _names(file.parent)
    lower = {name.lower(): name for name in names}
    near = [lower[name] for name in get_close_matches(file.name.lower(), lower, n=3, cutoff=0.6)]
    if near:
        return _offer(near, file.parent, "Did you mean")
    return (
        _offer(names, file.parent, f"{str(file.parent)!r} holds") or f" The folder {str(file.parent)!r} is empty."
    )


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []


def _offer(names: list[str], folder: Path, lead: str) -> str:
    if not names:
        return ""
    shown = ", ".join(str(folder / name) for name in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f" {lead} {shown}{more}{'?' if lead.startswith('Did') else '.'}"
