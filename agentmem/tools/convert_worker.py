"""Documents to text with markitdown and openpyxl, in a process of its own: a `Worker` runs this file by its path."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from typing import Any

import openpyxl
import pypdfium2
from markitdown import StreamInfo
from markitdown.converters import (
    DocxConverter,
    EpubConverter,
    HtmlConverter,
    IpynbConverter,
    PdfConverter,
    PptxConverter,
)
from openpyxl.utils.cell import get_column_letter, range_boundaries

# Each by itself: `MarkItDown` would also load plugins, call `exiftool`, and send audio to a service.
CONVERTERS = {
    "docx": DocxConverter,
    "epub": EpubConverter,
    "html": HtmlConverter,
    "ipynb": IpynbConverter,
    "pptx": PptxConverter,
}


def handle(payload: dict[str, Any]) -> dict[str, str]:
    """The text of a document, with a note where it is not all of it; or the problem with it.

    Args:
        payload: `path`, `kind`, `part` (pages, slides or cells; empty for all), `characters` and `seconds` that it
            may take, and `charset`.
    """
    try:
        match payload["kind"]:
            case "pdf":
                return _pdf(payload)
            case "xlsx":
                return _xlsx(payload)
            case kind:
                return _other(payload, kind)
    except _Problem as problem:
        return {"problem": problem.kind, "why": str(problem)}
    except (MemoryError, RecursionError) as error:
        return {"problem": "too_large", "why": f"it is too large or too deeply nested ({type(error).__name__})"}
    except Exception as error:
        return {"problem": "unreadable", "why": f"it is damaged ({type(error).__name__}: {str(error)[:200]})"}


class _Problem(Exception):
    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def _other(payload: dict[str, Any], kind: str) -> dict[str, str]:
    with open(payload["path"], "rb") as file:
        info = StreamInfo(extension=f".{kind}", charset=payload.get("charset") or None)
        text = CONVERTERS[kind]().convert(file, info).markdown  # type: ignore[no-untyped-call]
    if kind == "pptx":
        text = _slides(text, payload["part"])
    elif payload["part"]:
        raise _Problem("arguments", "only PDF files, slides and workbooks have parts; use `start` instead")
    return {"text": text[: payload["characters"]], "note": _cut(text, payload)}


def _slides(text: str, part: str) -> str:
    pieces = re.split(r"<!-- Slide number: (\d+) -->", text)
    slides = list(zip(map(int, pieces[1::2]), pieces[2::2], strict=True))
    first, last = _range(part, len(slides), "slide")
    return "\n\n".join(
        f"--- slide {n} of {len(slides)} ---\n{slide.strip()}" for n, slide in slides if first <= n <= last
    )


def _pdf(payload: dict[str, Any]) -> dict[str, str]:
    deadline = time.monotonic() + payload["seconds"]
    try:
        document = pypdfium2.PdfDocument(payload["path"])
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error) or "ecurity" in str(error):
            raise _Problem("encrypted", "it is encrypted, and its password is not known") from None
        raise
    first, last = _range(payload["part"], len(document), "page")
    texts: list[str] = []
    note, page = "", first
    for page in range(first, last + 1):
        single = io.BytesIO()
        with pypdfium2.PdfDocument.new() as alone:
            alone.import_pages(document, [page - 1])
            alone.save(single)
        single.seek(0)
        text = PdfConverter().convert(single, StreamInfo(extension=".pdf")).markdown.strip()
        texts.append(f"--- page {page} of {len(document)} ---\n{text or '(no text on this page)'}")
        full = sum(map(len, texts)) > payload["characters"]
        if page < last and (full or time.monotonic() > deadline):
            note = f"Only pages {first} to {page} of {len(document)} were read; go on with part='{page + 1}-'."
            break
    if all(text.endswith("(no text on this page)") for text in texts):
        why = f"its pages {first} to {page} hold no text, perhaps scanned pictures; try the python tool"
        raise _Problem("no_text", why)
    return {"text": "\n\n".join(texts), "note": note}


def _range(part: str, count: int, what: str) -> tuple[int, int]:
    if not part.strip():
        return 1, count
    found = re.fullmatch(r"\s*(\d+)?\s*(?:(-|to)\s*(\d+)?)?\s*", part)
    first = int(found[1] or 1) if found else 0
    last = (int(found[3]) if found[3] else count if found[2] else first) if found else 0
    if not found or not 1 <= first <= min(last, count):
        raise _Problem(
            "arguments", f"it has {what}s 1 to {count}, so part={part!r} means none; write such as '2-{count}'"
        )
    return first, min(last, count)


def _xlsx(payload: dict[str, Any]) -> dict[str, str]:
    # Read-only mode streams; twice, because a file holds both formulas and the values they last had.
    values = openpyxl.load_workbook(payload["path"], read_only=True, data_only=True)
    formulas = openpyxl.load_workbook(payload["path"], read_only=True)
    sheets, box = _cells(payload["part"], [sheet.title for sheet in values.worksheets])
    lines: list[str] = []
    size = 0
    for title in sheets:
        for sheet in (values[title], formulas[title]):
            sheet.reset_dimensions()  # what a file says of its size may be wrong
        for line in _table(title, values[title], formulas[title], box):
            lines.append(line)
            size += len(line)
            if size > payload["characters"]:
                return {
                    "text": "\n".join(lines),
                    "note": "The rest was not read; name cells with part='Sheet!A1:F500'.",
                }
    return {"text": "\n".join(lines), "note": ""}


def _cells(part: str, titles: list[str]) -> tuple[list[str], tuple[int, int, int, int]]:
    everything = (1, 1, 16384, 1048576)
    if not part.strip():
        return titles, everything
    name, mark, cells = part.strip().rpartition("!")
    by_name = {title.lower(): title for title in titles}
    if not mark and part.strip().strip("'").lower() in by_name:
        name, cells = part, ""
    name = name.strip().strip("'")
    if name and name.lower() not in by_name:
        raise _Problem("arguments", f"it has no sheet {name!r}, but {', '.join(map(repr, titles))}")
    name = by_name[name.lower()] if name else titles[0]
    try:
        box = range_boundaries(cells.replace("$", "").upper()) if cells else everything
        bounds = tuple(given or other for given, other in zip(box, everything, strict=True))
    except (ValueError, TypeError):
        known = ", ".join(map(repr, titles))
        why = f"part={part!r} is no cell such as 'B7', no range such as 'A1:C9', and none of its sheets {known}"
        raise _Problem("arguments", why) from None
    return [name], bounds  # type: ignore[return-value]


def _table(title: str, values: Any, formulas: Any, box: tuple[int, int, int, int]) -> Iterator[str]:
    """A sheet as a table whose rows and columns are named as in Excel; empty rows are left out."""
    left, top, right, bottom = box
    rows, columns = (None if bottom == 1048576 else bottom), (None if right == 16384 else right)
    where = {"min_row": top, "max_row": rows, "min_col": left, "max_col": columns}
    yield f'## Sheet "{title}"'
    width = 0
    for number, (row, source) in enumerate(
        zip(values.iter_rows(**where), formulas.iter_rows(**where), strict=False), start=top
    ):
        texts = [_text(cell.value, origin.value) for cell, origin in zip(row, source, strict=False)]
        while texts and not texts[-1]:
            texts.pop()
        if not texts:
            continue
        if len(texts) > width:
            width = len(texts)
            letters = " | ".join(get_column_letter(left + n) for n in range(width))
            yield f"|  | {letters} |"
        yield f"| {number} | {' | '.join(texts)} |"
    if not width:
        yield "(no values)"


def _text(value: Any, origin: Any) -> str:
    shown = origin if value is None else value  # a formula whose value was never stored is shown itself
    if shown is None:
        return ""
    if isinstance(shown, float) and shown.is_integer() and abs(shown) < 1e15:
        shown = int(shown)
    return re.sub(r"\s*\n\s*", " / ", str(getattr(shown, "text", shown))).replace("|", "\\|")


def _cut(text: str, payload: dict[str, Any]) -> str:
    return (
        f"Only its first {payload['characters']} characters were kept."
        if len(text) > payload["characters"]
        else ""
    )
