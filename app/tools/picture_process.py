"""Pictures made fit for a model, in a process of its own: what a hostile file does stays in here.

    python -I picture_process.py picture|scans < file > JPEGs, each after its length in 4 bytes

`picture`: one picture, upright, at most `LONGEST_SIDE` pixels, without metadata (where it was taken).
`scans`: the largest picture of each page of a PDF. Nothing of the server is imported.
"""

import io
import os
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

COMPLETE, UNREADABLE = 0, 12
LONGEST_SIDE = 1_600
MOST_PIXELS = 100_000_000
MOST_BYTES = 3 * 1024**2
MOST_SCANS = 4
MEMORY_BYTES = 768 * 1024**2
CPU_SECONDS = 15
_QUALITIES = (85, 70, 50)


def main(kind: str) -> int:
    _limit()
    with os.fdopen(0, "rb") as file:
        try:
            for jpeg in _KINDS[kind](file):
                sys.stdout.buffer.write(len(jpeg).to_bytes(4, "big") + jpeg)
                sys.stdout.buffer.flush()
        except (Exception, RecursionError):
            return UNREADABLE
    return COMPLETE


def _limit() -> None:
    import resource

    for limit, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, (MOST_SCANS + 1) * MOST_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))


def _picture(file: IO[bytes]) -> Iterator[bytes]:
    yield _jpeg(file)


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
    for quality in _QUALITIES:
        written = io.BytesIO()
        flat.save(written, "JPEG", quality=quality)
        if written.tell() <= MOST_BYTES:
            break
    return written.getvalue()


def _on_white(picture: "Image.Image") -> "Image.Image":
    """Return the picture without transparency; a new one, so that no metadata comes along."""
    from PIL import Image

    coloured = picture.convert("RGBA")
    flat = Image.new("RGB", coloured.size, "white")
    flat.paste(coloured, mask=coloured.getchannel("A"))
    return flat


_KINDS = {"picture": _picture, "scans": _scans}

if __name__ == "__main__":
    os._exit(main(sys.argv[1]))
