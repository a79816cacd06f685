"""The words and pictures of files that people send, read by a process that a hostile one cannot leave."""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from app.errors import RecadoError
from app.processes.sandbox import Sandbox
from app.tools.document_process import COMPLETE, LOCKED, MOST_CHARACTERS

LARGEST_BYTES = 32 * 1024**2
SECONDS = 20.0
AT_ONCE = 2
PROGRAM = Path(__file__).absolute().with_name("document_process.py")
MOST_PICTURE_BYTES = 16 * 1024**2

Kind = Literal["pdf", "word", "excel", "slides"]
_PACKED: dict[str, Kind] = {
    **dict.fromkeys((".docx", ".docm"), "word"),
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
    **dict.fromkeys((".pptx", ".pptm"), "slides"),
}


class DocumentError(RecadoError):
    """A file whose text cannot be had. `code` says why: TOO_LARGE, BUSY, LOCKED, UNREADABLE, NO_WORDS."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Document:
    """The words of a file; `whole` is False where limits cut them."""

    text: str
    whole: bool


_PICTURE = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n|RIFF.{4}WEBP|GIF8|BM.{4}\0\0|.{4}ftyp(heic|heix|mif1|avif)", re.DOTALL
)


def is_picture(head: bytes) -> bool:
    """Tell whether a file is a picture, by its first bytes."""
    return _PICTURE.match(head) is not None


def kind_of(name: str, head: bytes) -> Kind | None:
    """Return a document's kind by its first bytes, and its name if they leave a choice; None for plain
    files.
    """
    if b"%PDF-" in head[:1024]:
        return "pdf"
    return _PACKED.get(Path(name).suffix.lower()) if head.startswith(b"PK\x03\x04") else None


class Documents:
    """Reads at most `AT_ONCE` files at a time, each for at most `seconds`.

    In the sandbox where there is a working one; the process sees no more than `PROGRAM`'s folder.
    """

    def __init__(self, sandbox: Sandbox | None = None, seconds: float = SECONDS) -> None:
        self._sandbox = sandbox
        self._seconds = seconds
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def read(self, descriptor: int, kind: Kind) -> Document:
        """Return the text of an open file. Blocks. Raises DocumentError."""
        if os.fstat(descriptor).st_size > LARGEST_BYTES:
            raise DocumentError("TOO_LARGE", f"documents of up to {LARGEST_BYTES // 1024**2} MB are read")
        os.lseek(descriptor, 0, os.SEEK_SET)
        status, written = self._run(descriptor, kind, 4 * MOST_CHARACTERS)
        text = written.decode("utf-8", "replace")
        if status == LOCKED:
            raise DocumentError("LOCKED", "it is protected by a password")
        if not text.strip():
            if status == COMPLETE:
                raise DocumentError("NO_WORDS", "it holds no words, perhaps pictures of them")
            raise DocumentError("UNREADABLE", "it is damaged, or takes too much time or memory")
        return Document(text, status == COMPLETE)

    def picture(self, source: Path) -> bytes:
        """Return a picture as a JPEG: upright, small, without metadata. Blocks. Raises DocumentError."""
        return self._pictures(source, "picture")[0]

    def convert(self, data: bytes) -> bytes:
        """Return the bytes of a picture as such a JPEG. Blocks. Raises DocumentError."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return self.picture(Path(file.name))

    def scans(self, source: Path) -> list[bytes]:
        """Return the pictures that the first pages of a scanned PDF are made of.

        Blocks. Raises DocumentError.
        """
        return self._pictures(source, "scans")

    def _pictures(self, source: Path, kind: str) -> list[bytes]:
        with source.open("rb") as file:
            _, written = self._run(file.fileno(), kind, MOST_PICTURE_BYTES)
        found = list(_parts(written))
        if not found:
            raise DocumentError("UNREADABLE", "it is damaged, or takes too much time or memory")
        return found

    def _run(self, descriptor: int, kind: str, limit: int) -> tuple[int | None, bytes]:
        """Return the exit status, None after the time limit, and what was written until then."""
        sandbox = self._sandbox
        prefix = sandbox.command(PROGRAM.parent) if sandbox is not None and not sandbox.refusal() else []
        command = [*prefix, sys.executable, "-I", "-X", "utf8", str(PROGRAM), kind]
        with tempfile.TemporaryFile() as output:  # whose size has a limit, other than that of a pipe
            streams: dict[str, Any] = {"stdin": descriptor, "stdout": output, "stderr": subprocess.DEVNULL}
            if not self._free.acquire(timeout=self._seconds):
                raise DocumentError("BUSY", "other documents are being read")
            try:
                ended = subprocess.run(command, **streams, env={}, timeout=self._seconds)  # noqa: S603
                status: int | None = ended.returncode
            except subprocess.TimeoutExpired:
                status = None
            finally:
                self._free.release()
            output.seek(0)
            return status, output.read(limit)


def _parts(written: bytes) -> Iterator[bytes]:
    """Yield the whole JPEGs of a program's output, each of which stands after its length."""
    start = 0
    while len(written) - start > 4:
        end = start + 4 + int.from_bytes(written[start : start + 4], "big")
        if end > len(written):
            return
        yield written[start + 4 : end]
        start = end
