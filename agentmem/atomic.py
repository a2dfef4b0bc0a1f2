"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from agentmem.errors import InputError


def atomic_write(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, so that a reader, a crash or a full disk finds the old file or the new one, whole.

    The new content reaches the disk before it takes the old one's place. A link is followed, and an existing file
    keeps its permissions.

    Args:
        path: the file; its folder is made where there is none.
        text: the new content; its newlines are written as they are.

    Raises:
        InputError: the file cannot be written; what was there before is untouched.
    """
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{target.name[:200]}.{secrets.token_hex(4)}.tmp"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_through(temporary, text.encode(), _mode_of(target))
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)
    except UnicodeEncodeError as error:
        raise InputError(
            f"Cannot write {path}: its text has half a character (a lone surrogate) at {error.start}; "
            "remove it. What was there before is untouched."
        ) from None
    except OSError as error:
        raise InputError(
            f"Cannot write {path}: {error.strerror or error}. What was there before is untouched; "
            "free some space, or choose a place that you may write to."
        ) from error


def _write_through(path: Path, content: bytes, mode: int | None) -> None:
    # O_EXCL: nobody's file, and no planted link, is ever written over. 0o666 leaves the rest to the umask.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
        if mode is not None:
            os.chmod(path, mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable; Windows neither needs nor allows it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
