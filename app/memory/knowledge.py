"""The knowledge that a business tells everybody: files of one folder, cut into passages, found by words."""

import csv
import io
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.i18n import lazy
from app.search.index import Document, ToolIndex
from app.search.lexicon import lexicon
from app.search.words import content, stem, words
from app.tools.documents import DocumentError, Documents, kind_of

MOST_FILES = 500
LARGEST_TEXT = 8 * 1024**2  # bytes of a plain file
ENOUGH = 0.3  # share of a question's words that a passage must hold to answer it
MEANINGS = 2  # of each word, the first that the lexicon names
PLAIN = (".md", ".markdown", ".txt", ".csv", ".tsv")
_READ = (*PLAIN, ".pdf", ".docx", ".docm", ".xlsx", ".xlsm")
_Stamp = tuple[int, int]
LONGEST_PASSAGE = 1_200  # characters of a passage; a longer section is cut at its paragraphs
MOST_OF_A_FILE = 20_000  # passages

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*")
_ASKS = r"(?:\*\*)?(?:[pq]\s*[:)]|(?:pregunta|pergunta|question)\s*[:.)])"
_ANSWERS = r"(?:\*\*)?(?:[ra]\s*[:)]|(?:respuesta|resposta|answer)\s*[:.)])"
_QUESTION = re.compile(_ASKS, re.IGNORECASE)
_MARK = re.compile(rf"^(?:{_ASKS}|{_ANSWERS})\s*(?:\*\*)?\s*", re.IGNORECASE | re.MULTILINE)
# An answer may stand below an empty line; a question begins a paragraph of its own.
_PARAGRAPH = re.compile(rf"\n\s*\n(?!\s*{_ANSWERS})|\n(?={_ASKS})", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->")
_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")
_SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Passage:
    """A section, a question with its answer, or a row of a table."""

    title: str  # a heading, a question or the first cell of a row
    text: str  # the words as they stand
    place: str = ""  # where it stands in the file: its headings, or the number of its row
    cells: str = ""  # of a row, without the names of their columns, which all rows have


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of the folder: its passages, or the fault for which it has none. `stamp`: see `_scan`."""

    name: str
    passages: Sequence[Passage] = ()
    fault: str = ""
    stamp: _Stamp = (0, 0)


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that fits a question, its file and place, and the share of the question's words it knows."""

    passage: Passage
    source: str
    coverage: float

    @property
    def is_enough(self) -> bool:
        return self.coverage >= ENOUGH


class Knowledge:
    """The folder's passages; a changed file is read anew. Its functions block: call them in threads."""

    def __init__(self, folder: Path, documents: Documents) -> None:
        self.folder = folder
        self._documents = documents
        self._lock = threading.Lock()
        self._files: dict[str, KnownFile] = {}
        self._index = ToolIndex()

    def files(self) -> list[KnownFile]:
        """Return the files in the order of their names."""
        self._refresh()
        return [one for _, one in sorted(self._files.items())]

    def search(self, question: str, limit: int = 5) -> list[Found]:
        """Return the passages that fit best, the best first."""
        self._refresh()
        asked = content(words(question))
        found = []
        for hit in self._index.rank(question, limit=limit):
            name, _, number = hit.id.rpartition("#")
            if (file := self._files.get(name)) is not None and int(number) < len(file.passages):
                passage = file.passages[int(number)]
                source = f"{name}: {passage.place}" if passage.place else name
                found.append(Found(passage, source, _coverage(asked, passage)))
        return found

    def add(self, path: str, data: bytes) -> KnownFile | None:
        """Keep a file, in the place of one with its name.

        Returns None for a name that is not read, a file with a fault for one that could not be.
        """
        name = Path(path).name
        if Path(name).suffix.casefold() not in _READ or name.startswith("."):
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".") as hidden:
            new = Path(hidden, name)
            new.touch(0o600)  # a business's own papers
            new.write_bytes(data)
            if (read := self._read(new, name)).fault:
                return read
            try:
                new.replace(self.folder / name)
            except OSError as error:
                return KnownFile(name, fault=str(error))
        return next((one for one in self.files() if one.name == name), None)

    def remove(self, name: str) -> bool:
        """Remove a file by the name that `files` gives; return False if there is none."""
        if name not in {one.name for one in self.files()}:
            return False
        (self.folder / name).unlink(missing_ok=True)
        return True

    def _refresh(self) -> None:
        with self._lock:
            stamps = dict(islice(self._scan(), MOST_FILES))
            for name, file in [*self._files.items()]:
                if stamps.get(name) != file.stamp:
                    self._index.remove([f"{name}#{number}" for number in range(len(file.passages))])
                    del self._files[name]
            for name, stamp in stamps.items():
                if name not in self._files:
                    file = self._files[name] = self._read(self.folder / name, name, stamp)
                    numbered = enumerate(file.passages)
                    self._index.add(_document(f"{name}#{number}", one) for number, one in numbered)

    def _scan(self) -> Iterator[tuple[str, _Stamp]]:
        """Yield name and stamp of each file that may hold words; links and hidden files are passed over."""
        for folder, folders, names in os.walk(self.folder):
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            for name in sorted(names):
                path = Path(folder, name)
                if name.startswith(".") or path.suffix.casefold() not in _READ or path.is_symlink():
                    continue
                state = path.stat()
                yield path.relative_to(self.folder).as_posix(), (state.st_mtime_ns, state.st_size)

    def _read(self, path: Path, name: str, stamp: _Stamp = (0, 0)) -> KnownFile:
        try:
            passages = cut(path.name, self._text(path))
        except (OSError, ValueError, DocumentError) as error:
            return KnownFile(name, (), str(error), stamp)
        return KnownFile(name, passages, "" if passages else lazy("it holds no words"), stamp)

    def _text(self, path: Path) -> str:
        with path.open("rb") as file:
            head = file.read(1024)
            kind = kind_of(path.name, head)
            if kind is not None:
                return self._documents.read(file.fileno(), kind).text
            data = head + file.read(LARGEST_TEXT)
        if len(data) > LARGEST_TEXT:
            raise ValueError(f"it has more than {LARGEST_TEXT // 1024**2} MB")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return data.decode("cp1252", "replace")  # as Excel writes CSV files in Latin America


