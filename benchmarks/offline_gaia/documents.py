"""Documents, pictures and sounds, written byte by byte: the same content is the same file, whenever it is made."""

from __future__ import annotations

import io
import math
import struct
import wave
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

MOMENT = (2031, 1, 1, 0, 0, 0)
"""When everything was made."""
RATE = 8000
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = "application/vnd.openxmlformats-officedocument"
Cell = str | int | float


def archive(members: Mapping[str, bytes | str]) -> bytes:
    """A zip archive without compression, which differs between builds of zlib."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as made:
        for name, content in members.items():
            about = zipfile.ZipInfo(name, MOMENT)
            about.create_system, about.external_attr = 3, 0o644 << 16
            made.writestr(about, content)
    return buffer.getvalue()


def pdf(pages: Sequence[Sequence[str]]) -> bytes:
    """A PDF with lines of text on each page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for n, lines in enumerate(pages):
        shown = " ".join(f"({line}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 20 TL 72 720 Td {shown} ET".encode("ascii")
        about = "/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
        objects += [
            f"<</Type/Page{about}/Contents {5 + 2 * n} 0 R>>".encode(),
            b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        ]
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF".encode()
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def docx(paragraphs: Sequence[str]) -> bytes:
    """A Word document."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "".join(f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>" for text in paragraphs)
    return _package(
        "word/document.xml",
        f"{_TYPES}.wordprocessingml.document.main+xml",
        {"word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>'},
    )


def xlsx(sheets: Mapping[str, Sequence[Sequence[Cell]]]) -> bytes:
    """A workbook; the texts stand in the cells themselves."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    names = "".join(
        f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, start=1)
    )
    parts = {f"xl/worksheets/sheet{n}.xml": _sheet(rows, main) for n, rows in enumerate(sheets.values(), start=1)}
    book = f'<workbook xmlns="{main}" xmlns:r="{_OFFICE}"><sheets>{names}</sheets></workbook>'
    links = {f"rId{n}": ("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)}
    return _package(
        "xl/workbook.xml",
        f"{_TYPES}.spreadsheetml.sheet.main+xml",
        {"xl/workbook.xml": book, "xl/_rels/workbook.xml.rels": _relations(links), **parts},
        {f"/{part}": f"{_TYPES}.spreadsheetml.worksheet+xml" for part in parts},
    )


def pptx(slides: Sequence[Sequence[str]]) -> bytes:
    """A presentation; each slide is one box of text with some lines."""
    main = "http://schemas.openxmlformats.org/presentationml/2006/main"
    drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
    spaces = f'xmlns:p="{main}" xmlns:a="{drawing}" xmlns:r="{_OFFICE}"'
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    show = f'<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/>'
    show += '<p:notesSz cx="6858000" cy="9144000"/></p:presentation>'
    links = {f"rId{n}": ("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)}
    parts = {f"ppt/slides/slide{n}.xml": _slide(lines, spaces) for n, lines in enumerate(slides, start=1)}
    return _package(
        "ppt/presentation.xml",
        f"{_TYPES}.presentationml.presentation.main+xml",
        {"ppt/presentation.xml": show, "ppt/_rels/presentation.xml.rels": _relations(links), **parts},
        {f"/{part}": f"{_TYPES}.presentationml.slide+xml" for part in parts},
    )


def qr(text: str, *, scale: int = 6, border: int = 4) -> bytes:
    """A PNG picture of a QR code."""
    import segno

    code = segno.make(text, error="m", micro=False, boost_error=False)
    dark = [[bool(module) for module in row] for row in code.matrix]
    width = (len(dark) + 2 * border) * scale
    lines = []
    for y in range(width):
        row = y // scale - border
        bits = [
            not (0 <= row < len(dark) and 0 <= (column := x // scale - border) < len(dark) and dark[row][column])
            for x in range(width)
        ]
        bits += [True] * (-width % 8)
        packed = (sum(bit << 7 - n for n, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8))
        lines.append(b"\0" + bytes(packed))
    head = struct.pack(">IIBBBBB", width, width, 1, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", _stored(b"".join(lines))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def tones(keys: str) -> bytes:
    """A WAV recording of the tones of a telephone's keys (DTMF)."""
    low, high = (697, 770, 852, 941), (1209, 1336, 1477)
    places = {key: divmod(n, 3) for n, key in enumerate("123456789*0#")}
    samples: list[int] = [0] * (RATE // 10)
    for key in keys:
        row, column = places[key]
        for n in range(RATE // 10):
            at = 2 * math.pi * n / RATE
            samples.append(round(9000 * (math.sin(low[row] * at) + math.sin(high[column] * at))))
        samples += [0] * (RATE * 6 // 100)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return buffer.getvalue()


def page(title: str, *parts: str) -> str:
    """A page of the local web; a part is a paragraph, or HTML where it begins with `<`."""
    body = "\n".join(part if part.startswith("<") else f"<p>{part}</p>" for part in parts)
    head = f'<meta charset="utf-8"><title>{title}</title>'
    return f"<!doctype html>\n<html><head>{head}</head>\n<body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"


def links(targets: Mapping[str, str]) -> str:
    """A list of links, by their words."""
    items = "".join(f'<li><a href="{address}">{words}</a></li>' for words, address in targets.items())
    return f"<ul>{items}</ul>"


def table(rows: Sequence[Sequence[object]]) -> str:
    """An HTML table whose first row is its head."""
    head = "".join(f"<th>{cell}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f"<table><tr>{head}</tr>{body}</table>"


def csv(rows: Sequence[Sequence[object]]) -> str:
    """Comma-separated lines; no cell holds a comma."""
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def _package(first: str, kind: str, parts: Mapping[str, str], kinds: Mapping[str, str] | None = None) -> bytes:
    overrides = "".join(
        f'<Override PartName="{part}" ContentType="{about}"/>'
        for part, about in {f"/{first}": kind, **(kinds or {})}.items()
    )
    types = (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    )
    rels = _relations({"rId1": ("officeDocument", first)})
    members = {"[Content_Types].xml": types, "_rels/.rels": rels, **parts}
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    return archive({name: head + content for name, content in members.items()})


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    inside = "".join(
        f'<Relationship Id="{id}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for id, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inside}</Relationships>'


def _sheet(rows: Sequence[Sequence[Cell]], space: str) -> str:
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = []
        for letter, value in zip("ABCDEFGHIJ", row, strict=False):
            if isinstance(value, str):
                inside = f"<is><t>{escape(value)}</t></is>"
                cells.append(f'<c r="{letter}{number}" t="inlineStr">{inside}</c>')
            else:
                cells.append(f'<c r="{letter}{number}"><v>{value}</v></c>')
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    return f'<worksheet xmlns="{space}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def _slide(lines: Sequence[str], spaces: str) -> str:
    text = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in lines)
    place = '<a:xfrm><a:off x="457200" y="457200"/><a:ext cx="8229600" cy="4572000"/></a:xfrm>'
    box = (
        '<p:sp><p:nvSpPr><p:cNvPr id="2" name="Text"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr>'
        f'<p:spPr>{place}<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr>'
        f"<p:txBody><a:bodyPr/><a:lstStyle/>{text}</p:txBody></p:sp>"
    )
    tree = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
    return f"<p:sld {spaces}><p:cSld><p:spTree>{tree}{box}</p:spTree></p:cSld></p:sld>"


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _stored(content: bytes) -> bytes:
    """A zlib stream without compression: the bytes do not depend on who packed them."""
    blocks = [content[at : at + 65535] for at in range(0, len(content), 65535)]
    out = b"\x78\x01"
    for n, block in enumerate(blocks):
        out += struct.pack("<BHH", n == len(blocks) - 1, len(block), len(block) ^ 0xFFFF) + block
    return out + struct.pack(">I", zlib.adler32(content))
