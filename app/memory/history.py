"""A person's own conversations, searched by words: the service behind the skill `conversation`."""

import asyncio
from dataclasses import dataclass
from sqlite3 import Row

import orjson

from app.messages import in_own_words
from app.people import Person
from app.search.words import holds, terms
from app.store.database import Database

PAGE = 500
MOST_READ = 20_000
"""Messages that one search looks through, the newest first."""

_NEWEST_FIRST = (
    "SELECT m.id, m.direction, m.kind, m.text, m.payload, m.at, m.turn_id, t.taint"
    " FROM messages m"
    " JOIN conversations c ON c.id = m.conversation_id LEFT JOIN turns t ON t.id = m.turn_id"
    " WHERE m.person_id = ? AND c.group_id = '' AND m.id < ? AND m.at >= ? AND m.at < ? AND m.text <> ''"
    " AND (t.id IS NULL OR t.state = 'done') ORDER BY m.id DESC LIMIT ?"
)


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
        self, person: Person, query: str = "", since: float = 0, until: float = 2**53, limit: int = 10
    ) -> list[Said]:
        """The newest messages of [since, until) that hold every word of `query`, in whatever form, the
        newest first. Without words: all of that time. A turn that is not finished is left out."""
        wanted = frozenset(terms(query))
        found: list[Said] = []
        below = 2**62
        for _ in range(MOST_READ // PAGE):
            rows = await self._store.all(_NEWEST_FIRST, person.id, below, since, until, PAGE)
            found += await asyncio.to_thread(_matching, rows, wanted, limit - len(found))
            if len(found) >= limit or len(rows) < PAGE:
                break
            below = rows[-1]["id"]
        return found

    async def files(self, person: Person, query: str, limit: int = 10) -> list[SentFile]:
        """Return the person's newest files whose name, caption or first page hold all the words."""
        rows = await self._store.all(_FILES_NEWEST_FIRST, person.id, PAGE)
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


def _matching(rows: list[Row], wanted: frozenset[str], limit: int) -> list[Said]:
    found: list[Said] = []
    for row in rows:
        if len(found) == limit:
            break
        if holds(row["text"], wanted):
            found.append(_said(row))
    return found


def _said(row: Row) -> Said:
    by_person = row["direction"] == "in"
    if by_person:
        is_own = in_own_words(row["kind"], orjson.loads(row["payload"]))
    else:
        is_own = row["turn_id"] is not None  # a reminder, which keeps apart whose words it is made of
    return Said(by_person, row["text"], row["at"], outside=bool(row["taint"]) or not is_own)
