"""A person's own conversations, found by their words: the service behind the skill `conversation`.

Messages are ranked by BM25 over stems. One is read with its neighbours, for an answer often names nothing of
what was asked. Words of other languages count by the lexicon, less than what was said.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import islice
from zoneinfo import ZoneInfo

import orjson

from app.calendar.words import read_past
from app.messages import in_own_words
from app.people import Person
from app.search.lexicon import lexicon
from app.search.words import content, holds, stem, terms, words
from app.store import recall
from app.store.database import Connection, Database, Row

MOST_KEPT = 500  # notes and facts that one search looks through, the newest first
MOST_FILES = 500  # that one search looks through, the newest first
AT_ONCE = 200  # messages indexed in one transaction
MOST_BATCHES = 25  # of these in one sweep
_TELLING = 0.35  # of the best score: what is below is not shown
AVERAGE_WORDS = 14  # of a message, for the length in BM25
FILE_CHARACTERS = 20_000  # of a file's text that are indexed
MOST_RANKED = 400
_K1, _B = 1.2, 0.5
_MEANT = 0.5  # worth of a meaning beside the word itself
_NEIGHBOUR = 0.3  # share of a message's score that those beside it get
_RECENT = 0.05  # the newest message counts so much more than the oldest
_SPREADING = 60  # the best messages, whose neighbours are looked at

Question = Sequence[Mapping[str, float]]  # for each word the terms that answer it, with their worth

_FILES_NEWEST_FIRST = (
    "SELECT m.text, m.payload FROM attachments a JOIN messages m ON m.id = a.message_id"
    " WHERE a.person_id = ? AND a.state = 'read' ORDER BY a.message_id DESC LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Said:
    """One message, with those beside it: an answer often names nothing of what was asked."""

    by_person: bool
    text: str
    at: float  # Unix seconds
    outside: bool  # it may hold text of others
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
            found = [(ranked[row["id"]], one) for row, one in zip(rows, shown, strict=False)]
            if is_open:
                texts = [one.text for one in shown]  # a note is mostly what a message said
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

    async def files(self, person: Person, query: str, limit: int = 10) -> dict[str, str]:
        """Return how the newest files begin whose name, caption or first page hold all the words.

        They are by path, below the person's own folder.
        """
        rows = await self._store.all(_FILES_NEWEST_FIRST, person.id, MOST_FILES)
        return await asyncio.to_thread(_matching_files, rows, frozenset(terms(query)), limit)


def _matching_files(rows: list[Row], wanted: frozenset[str], limit: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows:
        attachment = orjson.loads(row["payload"]).get("attachment") or {}
        path, words = str(attachment.get("path") or ""), str(attachment.get("text") or "")
        named = path.replace("_", " ").replace("-", " ").replace("/", " ").replace(".", " ")
        if path and holds(f"{named} {row['text']} {words}", wanted):
            found.setdefault(path, " ".join((words or row["text"])[:200].split()))
    return dict(islice(found.items(), limit))


def _kept(conn: Connection, person: str, question: Question) -> list[tuple[float, Said]]:
    """Return the notes and facts that answer a question, with their scores on the scale of `rank`."""
    asked = {term for answers in question for term in answers}
    held, total = recall.holders(conn, person, asked), recall.count(conn, person)
    rarity = {term: _rarity(total, held.get(term, 0)) for term in asked}
    found = []
    for row in recall.kept(conn, person, MOST_KEPT):
        text = text_weights(row["text"])
        score = sum(
            max(worth * rarity[term] * text.get(term, 0.0) for term, worth in answers.items())
            for answers in question
        )
        if score:
            note = Said(True, row["text"], row["at"], outside=bool(row["outside"]), is_kept=True)
            found.append((score, note))
    return found


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


def weights(row: Row) -> dict[str, float]:
    """Return what each term of a message, and of a file that came with it, weighs in BM25."""
    attachment = orjson.loads(row["payload"]).get("attachment") or {}
    return text_weights(f"{row['text']} {str(attachment.get('text') or '')[:FILE_CHARACTERS]}")


def text_weights(text: str) -> dict[str, float]:
    """Return the BM25 weight of each term of a text, without its rarity."""
    found = Counter(terms(text))
    length = _K1 * (1 - _B + _B * found.total() / AVERAGE_WORDS)
    return {term: times * (_K1 + 1) / (times + length) for term, times in found.items()}


def read_question(text: str) -> Question:
    """Return the words of a question, each with its stem and what it means in the other languages."""
    found = words(text)
    meanings = lexicon().meanings(found)
    question: dict[str, dict[str, float]] = {}
    telling = set(content(found))
    for place, word in enumerate(found):
        if word not in telling:
            continue
        answers = question.setdefault(stem(word), {stem(word): 1.0})
        for meaning in meanings.get(place, ()):
            meant = content(meaning)
            answers |= {term: _MEANT / len(meant) for term in map(stem, meant) if term not in answers}
    return list(question.values())


def rank(
    conn: Connection, person: str, question: Question, since: float = 0, until: float = recall.FOREVER
) -> list[tuple[int, float]]:
    """Return a person's messages of [since, until) with their scores, the best first."""
    asked = {term for answers in question for term in answers}
    held = recall.holders(conn, person, asked)
    within = recall.between(conn, person, since, until)
    found, total = recall.postings(conn, person, held, within), recall.count(conn, person)
    scores: dict[int, float] = {}
    for answers in question:
        best: dict[int, float] = {}
        for term in answers.keys() & found.keys():
            rarity = _rarity(total, held[term])
            for message, weight in found[term]:
                best[message] = max(best.get(message, 0.0), answers[term] * rarity * weight)
        for message, score in best.items():
            scores[message] = scores.get(message, 0.0) + score
    best_of_all = dict(nlargest(_SPREADING, scores.items(), key=lambda one: one[1]))
    for message, beside in recall.neighbours(conn, list(best_of_all)).items():  # they get a share of it
        for one in filter(None, beside):
            scores[one] = scores.get(one, 0.0) + _NEIGHBOUR * best_of_all[message]
    if not scores:
        return []
    oldest, span = min(scores), max(scores) - min(scores) or 1
    ranked = {id: score * (1 + _RECENT * (id - oldest) / span) for id, score in scores.items()}
    return sorted(ranked.items(), key=lambda one: (-one[1], -one[0]))[:MOST_RANKED]


def _rarity(total: int, held: int) -> float:
    return math.log(1 + (max(total - held, 0) + 0.5) / (held + 0.5))
