"""Documents made for a test: sound ones and hostile ones."""

import io
import zipfile
import zlib
from collections.abc import Callable

_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def pdf(*pages: str, packed: int = 0) -> bytes:
    """Pages of some lines each; `packed`: bytes of blanks that each also unpacks to."""
    lines = [text.replace("\n", ") Tj 0 -14 Td (") for text in pages]
    contents = [f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("cp1252") for text in lines]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for n, content in enumerate(contents):
        stream = zlib.compress(content + b" " * packed)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        head = f"<< /Length {len(stream)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + stream + b"\nendstream")
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1))
    out.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


def locked_pdf() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("secreto"))))
    writer.encrypt("clave", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def word(*paragraphs: str, before: str = "") -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    return packed(
        {"word/document.xml": f"<?xml version='1.0'?>{before}<w:document {_WORD}>{body}</w:document>"}
    )


def excel(**sheets: list[list[object]]) -> bytes:
    from openpyxl import Workbook

    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


def excel_with(sheet: str) -> bytes:
    """A sound workbook whose one sheet is this XML."""
    source = zipfile.ZipFile(io.BytesIO(excel(uno=[["x"]])))
    parts = {name: source.read(name).decode() for name in source.namelist()}
    return packed({**parts, "xl/worksheets/sheet1.xml": sheet.replace("NAMESPACE", _SHEET)})


def packed(parts: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def bomb(name: str, megabytes: int) -> bytes:
    """An archive of one part that unpacks to so many megabytes of letters."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as part:
        part.write(f"<w:document {_WORD}><w:p><w:r><w:t>".encode())
        for _ in range(megabytes):
            part.write(b"a" * 1024**2)
        part.write(b"</w:t></w:r></w:p></w:document>")
    return out.getvalue()


def lying_bomb(name: str, megabytes: int) -> bytes:
    """The same, but it says that it unpacks to a hundred bytes."""
    data = bytearray(bomb(name, megabytes))
    central = data.rindex(b"PK\x01\x02")
    data[central + 24 : central + 28] = (100).to_bytes(4, "little")
    return bytes(data)


LAUGHS = (
    "<!DOCTYPE l [<!ENTITY a0 'ha'>"
    + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12))
    + "]>"
)
"""Ten to the eleventh entities, in a thousand characters."""
QUADRATIC = f"<!DOCTYPE l [<!ENTITY a '{'x' * 50_000}'>]>"


def _sheet(rows: str, before: str = "") -> bytes:
    return excel_with(f"{before}<worksheet NAMESPACE><sheetData>{rows}</sheetData></worksheet>")


_DEEP = b"%PDF-1.4\n1 0 obj\n" + b"[" * 200_000 + b"]" * 200_000
_FAR_CELLS = "".join(f'<row r="{n * 5000}"><c r="XFD{n * 5000}"><v>1</v></c></row>' for n in range(1, 200))
_LAUGHING_CELL = '<row r="1"><c r="A1" t="inlineStr"><is><t>&a11;</t></is></c></row>'
HOSTILE: dict[str, Callable[[], bytes]] = {
    "unpacks.docx": lambda: bomb("word/document.xml", 300),
    "lies.docx": lambda: lying_bomb("word/document.xml", 300),
    "laughs.docx": lambda: word("&a11;", before=LAUGHS),
    "quadratic.docx": lambda: word("&a;" * 20_000, before=QUADRATIC),
    "laughs.xlsx": lambda: _sheet(_LAUGHING_CELL, LAUGHS),
    "far.xlsx": lambda: _sheet(_FAR_CELLS),
    "many.docx": lambda: packed({f"word/{n}.xml": "" for n in range(6000)}),
    "cut.docx": lambda: word("hola")[:-40],
    "empty.docx": lambda: packed({"nothing.txt": ""}),
    "unpacks.pdf": lambda: pdf("x", "y", packed=200 * 1024**2),
    "cut.pdf": lambda: pdf("hola")[:200],
    "deep.pdf": lambda: _DEEP + b"\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF",
    "noise.pdf": lambda: b"%PDF-1.7\n" + bytes(range(256)) * 400,
}
"""Files that are no documents, or want to take the machine with them, by name."""
