"""The knowledge that a business tells everybody: files of one folder, cut into passages, found by words."""

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.i18n import lazy
from app.memory.passages import Passage, cut
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


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of the folder: how many passages it has, or the fault for which it has none."""

    name: str
    passages: int
    fault: str = ""


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
        self._stamps: dict[str, _Stamp] = {}
        self._files: dict[str, KnownFile] = {}
        self._passages: dict[str, tuple[str, Passage]] = {}
        self._index = ToolIndex()

    def files(self) -> list[KnownFile]:
        """Return the files in the order of their names."""
        self._refresh()
        return [self._files[name] for name in sorted(self._files)]

    def search(self, question: str, limit: int = 5) -> list[Found]:
        """Return the passages that fit best, the best first."""
        self._refresh()
        asked = content(words(question))
        hits = self._index.rank(question, limit=limit)
        found = [self._passages[hit.id] for hit in hits if hit.id in self._passages]
        return [
            Found(passage, f"{name}: {passage.place}" if passage.place else name, _coverage(asked, passage))
            for name, passage in found
        ]

    def add(self, path: str, data: bytes) -> KnownFile | None:
        """Keep a file, in the place of one with its name.

        Returns None for a name that is not read, a file with a fault for one that could not be.
        """
        name = Path(path).name
        if Path(name).suffix.casefold() not in _READ or name.startswith("."):
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".", delete=False) as new:
            new.write(data)
        try:
            passages = cut(name, self._text(Path(new.name), name))
            if not passages:
                return KnownFile(name, 0, lazy("it holds no words"))
            Path(new.name).replace(self.folder / name)
        except (OSError, ValueError, DocumentError) as error:
            return KnownFile(name, 0, str(error))
        finally:
            Path(new.name).unlink(missing_ok=True)
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
            for name in self._stamps.keys() - stamps.keys():
                self._forget(name)
            for name, stamp in stamps.items():
                if self._stamps.get(name) != stamp:
                    self._forget(name)
                    self._read(name)
            self._stamps = stamps

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

    def _read(self, name: str) -> None:
        try:
            passages = cut(name, self._text(self.folder / name, name))
        except (OSError, ValueError, DocumentError) as error:
            self._files[name] = KnownFile(name, 0, str(error))
            return
        self._files[name] = KnownFile(name, len(passages), "" if passages else lazy("it holds no words"))
        numbered = {f"{name}#{number}": passage for number, passage in enumerate(passages)}
        self._passages.update({id: (name, passage) for id, passage in numbered.items()})
        self._index.add(
            Document(
                id,
                passage.title,
                passage.cells or passage.text,
                passage.place if not passage.cells else "",
                examples=(" ".join(_meanings(words(passage.title))),),
            )
            for id, passage in numbered.items()
        )

    def _text(self, path: Path, name: str) -> str:
        with path.open("rb") as file:
            head = file.read(1024)
            kind = kind_of(name, head)
            if kind is not None:
                return self._documents.read(file.fileno(), kind).text
            data = head + file.read(LARGEST_TEXT)
        if len(data) > LARGEST_TEXT:
            raise ValueError(f"it has more than {LARGEST_TEXT // 1024**2} MB")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return data.decode("cp1252", "replace")  # as Excel writes CSV files in Latin America

    def _forget(self, name: str) -> None:
        gone = [id for id, (file, _) in self._passages.items() if file == name]
        self._index.remove(gone)
        for id in gone:
            del self._passages[id]
        self._files.pop(name, None)


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
