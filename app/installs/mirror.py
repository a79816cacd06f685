"""The last known list of the registry, in a database of its own that may be lost and fetched again."""

import difflib
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import orjson

from app.installs.entries import Entry, read_entry, trimmed
from app.installs.errors import RegistryError
from app.messages import JSON
from app.search.words import stem, terms

ENTRY_BYTES = 64 * 1024
MIRROR_BYTES = 128 * 1024 * 1024
BUSY_SECONDS = 10.0
ALIKE = 0.8  # the similarity from which a word is taken for a misspelling of another
_SHORTEST_BEGINNING = 4
_VERSION = 2
# A namespace in front of a name, or alone: it says who publishes a server, not what it is for.
NAMESPACE = re.compile(r"\b(?:(?:io|com|org|net|dev|ai|app|co|me|sh)(?:\.[a-z0-9-]+)+/?)", re.IGNORECASE)
_TABLES = (
    "DROP TABLE IF EXISTS entries",
    "DROP TABLE IF EXISTS stems",
    "DROP TABLE IF EXISTS known_stems",
    "DROP TABLE IF EXISTS about",
    "CREATE TABLE entries"
    " (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, began REAL NOT NULL, raw BLOB NOT NULL)",
    "CREATE VIRTUAL TABLE stems USING fts5 (own_name, title, description, publisher)",
    "CREATE VIRTUAL TABLE known_stems USING fts5vocab ('stems', 'row')",
    "CREATE TABLE about (url TEXT NOT NULL, synced_at REAL, whole_at REAL NOT NULL)",
    f"PRAGMA user_version = {_VERSION}",
)
_KEEP = (
    "INSERT INTO entries (name, began, raw) VALUES (?, ?, ?)"
    " ON CONFLICT DO UPDATE SET began = max(began, excluded.began), raw = excluded.raw RETURNING id"
)
_FIND = (
    "SELECT e.raw, -bm25(stems, 3, 2, 1, 1) AS score FROM stems JOIN entries e ON e.id = stems.rowid"
    " WHERE stems MATCH ? ORDER BY score DESC, e.name LIMIT ?"
)
_KNOWN = "SELECT term FROM known_stems WHERE term GLOB ? AND length(term) >= 4"
T = TypeVar("T")


@dataclass(frozen=True)
class Kept:
    """The state of a mirror in Unix seconds.

    `synced_at` is None until the list was once fetched to its end; `whole_at` is when it was last fetched
    from its beginning rather than by what had changed, 0 for never.
    """

    entries: int
    synced_at: float | None
    whole_at: float


