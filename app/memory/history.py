"""A person's own conversations, found by their words: the service behind the skill `conversation`."""

import asyncio
from dataclasses import dataclass
from sqlite3 import Connection, Row

import orjson

from app.memory.recall import rank, read_question, weights
from app.messages import in_own_words
from app.people import Person
from app.search.words import holds, terms
from app.store import recall
from app.store.database import Database

MOST_FILES = 500  # that one search looks through, the newest first
AT_ONCE = 200  # messages indexed in one transaction
MOST_BATCHES = 25  # of these in one sweep
_TELLING = 0.35  # of the best score: what is below is not shown

_FILES_NEWEST_FIRST = (
    "SELECT m.text, m.payload, m.at FROM attachments a JOIN messages m ON m.id = a.message_id"
    " WHERE a.person_id = ? AND a.state = 'read' ORDER BY a.message_id DESC LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that the person sent: its path among their files, and how its words begin."""

    path: str
    at: float
    begins: str


@dataclass(frozen=True, slots=True)
class Said:
    """One message; `at` in Unix seconds. `outside`: it may hold text of others."""

    by_person: bool
    text: str
    at: float
    outside: bool


class History:
    """Searches what one person said in their own chats, and what they were answered."""

    def __init__(self, store: Database) -> None:
        self._store = store

    async def search(
        self,
        person: Person,
        query: str = "",
        since: float = 0,
        until: float = recall.FOREVER,
        limit: int = 10,
    ) -> list[Said]:
        """Return the messages of [since, until) that answer the query best, the best first.

        Without words: the newest of that time. A turn that is not finished is left out.
        """
        while await self._index(person.id) == AT_ONCE:
            continue
        question = await asyncio.to_thread(read_question, query)

        def find(conn: Connection) -> list[Row]:
            if not question:
                return recall.newest(conn, person.id, since, until, limit)
            ranked = dict(rank(conn, person.id, question, since, until))
            rows = recall.said(conn, person.id, list(ranked), since, until)
            rows.sort(key=lambda row: -ranked[row["id"]])
            return [row for row in rows[:limit] if ranked[row["id"]] >= _TELLING * ranked[rows[0]["id"]]]

        return [_said(row) for row in await self._store.tx(find)]

    async def index(self) -> None:
        """Index what is new of everybody, at most so much that a sweep stays short."""
        for _ in range(MOST_BATCHES):
            if await self._index() < AT_ONCE:
                break

    async def _index(self, person: str = "") -> int:
        return await self._store.tx(lambda conn: recall.index(conn, weights, AT_ONCE, person))

    async def files(self, person: Person, query: str, limit: int = 10) -> list[SentFile]:
        """Return the person's newest files whose name, caption or first page hold all the words."""
        rows = await self._store.all(_FILES_NEWEST_FIRST, person.id, MOST_FILES)
        return await asyncio.to_thread(_matching_files, rows, frozenset(terms(query)), limit)


def _matching_files(rows: list[Row], wanted: frozenset[str], limit: int) -> list[SentFile]:
    found: list[SentFile] = []
    for row in rows:
        attachment = orjson.loads(row["payload"]).get("attachment") or {}
        path, words = str(attachment.get("path") or ""), str(attachment.get("text") or "")
        named = path.replace("_", " ").replace("-", " ").replace("/", " ").replace(".", " ")
        if path and holds(f"{named} {row['text']} {words}", wanted):
            found.append(SentFile(path, row["at"], " ".join((words or row["text"])[:200].split())))
    return found[:limit]


def _said(row: Row) -> Said:
    by_person = row["direction"] == "in"
    if by_person:
        is_own = in_own_words(row["kind"], orjson.loads(row["payload"]))
    else:
        is_own = row["turn_id"] is not None  # a reminder, which keeps apart whose words it is made of
    return Said(by_person, row["text"], row["at"], outside=bool(row["taint"]) or not is_own)
