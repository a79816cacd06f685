"""Reads files of others in a process of its own: what a hostile one does stays in here.

    python -I document_process.py pdf|word|excel|slides < file > text
    python -I document_process.py picture|scans < file > JPEGs, each after its length in 4 bytes

`picture`: one picture, upright, at most `LONGEST_SIDE` pixels, without metadata (where it was taken).
`scans`: the largest picture of each page of a PDF. The exit status says what became of it: see `COMPLETE` and
those below. Nothing of the server is imported.
"""

import io
import os
import re
import resource
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING
from xml.etree.ElementTree import iterparse

if TYPE_CHECKING:
    from PIL import Image

COMPLETE, CUT, LOCKED, UNREADABLE = 0, 10, 11, 12
MOST_CHARACTERS = 1_000_000
MOST_PAGES = 500
MOST_ROWS = 100_000
MEMORY_BYTES, PICTURE_MEMORY_BYTES = 512 * 1024**2, 768 * 1024**2
CPU_SECONDS = 15
UNPACKED_BYTES = 256 * 1024**2
MOST_PARTS = 5_000  # files in the archive that a Word or Excel file is
LONGEST_SIDE = 1_600
MOST_PIXELS = 100_000_000
MOST_JPEG_BYTES = 3 * 1024**2
MOST_SCANS = 4

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_TEXT_ELEMENTS = (_WORD + "t", _DRAWING + "t")
_BREAKS = {
    _DRAWING + "p": "\n",
    _DRAWING + "br": "\n",
    _WORD + "p": "\n",
    _WORD + "br": "\n",
    _WORD + "cr": "\n",
    _WORD + "tab": "\t",
    _WORD + "tc": "\t",
}


class _Locked(Exception):
    pass


def main(kind: str) -> int:
    with os.fdopen(0, "rb") as file:
        if kind in _PICTURES:
            _limit(PICTURE_MEMORY_BYTES, (MOST_SCANS + 1) * MOST_JPEG_BYTES)
            with suppress(Exception):  # what was read before stands
                for jpeg in _PICTURES[kind](file):
                    _write(len(jpeg).to_bytes(4, "big") + jpeg)
            return COMPLETE
        _limit(MEMORY_BYTES, 4 * MOST_CHARACTERS)
        return _write_text(_TEXTS[kind](file))


def _limit(memory: int, written: int) -> None:
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out, this ends before the server
    for limit, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, written),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))


def _write_text(parts: Iterator[str]) -> int:
    written = 0
    try:
        for part in parts:
            text = part[: MOST_CHARACTERS - written]
            _write(text.encode("utf-8", "replace"))
            written += len(text)
            if written >= MOST_CHARACTERS:
                return CUT
    except _Locked:
        return LOCKED
    except Exception:
        return CUT if written else UNREADABLE
    return COMPLETE


def _write(part: bytes) -> None:
    """Write at once: what was read before a limit ends this process is kept."""
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def _pdf(file: IO[bytes]) -> Iterator[str]:
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    reader = PdfReader(file)
    if reader.is_encrypted and not reader.decrypt(""):
        raise _Locked
    try:
        for number, page in enumerate(reader.pages):
            if number == MOST_PAGES:
                raise ValueError(f"more than {MOST_PAGES} pages")
            text = page.extract_text().strip()
            if text:
                yield f"{text}\n\n"
    except FileNotDecryptedError as error:
        raise _Locked from error


def _word(file: IO[bytes]) -> Iterator[str]:
    """Yield the paragraphs of the document itself, cells of tables parted by tabs."""
    with _archive(file) as archive, archive.open("word/document.xml") as document:
        yield from _paragraphs(document)


def _paragraphs(document: IO[bytes]) -> Iterator[str]:
    for _, element in iterparse(document):  # noqa: S314 - in a process with limits, which expat has too
        if element.tag in _TEXT_ELEMENTS:
            yield element.text or ""
        yield _BREAKS.get(element.tag, "")
        element.clear()


def _excel(file: IO[bytes]) -> Iterator[str]:
    """Yield each sheet under its name, a row a line, cells parted by tabs; formulas as their last result."""
    from openpyxl import load_workbook

    _archive(file).close()
    rows = 0
    workbook = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    for sheet in workbook.worksheets:
        yield f"# {sheet.title}\n"
        for row in sheet.iter_rows(values_only=True):
            rows += 1
            if rows > MOST_ROWS:
                raise ValueError(f"more than {MOST_ROWS} rows")
            cells = "\t".join("" if cell is None else str(cell) for cell in row).rstrip("\t")
            if cells:
                yield f"{cells}\n"
        yield "\n"


def _slides(file: IO[bytes]) -> Iterator[str]:
    """Yield the words of each slide, under its number."""
    with _archive(file) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"ppt/slides/slide\d+\.xml", name)]
        for number, name in enumerate(sorted(names, key=lambda name: (len(name), name)), 1):
            with archive.open(name) as slide:
                text = "".join(_paragraphs(slide)).strip()
            yield f"# {number}\n{text}\n\n"


def _archive(file: IO[bytes]) -> zipfile.ZipFile:
    """Open an archive. Raises ValueError for one that says it unpacks to too much.

    More than it says is never unpacked.
    """
    archive = zipfile.ZipFile(file)
    parts = archive.infolist()
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > UNPACKED_BYTES:
        raise ValueError("too much in one archive")
    return archive


def _scans(file: IO[bytes]) -> Iterator[bytes]:
    from pypdf import PdfReader

    for page in PdfReader(file).pages[:MOST_SCANS]:
        largest = max(page.images, key=lambda one: len(one.data), default=None)
        if largest is not None:
            yield _jpeg(io.BytesIO(largest.data))


def _jpeg(file: IO[bytes]) -> bytes:
    """Return the first frame of a picture as a JPEG."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = MOST_PIXELS // 2  # Pillow refuses twice as many
    with Image.open(file) as opened:
        opened.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))  # a large JPEG is decoded small at once
        picture = ImageOps.exif_transpose(opened)
        picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        flat = _on_white(picture)
    written = io.BytesIO()
    flat.save(written, "JPEG", quality=80)
    return written.getvalue()


def _on_white(picture: "Image.Image") -> "Image.Image":
    """Return the picture without transparency; a new one, so that no metadata comes along."""
    from PIL import Image

    coloured = picture.convert("RGBA")
    flat = Image.new("RGB", coloured.size, "white")
    flat.paste(coloured, mask=coloured.getchannel("A"))
    return flat


_TEXTS = {"pdf": _pdf, "word": _word, "excel": _excel, "slides": _slides}
_PICTURES = {"picture": lambda file: map(_jpeg, [file]), "scans": _scans}

if __name__ == "__main__":
    status = main(sys.argv[1])
    os._exit(status)  # a library's clean-up has nothing left to say