class Mirror:
    """Entries of the registry at `url`, by name and by words. Every call blocks briefly.

    A broken file is replaced by an empty one. Raises `RegistryError` if the disk is full or another process
    holds the file for long.
    """

    def __init__(self, path: Path, url: str) -> None:
        self._path = path
        self._url = url

    def kept(self) -> Kept:
        """Return how many entries there are, and as of when."""

        def read(connection: sqlite3.Connection) -> Kept:
            (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
            synced_at, whole_at = connection.execute("SELECT synced_at, whole_at FROM about").fetchone()
            return Kept(count, synced_at, whole_at)

        return self._do(read)

    def take(self, page: Iterable[JSON], began: float) -> bool:
        """Keep the newest versions of a page; return False once there is no room for more.

        `began` is the time at which the first page of this fetch was asked for.
        """

        def write(connection: sqlite3.Connection) -> bool:
            for kept in map(trimmed, page):
                entry, raw = read_entry(kept), orjson.dumps(kept)
                if entry is not None and len(raw) <= ENTRY_BYTES:
                    (id,) = connection.execute(_KEEP, (entry.name, began, raw)).fetchone()
                    _index(connection, id, entry)
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (size,) = connection.execute("PRAGMA page_size").fetchone()
            return bool(pages * size < MIRROR_BYTES)

        return self._do(write)

    def finish(self, began: float, *, whole: bool) -> None:
        """Note that the last page is in; after a `whole` fetch, forget what it did not bring."""

        def write(connection: sqlite3.Connection) -> None:
            if whole:
                connection.execute(
                    "DELETE FROM stems WHERE rowid IN (SELECT id FROM entries WHERE began < ?)", (began,)
                )
                connection.execute("DELETE FROM entries WHERE began < ?", (began,))
                connection.execute("UPDATE about SET whole_at = ?", (began,))
            connection.execute("UPDATE about SET synced_at = ?", (began,))

        self._do(write)

    def entry(self, name: str) -> Entry | None:
        """Return the entry of that exact name, also one that was deleted from the registry."""

        def read(connection: sqlite3.Connection) -> Entry | None:
            row = connection.execute("SELECT raw FROM entries WHERE name = ?", (name,)).fetchone()
            return read_entry(orjson.loads(row[0])) if row else None

        return self._do(read)

    def find(self, words: Sequence[str], most: int) -> list[tuple[Entry, float]]:
        """Return the entries that hold most of these words, best first, with scores above 0."""

        def read(connection: sqlite3.Connection) -> list[tuple[Entry, float]]:
            found = connection.execute(_FIND, (_wanted(words), most)) if words else ()
            return [(entry, score) for raw, score in found if (entry := read_entry(orjson.loads(raw)))]

        return self._do(read)

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        """Return how many entries hold each word."""

        def read(connection: sqlite3.Connection) -> dict[str, int]:
            sql = "SELECT count(*) FROM stems WHERE stems MATCH ?"
            return {word: connection.execute(sql, (f'"{stem(word)}"',)).fetchone()[0] for word in words}

        return self._do(read)

    def respelled(self, words: Sequence[str]) -> list[str]:
        """Return words of entries that are spelled much like these."""

        def read(connection: sqlite3.Connection) -> list[str]:
            likes: list[str] = []
            for word in map(stem, words):
                like = (f"{word[0]}*",)  # a slip is seldom in the first letter
                known = [term for (term,) in connection.execute(_KNOWN, like)]
                likes += difflib.get_close_matches(word, known, 2, ALIKE)
            return likes

        return self._do(read)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return self._once(work)
        except sqlite3.OperationalError as error:
            raise RegistryError(f"the list of servers can be neither kept nor read: {error}") from error
        except sqlite3.DatabaseError:  # the file is no database any more
            self._path.unlink(missing_ok=True)
            return self._once(work)

    def _once(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._path.parent.mkdir(0o700, parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as connection, connection:
            self._prepare(connection)
            return work(connection)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make empty tables unless those of this version and registry are there."""
        if self._is_ready(connection):
            return
        connection.execute("BEGIN IMMEDIATE")
        if not self._is_ready(connection):  # no other process was quicker
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute("INSERT INTO about VALUES (?, NULL, 0)", (self._url,))
        connection.commit()

    def _is_ready(self, connection: sqlite3.Connection) -> bool:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            return False
        (url,) = connection.execute("SELECT url FROM about").fetchone()
        return bool(url == self._url)


def _index(connection: sqlite3.Connection, id: int, entry: Entry) -> None:
    connection.execute("DELETE FROM stems WHERE rowid = ?", (id,))
    if entry.status != "deleted":
        title, description = (NAMESPACE.sub(" ", text) for text in (entry.title, entry.description))
        texts = (entry.own_name, title, description, entry.publisher)
        stems = (" ".join([*terms(text.lower()), *terms(text)]) for text in texts)  # github, and git, hub
        connection.execute(
            "INSERT INTO stems (rowid, own_name, title, description, publisher) VALUES (?, ?, ?, ?, ?)",
            (id, *stems),
        )


def _wanted(words: Sequence[str]) -> str:
    """Write the words as an FTS5 query: their stems, and what begins with them (file: filesystem)."""
    stems = [f'"{stem(word)}"' for word in words]
    beginnings = [f'"{word}"*' for word in words if len(word) >= _SHORTEST_BEGINNING]
    return " OR ".join(dict.fromkeys([*stems, *beginnings]))
