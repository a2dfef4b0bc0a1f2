"""Any document as text: which converter takes it, in a process that may be killed, or one sentence why none does."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agentmem.errors import InputError, SandboxError, ToolError
from agentmem.sandbox.thread import in_thread
from agentmem.sandbox.worker import Worker
from agentmem.tools import archive
from agentmem.tools.files import FileContent
from agentmem.tools.kinds import Kind, decoded, kind_of

CHARACTERS = 2_000_000
"""How much text is kept of one document."""
MEMORY_MB = 4096
"""Address space of a converting process."""


async def as_text(file: FileContent, *, part: str = "", seconds: float = 30.0, charset: str | None = None) -> str:
    """The text of a file.

    Args:
        file: PDF, Word, Excel, PowerPoint, EPUB, notebook, HTML, zip, or any text.
        part: pages or slides (`3-5`) or cells (`Sheet1!A1:C9`); empty for all.
        seconds: how long it may take.
        charset: what is declared about its encoding.

    Raises:
        ToolError: it is empty, encrypted, damaged, or nothing that text can be made of; with an `error_class`.
        TimeoutError: it took too long; the converting process was killed.
    """
    kind, form = await in_thread(lambda: kind_of(file))
    if kind in _PARTS:
        return await _document(file, kind, part, seconds, charset)
    if part.strip():
        raise ToolError(f"{file.name!r} has no parts; use `start` to read on.", error_class="arguments")
    if kind in ("html", "docx", "epub", "ipynb"):
        return await _document(file, kind, "", seconds, charset)
    if kind == "zip":
        return await in_thread(lambda: archive.contents(file))
    if kind == "text":
        return await in_thread(lambda: _plain(file, charset))
    raise _no_text(file, kind, form)


def require_converter() -> None:
    """Say at once that documents could not be read.

    Raises:
        InputError: markitdown is not installed.
    """
    if missing := [name for name in ("markitdown", "openpyxl", "pypdfium2") if find_spec(name) is None]:
        raise InputError(
            f'Reading documents needs {", ".join(missing)}, which is not installed: pip install "agentmem[files]".'
        )


async def _document(file: FileContent, kind: Kind, part: str, seconds: float, charset: str | None) -> str:
    worker = _worker()
    with tempfile.NamedTemporaryFile(suffix=f".{kind}") as copy:
        await in_thread(lambda: Path(copy.name).write_bytes(file.content))
        payload = {
            "path": copy.name,
            "kind": kind,
            "part": part,
            "charset": charset or "",
            "characters": CHARACTERS,
            "seconds": 0.6 * seconds,
        }
        try:
            async with asyncio.timeout(seconds):
                told = await worker.call(payload, seconds=seconds)
        except TimeoutError:
            raise TimeoutError(
                f"reading {file.name!r} took longer than {seconds:.0f} s; read a part of it"
            ) from None
        except SandboxError as error:
            why = "it took too much memory or crashed its reader"
            raise ToolError(f"{file.name!r} cannot be read: {why}.", error_class="unreadable") from error
    if "problem" in told:
        raise ToolError(f"{file.name!r} cannot be read: {told['why']}.", error_class=told["problem"])
    text, note = str(told["text"]), told["note"]
    return f"{text}\n\n[{note}]" if note else text


def _plain(file: FileContent, charset: str | None) -> str:
    text = (decoded(file.content, charset=charset) or "").replace("\r\n", "\n").replace("\r", "\n")
    if file.suffix == ".json" and text.count("\n") < 3 and len(text) > 2000:
        try:  # all in one line cannot be read on from a line
            return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
        except (ValueError, RecursionError):
            pass
    return text


def _no_text(file: FileContent, kind: Kind, form: str) -> ToolError:
    size = f"{len(file.content) / 1024:.0f} kB"
    match kind:
        case "empty":
            return ToolError(f"{file.name!r} is empty.", error_class="empty")
        case "encrypted":
            return ToolError(
                f"{file.name!r} is encrypted; without its password it cannot be read.", error_class="encrypted"
            )
        case "old office":
            what = f"is in an old Office format ({form})"
        case "image" | "audio" | "video":
            what = f"is {'a' if kind == 'video' else 'an'} {kind} file ({form}, {size}), which you are not shown"
        case _:
            what = f"is binary ({form}, {size}), not text"
    return ToolError(
        f"{file.name!r} {what}. Work on it with the python tool, if you have it.", error_class="no_text"
    )


@cache
def _workers() -> list[Worker]:
    code = Path(__file__).with_name("convert_worker.py")
    return [Worker(code, memory_mb=MEMORY_MB) for _ in range(min(4, os.cpu_count() or 1))]


def _worker() -> Worker:
    return min(_workers(), key=lambda worker: worker.waiting)


_PARTS = ("pdf", "xlsx", "pptx")
