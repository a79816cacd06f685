"""The text of documents, and documents that want more than that."""

import os
import resource
import sys
from pathlib import Path

import pytest

from app.processes.sandbox import Grants, Sandbox
from app.settings import Settings
from app.tools.documents import LARGEST_BYTES, Document, DocumentError, Documents, kind_of
from tests.tools import papers

NO_GRANTS = Grants()
SANDBOX = Sandbox(Settings(_env_file=None))


def read(path: Path, documents: Documents | None = None) -> Document:
    with path.open("rb") as file:
        kind = kind_of(path.name, file.read(1024))
        assert kind is not None
        return (documents or Documents()).read(file.fileno(), kind)


def outcome(path: Path) -> Document | str:
    """What was read, or the code that says why not."""
    try:
        return read(path)
    except DocumentError as error:
        return error.code


@pytest.mark.slow
def test_the_words_of_a_document(tmp_path: Path) -> None:
    confined = [] if SANDBOX.refusal() else [Documents(SANDBOX)]
    for name, content, text in [
        ("a.pdf", papers.pdf("Contrato", "Página dos"), "Contrato\n\nPágina dos\n\n"),
        ("no-ending", papers.pdf("Contrato"), "Contrato\n\n"),
        ("a.docx", papers.word("Hola", "año &amp; ñ"), "Hola\naño & ñ\n"),
        (
            "a.xlsx",
            papers.excel(Gastos=[["pan", 12.5], [None, None], ["leche", None, 3]], Otra=[[True]]),
            "# Gastos\npan\t12.5\nleche\t\t3\n\n# Otra\nTrue\n\n",
        ),
    ]:
        (tmp_path / name).write_bytes(content)
        for documents in confined or [Documents()]:
            assert read(tmp_path / name, documents) == Document(text, whole=True)
    assert read(tmp_path / "a.docx", Documents()).text == "Hola\naño & ñ\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*papers.HOSTILE])
def test_a_hostile_document_gives_a_reason_or_a_bounded_text(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(papers.HOSTILE[name]())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = outcome(tmp_path / name)
    if isinstance(found, Document):
        assert not found.whole
        assert len(found.text) <= 1_000_000
    else:
        assert found == "UNREADABLE"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000, "kilobytes that the server itself took"


def test_a_long_document_is_read_as_far_as_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "long.docx").write_bytes(papers.word(*["palabra " * 1000] * 200))
    found = read(tmp_path / "long.docx")
    assert (len(found.text), found.whole) == (1_000_000, False)


def test_documents_whose_words_cannot_be_had(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    for content, code in ((papers.locked_pdf(), "LOCKED"), (papers.pdf(""), "NO_WORDS")):
        path.write_bytes(content)
        assert outcome(path) == code
    os.truncate(path, LARGEST_BYTES + 1)
    assert outcome(path) == "TOO_LARGE"


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys, time\n"
        "pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n"
        "time.sleep(600)"
    )

    class Endless(Sandbox):
        def refusal(self) -> str:
            return ""

        def command(self, folder: Path, grants: Grants = NO_GRANTS) -> list[str]:
            return [sys.executable, "-c", program, str(tmp_path / "pid")]

    (tmp_path / "a.pdf").write_bytes(papers.pdf("x"))
    with pytest.raises(DocumentError) as raised:
        read(tmp_path / "a.pdf", Documents(Endless(Settings(_env_file=None)), seconds=1))
    assert raised.value.code == "UNREADABLE"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_document_is_known_by_its_bytes() -> None:
    for name, head, kind in [
        ("a.pdf", b"hello", None),
        ("a.zip", b"PK\x03\x04", None),
        ("a.XLSX", b"PK\x03\x04", "excel"),
        ("a.docm", b"PK\x03\x04", "word"),
        ("a.txt", b"\n\n%PDF-1.4", "pdf"),
    ]:
        assert kind_of(name, head) == kind
