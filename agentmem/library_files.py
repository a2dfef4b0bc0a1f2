"""An experience library in a file of its own."""

from __future__ import annotations

import os
from pathlib import Path

from agentmem.atomic import atomic_write
from agentmem.domain.experience import ExperienceLibrary
from agentmem.text_file import BOM, decode, open_existing, refuse_foreign


def load_library(path: str | os.PathLike[str]) -> ExperienceLibrary:
    """Read a library that `save_library` or a run wrote.

    Args:
        path: the file, or a run's folder, in which `library.json` is taken.

    Raises:
        InputError: there is no such file, it is no library, or a newer agentmem wrote it.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "library.json"
        >>> save_library(ExperienceLibrary(), file)
        >>> load_library(file) == ExperienceLibrary()
        True
    """
    file = Path(path)
    if file.is_dir() and (file / "library.json").is_file():
        file = file / "library.json"
    with open_existing(file, "experience library") as opened:
        content = opened.read()
    refuse_foreign(content, file)
    return ExperienceLibrary.from_json(decode(content.removeprefix(BOM), path=file, where=""), source=str(file))


def save_library(library: ExperienceLibrary, path: str | os.PathLike[str]) -> None:
    """Write a library as canonical JSON, whole or not at all; equal libraries give the same bytes.

    Args:
        library: what to write.
        path: the file; its folder is made where there is none.

    Raises:
        InputError: it cannot be written; what was there before is untouched.
    """
    atomic_write(path, library.to_json())
