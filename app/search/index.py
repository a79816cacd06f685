"""A search index of tools: words (BM25F) mixed with character 4-grams, in plain Python, changed in place."""

import math
import threading
from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from app.search.words import content, grams, stem, without_slots, words


@dataclass(frozen=True, slots=True)
class Document:
    """What is known of one tool. `parameters`: name → description; `examples`: phrases, slots in braces."""

    id: str
    name: str
    description: str
    category: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found.

    `score` lies in 0..1 and orders the hits of one query; `coverage` is the share of the query's words,
    weighted by how telling they are, that the tool knows: what a threshold is put on.
    """

    id: str
    score: float
    coverage: float


@dataclass(frozen=True, slots=True)
class _Field:
    weight: float
    usual_length: float
    """Fixed rather than the average of what is indexed: adding a tool never moves another's score."""


_NAME = _Field(2.0, 3)
_DESCRIPTION = _Field(1.0, 14)
_PARAMETER_NAMES = _Field(1.0, 5)
_PARAMETER_TEXTS = _Field(0.5, 30)
_CATEGORY = _Field(1.0, 2)
_EXAMPLES = _Field(1.0, 25)
_SATURATION = 2.0
_LENGTH_SHARE = 0.75
_GRAM_SHARE = 0.3
_COMPACT_AT = 64


class _Postings:
    """Term → which slots hold it, and how strongly (0..1); slots of removed tools stay until compaction."""

    def __init__(self) -> None:
        self._slots: dict[str, array[int]] = {}
        self._weights: dict[str, array[float]] = {}
        self._removed: dict[str, int] = {}

    def add(self, slot: int, weights: Mapping[str, float]) -> None:
        for term, weight in weights.items():
            if term not in self._slots:
                self._slots[term] = array("I")
                self._weights[term] = array("f")
            self._slots[term].append(slot)
            self._weights[term].append(weight)

    def forget(self, found: Iterable[str]) -> None:
        for term in found:
            self._removed[term] = self._removed.get(term, 0) + 1

    def holders(self, term: str) -> int:
        return len(self._slots.get(term, ())) - self._removed.get(term, 0)

    def of(self, term: str) -> Iterable[tuple[int, float]]:
        return zip(self._slots.get(term, ()), self._weights.get(term, ()), strict=True)


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

    def add(self, documents: Iterable[Document]) -> None:
        """Adds documents; one with the id of another takes its place."""
        with self._lock:
            for document in documents:
                self._remove(document.id)
                self._documents[document.id] = document
                self._insert(document)
            self._compact()

    def remove(self, ids: Iterable[str]) -> None:
        """Removes documents; unknown ids are passed over."""
        with self._lock:
            for id in ids:
                self._remove(id)
            self._compact()

    def rank(self, query: str, *, among: Collection[str] | None = None, limit: int = 20) -> list[Hit]:
        """The best tools for `query`, best first; ties in the order of their ids."""
        found = content(words(query))
        with self._lock:
            by_word, covered = self._word_scores([stem(word) for word in found])
            by_gram = self._gram_scores(found)
            hits = self._hits(by_word, by_gram, covered, None if among is None else frozenset(among))
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return hits[:limit]

    def coverage(self, id: str, query: str) -> float:
        """The share of `query` that one tool knows, as in `Hit.coverage`; 0 for an unknown id."""
        return next((hit.coverage for hit in self.rank(query, among=(id,))), 0.0)

    def _hits(
        self,
        by_word: dict[int, float],
        by_gram: dict[int, float],
        covered: dict[int, float],
        among: frozenset[str] | None,
    ) -> list[Hit]:
        hits = []
        for slot in by_word.keys() | by_gram.keys():
            id = self._ids[slot]
            if id is None or (among is not None and id not in among):
                continue
            score = (1 - _GRAM_SHARE) * by_word.get(slot, 0.0) + _GRAM_SHARE * by_gram.get(slot, 0.0)
            hits.append(Hit(id, score, covered.get(slot, 0.0)))
        return hits

    def _word_scores(self, query: list[str]) -> tuple[dict[int, float], dict[int, float]]:
        rarity = {term: self._rarity(self._words, term) for term in query}
        mass = sum(rarity.values()) or 1.0
        scores: dict[int, float] = {}
        covered: dict[int, float] = {}
        for term, idf in rarity.items():
            share = idf / mass
            for slot, weight in self._words.of(term):
                scores[slot] = scores.get(slot, 0.0) + share * weight
                covered[slot] = covered.get(slot, 0.0) + share
        return scores, covered

    def _gram_scores(self, query: list[str]) -> dict[int, float]:
        rarity = {gram: self._rarity(self._grams, gram) for gram in grams(query)}
        mass = sum(rarity.values()) or 1.0
        scores: dict[int, float] = {}
        for gram, idf in rarity.items():
            share = idf / mass
            for slot, weight in self._grams.of(gram):
                scores[slot] = scores.get(slot, 0.0) + share * weight
        return scores

    def _rarity(self, postings: _Postings, term: str) -> float:
        holders = postings.holders(term)
        return math.log(1 + (len(self._documents) - holders + 0.5) / (holders + 0.5))

    def _insert(self, document: Document) -> None:
        slot = len(self._ids)
        self._ids.append(document.id)
        self._slot_of[document.id] = slot
        by_word, by_gram = _weights(document)
        self._words.add(slot, by_word)
        self._grams.add(slot, by_gram)

    def _remove(self, id: str) -> None:
        document = self._documents.pop(id, None)
        if document is None:
            return
        self._ids[self._slot_of.pop(id)] = None
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
        self._ids: list[str | None] = []
        self._slot_of: dict[str, int] = {}
        self._words = _Postings()
        self._grams = _Postings()


def _weights(document: Document) -> tuple[dict[str, float], dict[str, float]]:
    """How strongly the document holds each stem and each 4-gram, in 0..1."""
    by_word: dict[str, float] = {}
    by_gram: dict[str, float] = {}
    for kind, text in _fields(document):
        found = content(words(text))
        if not found:
            continue
        norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * len(found) / kind.usual_length
        strength = kind.weight / norm
        for word in found:
            term = stem(word)
            by_word[term] = by_word.get(term, 0.0) + strength
        for gram in grams(found):
            by_gram[gram] = by_gram.get(gram, 0.0) + strength
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
