"""A search index of tools: words (BM25F) mixed with character 4-grams, in plain Python, changed in place."""

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

from app.search.clauses import asks_for_several, asks_of_state
from app.search.phrases import without_slots
from app.search.scoring import (
    SPREAD,
    SPREAD_AMONG,
    SPREAD_OF_ONE,
    Answers,
    Postings,
    Query,
    Question,
    Worth,
    read_query,
    shared,
)
from app.search.words import WORDS, content, grams_of, stem, words


@dataclass(frozen=True, slots=True)
class Document:
    """A tool as the index reads it; `parameters`: name → description; `examples` have slots in braces."""

    id: str
    name: str
    description: str
    category: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()


class Hit(NamedTuple):
    """A tool that was found.

    `score` (0 to 1) orders the hits of one query. `coverage` is the share of the query's words, weighted by
    how telling they are, that the tool knows; thresholds compare it.
    """

    id: str
    score: float
    coverage: float


@dataclass(frozen=True, slots=True)
class _Field:
    """Weight of a field of a document.

    `usual_length` is fixed, not the average of what is indexed, so that adding a tool never moves another's
    score; `length_share`: how much a longer text dilutes its words, 0 not at all, 1 in proportion.
    """

    weight: float
    usual_length: float
    length_share: float


# how these were found: docs/routing.md
_NAME = _Field(3.0, 3, 0.5)
_DESCRIPTION = _Field(1.0, 14, 0.1)
_PARAMETER_NAMES = _Field(0.5, 5, 0.75)
_PARAMETER_TEXTS = _Field(0.5, 30, 0.75)
_CATEGORY = _Field(1.0, 2, 0.75)
_EXAMPLES = _Field(0.5, 25, 0.25)
_SATURATION = 2.0
_GRAM_SHARE = 0.3
_COMPACT_AT = 64  # slots of removed tools that stay at least
_NAME_BEGINS = 2  # words of a name, of which the first may be the server's


