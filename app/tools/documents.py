"""The text of PDF, Word and Excel files, each read by a process that a hostile one cannot leave."""

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.errors import RecadoError
from app.processes.sandbox import Sandbox

LARGEST_BYTES = 32 * 1024**2
SECONDS = 20.0
AT_ONCE = 2
PROGRAM = Path(__file__).absolute().with_name("document_process.py")

Kind = Literal["pdf", "word", "excel"]
_PACKED: dict[str, Kind] = {".docx": "word", ".docm": "word", ".xlsx": "excel", ".xlsm": "excel"}


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
        """The text of an open file. Blocks. Raises DocumentError."""
        from app.tools.document_process import COMPLETE, LOCKED

        if os.fstat(descriptor).st_size > LARGEST_BYTES:
            raise DocumentError("TOO_LARGE", f"documents of up to {LARGEST_BYTES // 1024**2} MB are read")
        if not self._free.acquire(timeout=self._seconds):
            raise DocumentError("BUSY", "other documents are being read")
        try:
            os.lseek(descriptor, 0, os.SEEK_SET)
            status, text = self._run(descriptor, kind)
        finally:
            self._free.release()
        if status == LOCKED:
            raise DocumentError("LOCKED", "it is protected by a password")
        if not text.strip():
            if status == COMPLETE:
                raise DocumentError("NO_WORDS", "it holds no words, perhaps pictures of them")
            raise DocumentError("UNREADABLE", "it is damaged, or takes too much time or memory")
        return Document(text, status == COMPLETE)

    def _run(self, descriptor: int, kind: Kind) -> tuple[int | None, str]:
        """Exit status, None after the time limit, and what was written until then."""
        from app.tools.document_process import MOST_CHARACTERS

        confined = self._sandbox is not None and not self._sandbox.refusal()
        prefix = self._sandbox.command(PROGRAM.parent) if self._sandbox is not None and confined else []
        command = [*prefix, sys.executable, "-I", "-X", "utf8", str(PROGRAM), kind]
        with tempfile.TemporaryFile() as output:  # whose size has a limit, other than that of a pipe
            try:
                status: int | None = subprocess.run(  # noqa: S603 (our own program)
                    command,
                    stdin=descriptor,
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                    env={},
                    timeout=self._seconds,
                ).returncode
            except subprocess.TimeoutExpired:
                status = None
            output.seek(0)
            return status, output.read(4 * MOST_CHARACTERS).decode("utf-8", "replace")