def _document(id: str, passage: Passage) -> Document:
    meanings = " ".join(_meanings(words(passage.title)))
    text, place = (passage.cells, "") if passage.cells else (passage.text, passage.place)
    return Document(id, passage.title, text, place, examples=(meanings,))


def _meanings(said: Sequence[str]) -> set[str]:
    """Return what words mean, in English: "cuesta" answers "precio", and "preço"."""
    found = lexicon().meanings(said).values()
    return {" ".join(meaning) for meanings in found for meaning in meanings[:MEANINGS]}


def _coverage(asked: Sequence[str], passage: Passage) -> float:
    """Return the share of a question's words that a passage holds, as they are or in what they mean."""
    held = words(f"{passage.title} {passage.cells or passage.text}")
    stems, meanings = set(map(stem, held)), _meanings(held)
    known = sum(stem(word) in stems or not meanings.isdisjoint(_meanings([word])) for word in asked)
    return known / len(asked) if asked else 0.0


def cut(name: str, text: str) -> list[Passage]:
    """Return the passages of a file's text; its name tells a table. Raises ValueError for a bad one."""
    read = {"xlsx": _sheets, "xlsm": _sheets, "csv": _csv, "tsv": _csv}
    suffix = name.rpartition(".")[2].casefold()
    try:
        return list(islice(read.get(suffix, _prose)(text), MOST_OF_A_FILE))
    except csv.Error as error:
        raise ValueError(f"its rows cannot be read ({error}); save it as CSV in UTF-8 again") from error


