"""Ranked recall: the messages of a person that answer a question best, by BM25 over stems.

A message is read with its neighbours, for an answer often names nothing of what was asked. Words of other
languages count by the lexicon, less than what was said.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import nlargest

import orjson

from app.search.lexicon import lexicon
from app.search.words import content, stem, terms, words
from app.store import recall
from app.store.database import Connection, Row

AVERAGE_WORDS = 14  # of a message, for the length in BM25
FILE_CHARACTERS = 20_000  # of a file's text that are indexed
MOST_RANKED = 400
_K1, _B = 1.2, 0.5
_MEANT = 0.5  # worth of a meaning beside the word itself
_NEIGHBOUR = 0.3  # share of a message's score that those beside it get
_RECENT = 0.05  # the newest message counts so much more than the oldest
_SPREADING = 60  # the best messages, whose neighbours are looked at

Question = Sequence[Mapping[str, float]]  # for each word the terms that answer it, with their worth


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
    _spread(conn, scores)
    if not scores:
        return []
    oldest, span = min(scores), max(scores) - min(scores) or 1
    ranked = {id: score * (1 + _RECENT * (id - oldest) / span) for id, score in scores.items()}
    return sorted(ranked.items(), key=lambda one: (-one[1], -one[0]))[:MOST_RANKED]


def score_texts(conn: Connection, person: str, question: Question, texts: Sequence[str]) -> list[float]:
    """Return how well texts that are no messages answer a question, on the scale of `rank`."""
    asked = {term for answers in question for term in answers}
    held, total = recall.holders(conn, person, asked), recall.count(conn, person)
    rarity = {term: _rarity(total, held.get(term, 0)) for term in asked}
    return [
        sum(
            max(worth * rarity[term] * found.get(term, 0.0) for term, worth in one.items())
            for one in question
        )
        for found in map(text_weights, texts)
    ]


def _rarity(total: int, held: int) -> float:
    return math.log(1 + (max(total - held, 0) + 0.5) / (held + 0.5))


def _spread(conn: Connection, scores: dict[int, float]) -> None:
    """Give the neighbours of the best messages a share of their scores."""
    best = dict(nlargest(_SPREADING, scores.items(), key=lambda one: one[1]))
    for message, beside in recall.neighbours(conn, list(best)).items():
        for one in filter(None, beside):
            scores[one] = scores.get(one, 0.0) + _NEIGHBOUR * best[message]
