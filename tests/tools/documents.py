"""Small real documents, made without the programs that usually make them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence


def pdf(pages: Sequence[str], *, trailer: str = "") -> bytes:
    """A PDF with one line of text a page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for n, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        about = "/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
        page = f"<</Type/Page{about}/Contents {5 + 2 * n} 0 R>>"
        objects += [page.encode(), b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream)]
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = f"trailer<</Size {len(objects) + 1}/Root 1 0 R{trailer}>>\nstartxref\n{len(out)}\n%%EOF".encode()
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


ENCRYPTED = (
    "/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<"
    + "ab" * 32
    + ">/U<"
    + "cd" * 32
    + ">>>/ID[<"
    + "00" * 16
    + "><"
    + "00" * 16
    + ">]"
)
"""A trailer that says: encrypted, with a password that nobody knows."""


def archive(members: Mapping[str, bytes | str], *, level: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", level) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return buffer.getvalue()


_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def docx(paragraphs: Sequence[str], *, link: str = "") -> bytes:
    """A Word document; with `link`, one that wants a picture from elsewhere."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    if link:
        body += (
            f'<w:p><w:r><w:drawing><wp:inline xmlns:wp="{_DRAWING}/wordprocessingDrawing">'
            f'<a:graphic xmlns:a="{_DRAWING}/main"><a:graphicData>'
            f'<pic:pic xmlns:pic="{_DRAWING}/picture"><pic:blipFill>'
            f'<a:blip xmlns:r="{_RELATIONS}" r:link="rId9"/></pic:blipFill></pic:pic></a:graphicData></a:graphic>'
            "</wp:inline></w:drawing></w:r></w:p>"
        )
    relation = (
        f'<Relationship Id="rId9" Type="{_RELATIONS}/image" Target="{link}" TargetMode="External"/>'
        if link
        else ""
    )
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            f'ContentType="{rels}"/><Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{_RELATIONS}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{relation}'
            "</Relationships>",
            "word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>',
        }
    )


def xlsx() -> bytes:
    """A workbook of two sheets, with a formula that was never worked out."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.title = "Data"
    for row in (["name", "x", "y"], ["a|b", 1, 2.5], [], [None, None, "=SUM(B1:B2)"]):
        sheet.append(row)
    book.create_sheet("Two")["B7"] = "deep"
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def pptx(titles: Sequence[str]) -> bytes:
    """A presentation with one title a slide."""
    from pptx import Presentation

    made = Presentation()
    for title in titles:
        made.slides.add_slide(made.slide_layouts[5]).shapes.title.text = title
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()
