"""What a file is, by its first bytes rather than by its name, and text out of bytes."""

from __future__ import annotations

import codecs
from typing import Literal

from agentmem.tools import archive
from agentmem.tools.files import FileContent

Kind = Literal[
    "pdf", "docx", "xlsx", "pptx", "epub", "ipynb", "html", "zip", "text", "image", "audio", "video", "binary", "empty",
    "encrypted", "old office",
]  # fmt: skip

_MARKS: tuple[tuple[bytes, Kind, str], ...] = (
    (b"%PDF-", "pdf", "PDF"),
    (b"\x89PNG\r\n\x1a\n", "image", "PNG"),
    (b"\xff\xd8\xff", "image", "JPEG"),
    (b"GIF8", "image", "GIF"),
    (b"BM", "image", "BMP"),
    (b"II*\0", "image", "TIFF"),
    (b"MM\0*", "image", "TIFF"),
    (b"ID3", "audio", "MP3"),
    (b"\xff\xfb", "audio", "MP3"),
    (b"\xff\xf3", "audio", "MP3"),
    (b"fLaC", "audio", "FLAC"),
    (b"OggS", "audio", "Ogg"),
    (b"\x1a\x45\xdf\xa3", "video", "Matroska"),
    (b"\x1f\x8b", "binary", "gzip"),
    (b"7z\xbc\xaf", "binary", "7-Zip"),
    (b"Rar!", "binary", "RAR"),
    (b"SQLite format 3", "binary", "SQLite"),
    (b"PAR1", "binary", "Parquet"),
    (b"\x7fELF", "binary", "ELF"),
)
_RIFF: dict[bytes, tuple[Kind, str]] = {
    b"WEBP": ("image", "WebP"),
    b"WAVE": ("audio", "WAV"),
    b"AVI ": ("video", "AVI"),
}
_OFFICE: tuple[tuple[str, Kind], ...] = (
    ("word/document.xml", "docx"),
    ("xl/workbook.xml", "xlsx"),
    ("xl/workbook.bin", "binary"),
    ("ppt/presentation.xml", "pptx"),
    ("META-INF/container.xml", "epub"),
)


def kind_of(file: FileContent) -> tuple[Kind, str]:
    """What a file is, and the name of its format.

    Raises:
        ToolError: it is an archive that would unpack to too much.
    """
    content = file.content
    head = content[:4096]
    if not content.strip():
        return "empty", "empty"
    if archive.is_zip(content):
        names = set(archive.check(file))
        found: Kind = next((kind for name, kind in _OFFICE if name in names), "zip")
        return found, found.upper()
    # One container for the old Word, Excel and PowerPoint, and for encrypted new ones.
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        encrypted = "EncryptedPackage".encode("utf-16-le") in content
        return ("encrypted", "Office") if encrypted else ("old office", file.suffix.lstrip(".") or "Office")
    if head[:4] == b"RIFF" and (riff := _RIFF.get(head[8:12])):
        return riff
    if head[4:8] == b"ftyp":
        return ("audio", "M4A") if head[8:11] == b"M4A" else ("video", "MP4")
    for mark, kind, name in _MARKS:
        if head.startswith(mark) and (len(mark) > 2 or decoded(content[:4096]) is None):
            return kind, name
    text = decoded(content[: 1 << 16])
    if text is None:
        return "binary", file.suffix.lstrip(".") or "unknown"
    start = text.lstrip().lower()
    if start.startswith(("<!doctype html", "<html")) or file.suffix in (".html", ".htm", ".xhtml"):
        return "html", "HTML"
    return ("ipynb", "notebook") if file.suffix == ".ipynb" else ("text", "text")


def decoded(content: bytes, *, charset: str | None = None) -> str | None:
    """Bytes as text; None where they are none.

    A byte order mark counts first, then what was declared, then UTF-8, then what the bytes look like.

    Example:
        >>> decoded("Grüße aus Köln".encode("cp1252")), decoded(bytes(range(32)))
        ('Grüße aus Köln', None)
    """
    for mark, name in _ORDER_MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(name, "replace")
    for name in filter(None, (charset, "utf-8")):
        try:
            codecs.lookup(name)
            text = codecs.getincrementaldecoder(name)("strict").decode(
                content
            )  # half a character at the end is no error
        except (LookupError, UnicodeError, ValueError):
            continue
        return None if _is_noise(text) else text
    if _wide(content):
        return content.decode("utf-16-le" if not content[1] else "utf-16-be", "replace")
    return None if b"\0" in content[:8192] else _guessed(content)


def _guessed(content: bytes) -> str | None:
    sample = content[: 1 << 16]
    names = ["cp1252", "latin-1"]
    # Few high bytes are the accents of a Western language; on those, and on short text, statistics guess wildly.
    if sum(byte >= 0x80 for byte in sample) > 0.3 * len(sample):
        from charset_normalizer import from_bytes

        if best := from_bytes(sample).best():
            names.insert(0, best.encoding)
    for name in names:
        text = content.decode(name, "replace")
        if "\ufffd" not in text[:8192]:
            return None if _is_noise(text) else text
    return None


def _wide(content: bytes) -> bool:
    """Whether this is ASCII in UTF-16 without a mark: every other byte is zero."""
    head = content[:64]
    return len(head) >= 4 and any(not any(head[n::2]) and all(head[1 - n :: 2]) for n in (0, 1))


def _is_noise(text: str) -> bool:
    head = text[:8192]
    odd = sum(char < " " and char not in "\t\n\r\f\x1b" for char in head)
    return "\0" in head or odd > 0.05 * len(head)


_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