def _prose(text: str) -> Iterator[Passage]:
    headings: list[tuple[int, str]] = []
    lines: list[str] = []

    def section() -> Iterator[Passage]:
        title = headings[-1][1] if headings else ""
        place = " › ".join(heading for _, heading in headings)
        yield from _tables(title, place, lines)
        lines.clear()

    for line in _COMMENT.sub("", text).splitlines():
        heading = _HEADING.fullmatch(line.strip())
        if heading is None:
            lines.append(line)
            continue
        yield from section()
        level = len(heading[1])
        headings = [one for one in headings if one[0] < level] + [(level, heading[2].strip("*_ "))]
    yield from section()


def _tables(title: str, place: str, lines: Sequence[str]) -> Iterator[Passage]:
    """Yield the tables, the questions with their answers, and the paragraphs under one heading."""
    prose: list[str] = []
    table: list[list[str]] = []
    for line in [*lines, ""]:
        if line.strip().startswith("|"):
            if not _RULE.fullmatch(line.strip()):
                table.append([cell.strip(" *") for cell in line.strip().strip("|").split("|")])
            continue
        if table:
            yield from _rows(table, place or title)
            table = []
        prose.append(line)
    yield from _paragraphs(title, place, "\n".join(prose))


def _paragraphs(title: str, place: str, text: str) -> Iterator[Passage]:
    """Yield each question with its answer, and as many of the other paragraphs together as fit."""
    part = ""
    for paragraph in filter(None, (one.strip() for one in _PARAGRAPH.split(text))):
        if _QUESTION.match(paragraph):
            whole = _MARK.sub("", paragraph, count=2)  # that of the question and that of its answer
            yield Passage(whole.partition("\n")[0].strip("* "), whole, place)
            continue
        for piece in _pieces(paragraph):
            if part and len(part) + len(piece) > LONGEST_PASSAGE:
                yield Passage(title or _first_words(part), part, place)
                part = ""
            part = f"{part}\n\n{piece}" if part else piece
    if part:
        yield Passage(title or _first_words(part), part, place)


def _pieces(paragraph: str) -> Iterator[str]:
    while len(paragraph) > LONGEST_PASSAGE:
        at = paragraph.rfind(" ", LONGEST_PASSAGE // 2, LONGEST_PASSAGE) + 1 or LONGEST_PASSAGE
        yield paragraph[:at].strip()
        paragraph = paragraph[at:]
    yield paragraph


def _csv(text: str) -> Iterator[Passage]:
    lines = io.StringIO(text, newline=None)  # Excel for Mac ends them with "\r"
    separator = max(_SEPARATORS, key=lines.readline().count)
    lines.seek(0)
    rows = csv.reader(lines, delimiter=separator)
    yield from _rows(
        [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)], ""
    )


def _sheets(text: str) -> Iterator[Passage]:
    for sheet in re.split(r"(?m)^# (?=[^\t\n]*$)", text):  # the name of a sheet; cells are parted by tabs
        title, _, body = sheet.partition("\n")
        rows = [line.split("\t") for line in body.splitlines() if line.strip()]
        if rows:
            yield from _rows(rows, title.strip())


def _rows(rows: Sequence[Sequence[str]], place: str) -> Iterator[Passage]:
    """Yield a passage a row, each cell under the name of its column."""
    if not rows:
        return
    head, *others = rows
    for number, row in enumerate(others, 2):
        cells = [(name, cell) for name, cell in zip(head, row, strict=False) if cell]
        text = "; ".join(f"{name}: {cell}" if name else cell for name, cell in cells)
        if text:
            words = [cell for _, cell in cells if re.search(r"[^\W\d_]", cell)]
            cells_alone = " ".join(cell for _, cell in cells)
            yield Passage(" ".join(words[:2]), text, f"{place} {number}".strip(), cells_alone)


def _first_words(text: str) -> str:
    return " ".join(text.split()[:8])
