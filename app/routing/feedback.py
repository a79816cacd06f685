"""Routing feedback: how well tools fit a message by the words of earlier messages that they answered."""

import math
from collections.abc import Iterable, Iterator, Mapping
from sqlite3 import Connection

import structlog

from app.people import Person
from app.search.index import Hit
from app.search.words import ALL_STOP_WORDS, stem, words
from app.store import learned_phrases
from app.store.learned_phrases import OwnStem

log = structlog.get_logger(__name__)

MOST_ASKED = 64  # stems of a message that are looked for
LONGEST_ASKED = 2_000  # characters of it that they are taken from
LONGEST_STEM = 24
SHARED_SHARE = 0.15  # the most that words of others add to a fit
SCORE_SHARE = 0.7  # added to the index's score by a full fit

Fits = Mapping[str, float]  # by tool, 0 to 1

NOTHING_LEARNED: Fits = {}


def stems_of(text: str) -> list[str]:
    """Return the stems of a text that can be learned, each once; none if no word carries meaning.

    Words with digits (amounts, dates, codes) are left out.
    """
    telling = (word for word in words(text) if word not in ALL_STOP_WORDS)
    found = (stem(word) for word in telling if not any(map(str.isdigit, word)))
    return list(dict.fromkeys(one for one in found if len(one) <= LONGEST_STEM))


def learned_about(conn: Connection, person: Person, said: str) -> Fits:
    """Return how tools fit by this person's own phrases, and by the words that enough people share.

    It is read from the rows for each message, so that nothing outlives its row. If that fails, the turn goes
    on without it.
    """
    try:
        stems = stems_of(said[:LONGEST_ASKED])[:MOST_ASKED]
        if not stems:
            return NOTHING_LEARNED
        return fits(len(stems), *learned_phrases.matching_stems(conn, person.id, person.realm, stems))
    except Exception:
        if not conn.in_transaction:
            raise
        log.exception("what was learned could not be read")
        return NOTHING_LEARNED


def fits(asked: int, own: Iterable[OwnStem], shared: Mapping[str, int]) -> dict[str, float]:
    """Return how tools fit a message of `asked` stems, by the rows that hold some of these.

    The phrase most like the message counts: the share of the message that it holds times the share of it that
    the message holds. So a long phrase says little about a word in it, and twenty phrases no more than one. A
    stem counts less the more of the person's tools it was learned for.
    """
    found = {tool: stems * SHARED_SHARE / asked for tool, stems in shared.items()}
    for tool, fit in _by_phrase(asked, own):
        found[tool] = max(found.get(tool, 0.0), fit)
    return found


def _by_phrase(asked: int, own: Iterable[OwnStem]) -> Iterator[tuple[str, float]]:
    """Yield the tool of each phrase, and how well it fits by that phrase."""
    tools: dict[str, set[str]] = {}
    rows: dict[tuple[str, int], list[OwnStem]] = {}
    for row in own:
        tools.setdefault(row.stem, set()).add(row.tool)
        rows.setdefault((row.tool, row.phrase), []).append(row)
    telling = {stem: 1 / math.log2(1 + len(those)) for stem, those in tools.items()}
    for (tool, _), held in rows.items():
        of_message = sum(telling[row.stem] for row in held) / asked
        of_phrase = sum(telling[row.stem] * row.share for row in held)
        yield tool, of_message * of_phrase


def overlaid(hits: Iterable[Hit], learned: Fits) -> list[Hit]:
    """Return a ranking with what was learned mixed in, best first."""
    if not learned:
        return list(hits)
    by_id = {hit.id: hit for hit in hits}
    for id, fit in learned.items():
        hit = by_id.get(id, Hit(id, 0.0, 0.0))
        score, coverage = min(1.0, hit.score + SCORE_SHARE * fit), max(hit.coverage, fit)
        by_id[id] = hit._replace(score=score, coverage=coverage)
    return sorted(by_id.values(), key=lambda hit: (-hit.score, hit.id))