class ToolIndex:
    """Finds tools by what a person wrote; documents come and go at any time, from any thread."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._lock = threading.Lock()
        self._documents: dict[str, Document] = {}
        self._reset()
        self.add(documents)

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, id: object) -> bool:
        return id in self._documents

    def document(self, id: str) -> Document | None:
        return self._documents.get(id)

    def category(self, id: str) -> str:
        """Return the category of a tool, its own name if it has none."""
        document = self._documents.get(id)
        return (document.category if document is not None else "") or id

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents; one with the id of another takes its place."""
        with self._lock:
            for document in documents:
                self._remove(document.id)
                self._documents[document.id] = document
                self._insert(document)
            self._compact()

    def remove(self, ids: Iterable[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        with self._lock:
            for id in ids:
                self._remove(id)
            self._compact()

    def rank(self, query: str, *, among: Collection[str] | None = None, limit: int = 20) -> list[Hit]:
        """Return the best tools for `query`, best first; ties in the order of their ids."""
        with self._lock:
            question = self._question(query)
            scores = question.scores(len(self._ids))
            best = self._best(scores, among, limit)
            return self._hits(query, {slot: scores[slot] for slot in best}, Answers(question, best, scores))

    def spread(
        self,
        query: str,
        *,
        among: Collection[str] | None = None,
        apart: Collection[str] = (),
        limit: int = 20,
    ) -> list[Hit]:
        """Return the best tools for a message that may need several, and those of `apart` that fit at all.

        What better ones answer of the query counts less for those that follow, and their scores are lower by
        it; those of `apart` lose nothing to others, but to each other.
        """
        with self._lock:
            question = self._question(query)
            scores = question.scores(len(self._ids))
            best = self._best(scores, among, max(limit, SPREAD_AMONG))
            own = self._best(scores, apart, len(apart))
            answers = Answers(question, (*best, *own), scores)
            share = SPREAD if asks_for_several(query) else SPREAD_OF_ONE
            spread = answers.spread(best, limit, share) | answers.spread(own, len(own), share)
            return self._hits(query, spread, answers)

    def _question(self, text: str) -> Question:
        query = read_query(text)
        by_word = self._words.weighed(query.words, len(self), query.meanings)
        worth_of_grams, stem_of = self._grams_of(query)
        by_gram = self._grams.weighed(worth_of_grams, len(self), {})
        telling = shared([one for one in by_word if one.term in query.telling])
        shares = {one.term: one.share for one in telling}
        asked, pieces = shared(by_word, 1 - _GRAM_SHARE), shared(by_gram, _GRAM_SHARE)
        numbers = {stem: number for number, stem in enumerate(query.words)}
        stems = (*(one.term for one in asked), *(stem_of[one.term] for one in pieces))
        return Question(
            words=asked,
            grams=pieces,
            telling=[shares.get(one.term, 0.0) for one in asked],
            word_of=[numbers[stem] for stem in stems],
            said=len(numbers),
        )

    def _grams_of(self, query: Query) -> tuple[Worth, Mapping[str, str]]:
        """Return the worth of the 4-grams (those of meanings too), and for each the stem of its word."""
        worth: dict[str, float] = {}
        stems: dict[str, str] = {}
        meant = ((term, of) for term, of in query.meant_grams.items() if not self._words.is_well_known(term))
        for term, of_word in (*meant, *query.grams.items()):
            worth.update(of_word)
            stems.update(dict.fromkeys(of_word, term))
        return worth, stems

    def _best(self, scores: Sequence[float], among: Collection[str] | None, limit: int) -> list[int]:
        """Return the slots with the highest scores, best first, without those of score 0."""
        ids = self._slot_of.keys() if among is None else among
        known = ((id, slot) for id in ids if (slot := self._slot_of.get(id)) is not None)
        found = [(-scores[slot], id, slot) for id, slot in known if scores[slot] > 0]
        return [slot for _, _, slot in nsmallest(limit, found)]

    def _hits(self, query: str, scores: Mapping[int, float], answers: Answers) -> list[Hit]:
        """Return the hits, best first; if `query` asks how things are, those that read come first."""
        hits = [Hit(self._ids[slot], score, answers.coverage[slot]) for slot, score in scores.items()]
        if asks_of_state(query):
            hits = list(self._reading_first(hits))
        return sorted(hits, key=lambda hit: (-hit.score, self._slot_of[hit.id] in self._changing, hit.id))

    def _reading_first(self, hits: Sequence[Hit]) -> Iterator[Hit]:
        """Let no tool that changes something score above one that reads and knows as much of the query."""
        reading = [hit for hit in hits if self._slot_of[hit.id] not in self._changing]
        yield from reading
        for hit in hits:
            if self._slot_of[hit.id] in self._changing:
                as_good = (one.score for one in reading if one.coverage >= hit.coverage)
                yield hit._replace(score=min([hit.score, *as_good]))

    def _insert(self, document: Document) -> None:
        slot = len(self._ids)
        self._ids.append(document.id)
        self._slot_of[document.id] = slot
        if not WORDS["changing"].isdisjoint(words(document.name)[:_NAME_BEGINS]):
            self._changing.add(slot)
        by_word, by_gram = _weights(document)
        self._words.add(slot, by_word)
        self._grams.add(slot, by_gram)

    def _remove(self, id: str) -> None:
        document = self._documents.pop(id, None)
        if document is None:
            return
        del self._slot_of[id]
        by_word, by_gram = _weights(document)
        self._words.forget(by_word)
        self._grams.forget(by_gram)

    def _compact(self) -> None:
        if len(self._ids) - len(self._documents) < max(_COMPACT_AT, len(self._documents)):
            return
        self._reset()
        for document in self._documents.values():
            self._insert(document)

    def _reset(self) -> None:
        self._ids: list[str] = []
        self._slot_of: dict[str, int] = {}
        self._changing: set[int] = set()
        self._words = Postings()
        self._grams = Postings()


def _weights(document: Document) -> tuple[dict[str, float], dict[str, float]]:
    """Return how strongly the document holds each stem and each 4-gram, 0 to 1."""
    by_word: dict[str, float] = {}
    by_gram: dict[str, float] = {}
    for kind, text in _fields(document):
        found = words(text)
        telling = content(found)
        if not found:
            continue
        length = 1 - kind.length_share + kind.length_share * len(telling) / kind.usual_length
        strength = kind.weight / length
        for term, times in Counter(map(stem, found)).items():
            by_word[term] = by_word.get(term, 0.0) + times * strength
        for word, times in Counter(telling).items():
            worth = times * strength
            for gram in grams_of(word):
                by_gram[gram] = by_gram.get(gram, 0.0) + worth
    return _saturated(by_word), _saturated(by_gram)


def _saturated(weights: dict[str, float]) -> dict[str, float]:
    return {term: weight / (_SATURATION + weight) for term, weight in weights.items()}


def _fields(document: Document) -> Iterable[tuple[_Field, str]]:
    yield _NAME, document.name
    yield _DESCRIPTION, document.description
    yield _PARAMETER_NAMES, " ".join(document.parameters)
    yield _PARAMETER_TEXTS, " ".join(document.parameters.values())
    yield _CATEGORY, document.category
    yield _EXAMPLES, " ".join(map(without_slots, document.examples))
