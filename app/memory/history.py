"""A person's own conversations, found by their words: the service behind the skill `conversation`."""

import asyncio
import time
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import orjson

from app.calendar.past import read_past
from app.memory.recall import Question, rank, read_question, score_texts, weights
from app.messages import in_own_words
from app.people import Person
from app.search.words import holds, terms
from app.store import recall
from app.store.database import Connection, Database, Row

MOST_KEPT = 500  # notes and facts that one search looks through, the newest first
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
    """One message; `at` in Unix seconds. `outside`: it may hold text of others.

    `before` and `after`: the messages beside it, for an answer often names nothing of what was asked.
    """

    by_person: bool
    text: str
    at: float
    outside: bool
    forwarded: bool = False
    is_reply: bool = False  # it quotes another message
    is_kept: bool = False  # no message, but a note or a fact that is kept for the person
    before: str = ""
    after: str = ""


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

        Without words: the newest of that time. A time in the query's words ("last week") narrows it, unless
        nothing of then fits. A turn that is not finished is left out. Notes and facts are found too.
        """
        while await self._index(person.id) == AT_ONCE:
            continue
        is_open = since <= 0 and until >= recall.FOREVER
        past = read_past(query, ZoneInfo(person.timezone), time.time()) if is_open else None
        if past is not None and (found := await self._find(person, past[2], past[0], past[1], limit)):
            return found
        return await self._find(person, query, since, until, limit)

    async def _find(self, person: Person, query: str, since: float, until: float, limit: int) -> list[Said]:
        question = await asyncio.to_thread(read_question, query)
        is_open = since <= 0 and until >= recall.FOREVER

        def find(conn: Connection) -> list[Said]:
            if not question:
                return list(map(_said, recall.newest(conn, person.id, since, until, limit)))
            ranked = dict(rank(conn, person.id, question, since, until))
            rows = recall.said(conn, person.id, list(ranked), since, until)
            rows.sort(key=lambda row: -ranked[row["id"]])
            shown = _with_neighbours(conn, person.id, rows[:limit])
            said = {row["id"]: one for row, one in zip(rows, shown, strict=False)}
            found = [(ranked[id], one) for id, one in said.items()]
            if is_open:
                texts = [one.text for one in said.values()]  # a note is mostly what a message said
                kept = _kept(conn, person.id, question)
                found += [(score, one) for score, one in kept if not any(one.text in text for text in texts)]
            found.sort(key=lambda one: -one[0])
            return [one for score, one in found[:limit] if score >= _TELLING * found[0][0]]

        return await self._store.read(find)

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


def _kept(conn: Connection, person: str, question: Question) -> list[tuple[float, Said]]:
    """Return the person's notes and facts that answer a question, with their scores."""
    rows = recall.kept(conn, person, MOST_KEPT)
    scores = score_texts(conn, person, question, [row["text"] for row in rows])
    return [
        (score, Said(True, row["text"], row["at"], outside=bool(row["outside"]), is_kept=True))
        for score, row in zip(scores, rows, strict=True)
        if score
    ]


def _with_neighbours(conn: Connection, person: str, rows: list[Row]) -> list[Said]:
    """Return the messages with those just before and after each, unless these were found themselves."""
    found = {row["id"] for row in rows}
    beside = recall.neighbours(conn, list(found))
    wanted = {one for pair in beside.values() for one in pair if one} - found
    others = {row["id"]: _said(row) for row in recall.said(conn, person, list(wanted), 0, recall.FOREVER)}
    nothing = Said(True, "", 0.0, outside=False)
    complete = []
    for row in rows:
        one = _said(row)
        before, after = (others.get(id, nothing) for id in beside[row["id"]])
        outside = one.outside or before.outside or after.outside
        complete.append(replace(one, before=before.text, after=after.text, outside=outside))
    return complete


def _said(row: Row) -> Said:
    by_person, payload = row["direction"] == "in", orjson.loads(row["payload"])
    is_reminder = row["turn_id"] is None  # it keeps apart whose words it is made of
    is_own = in_own_words(row["kind"], payload) if by_person else not is_reminder
    return Said(
        by_person,
        row["text"],
        row["at"],
        outside=bool(row["taint"]) or not is_own,
        forwarded=bool(payload.get("forwarded")),
        is_reply=bool(payload.get("quoted")),
    )
