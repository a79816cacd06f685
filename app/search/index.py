"""A search index of tools: words (BM25F) mixed with character 4-grams, in plain Python, changed in place."""

import math
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nlargest
from operator import attrgetter
from typing import NamedTuple

from app.search.answers import SPREAD_AMONG, Answers, Parts, Question
from app.search.postings import Postings, shared
from app.search.query import Query, Worth, read_query
from app.search.words import content, grams_of, stem, without_slots, words


@dataclass(frozen=True, slots=True)
class Document:
    """What is known of one tool. `parameters`: name → description; `examples`: phrases, slots in braces."""

    id: str
    name: str
    description: str
    category: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()


class Hit(NamedTuple):
    """A tool that was found.

    `score` lies in 0..1 and orders the hits of one query; `coverage` is the share of the query's words,
    weighted by how telling they are, that the tool knows: what a threshold is put on. `parts`: of what the
    score is made, or was before it was spread.
    """

    id: str
    score: float
    coverage: float
    parts: Parts = Parts()


@dataclass(frozen=True, slots=True)
class _Field:
    weight: float
    usual_length: float
    """Fixed rather than the average of what is indexed: adding a tool never moves another's score."""
    length_share: float
    """How much a longer text dilutes its words: 0 not at all, 1 in proportion."""


# How these were found: docs/decisions/0019-tool-index.md
_NAME = _Field(3.0, 3, 0.5)
_DESCRIPTION = _Field(1.0, 14, 0.1)
_PARAMETER_NAMES = _Field(0.5, 5, 0.75)
_PARAMETER_TEXTS = _Field(0.5, 30, 0.75)
_CATEGORY = _Field(1.0, 2, 0.75)
_EXAMPLES = _Field(0.5, 25, 0.25)
_SATURATION = 2.0
_GRAM_SHARE = 0.3
_COMMON_WORD = 1 / 2
_COMMON_GRAM = 1 / 40
"""Terms in a larger share of the tools tell next to nothing, and are most of the work."""
_LEAST = math.ulp(0.0)
"""The lowest score above 0."""
_COMPACT_AT = 64
"""Slots of removed tools that stay at least."""
_FEW = 256
"""Up to so many tools it is quicker to look at all than to find out which."""
_ID, _SCORE = attrgetter("id"), attrgetter("score")
_LATELY = 8
"""Texts of which it is kept what they ask for."""


class ToolIndex:
    """Finds tools by what a person wrote; documents come and go at any time, from any thread."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._lock = threading.Lock()
        self._sorted: list[tuple[str, int]] = []
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
            self._lately.clear()

    def remove(self, ids: Iterable[str]) -> None:
        """Removes documents; unknown ids are passed over."""
        with self._lock:
            for id in ids:
                self._remove(id)
            self._compact()
            self._lately.clear()

    def rank(
        self,
        query: str,
        *,
        among: Collection[str] | None = None,
        limit: int = 20,
        bridge: bool = True,
    ) -> list[Hit]:
        """The best tools for `query`, best first; ties in the order of their ids.

        `bridge`: what words mean by the lexicon counts too.
        """
        with self._lock:
            asked = self._asked(query, bridge=bridge)
            of_all = self._of_all(asked)
            scores = of_all.scores if of_all else self._scores(asked)
            best = self._best(scores, among, limit)
            answers = of_all or Answers(asked, best, scores)
            return self._hits({slot: scores[slot] for slot in best}, answers)

    def spread(
        self,
        query: str,
        *,
        among: Collection[str] | None = None,
        apart: Collection[str] = (),
        limit: int = 20,
    ) -> list[Hit]:
        """The best tools for a message that may need several, and those of `apart` that fit at all.

        What better ones answer of the query counts less for those that follow, and their scores are lower by
        it; those of `apart` lose nothing to others, but to each other.
        """
        with self._lock:
            asked = self._asked(query, bridge=True)
            of_all = self._of_all(asked)
            scores = of_all.scores if of_all else self._scores(asked)
            best = self._best(scores, among, max(limit, SPREAD_AMONG))
            own = self._best(scores, apart, len(apart))
            answers = of_all or Answers(asked, (*best, *own), scores, pieces=True)
            spread = answers.spread(best, limit) | answers.spread(own, len(own))
            hits = self._hits(spread, answers)
            hits.sort(key=_ID)
            hits.sort(key=_SCORE, reverse=True)
            return hits

    def coverage(self, id: str, query: str) -> float:
        """The share of `query` that one tool knows, as in `Hit.coverage`; 0 for an unknown id."""
        return next((hit.coverage for hit in self.rank(query, among=(id,))), 0.0)

    def _asked(self, text: str, *, bridge: bool) -> Question:
        """What `text` asks for; that of the last few is kept, for a turn asks about a text several times.

        Under a digest, with no term but those of tools and the lexicon: nobody's words outlive their rows.
        """
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest(), bridge
        if found := self._lately.get(key):
            return found
        said = read_query(text, bridge=bridge)
        by_word = self._words.weighed(said.words, len(self), said.meanings)
        worth_of_grams, stem_of = self._grams_of(said)
        by_gram = self._grams.weighed(worth_of_grams, len(self))
        telling = shared([one for one in by_word if one.term in said.telling])
        shares = {one.term: one.share for one in telling}
        asked, pieces = shared(by_word, 1 - _GRAM_SHARE), shared(by_gram, _GRAM_SHARE)
        numbers = {stem: number for number, stem in enumerate(said.words)}
        stems = (*(one.term for one in asked), *(stem_of[one.term] for one in pieces))
        question = Question(
            words=asked,
            grams=pieces,
            telling=[shares.get(one.term, 0.0) for one in asked],
            word_of=[numbers[stem] for stem in stems],
            said=len(numbers),
        )
        if len(self._lately) >= _LATELY:
            del self._lately[next(iter(self._lately))]
        self._lately[key] = question
        return question

    def _grams_of(self, query: Query) -> tuple[Worth, Mapping[str, str]]:
        """Its 4-grams, and those of what its words mean where that counts; for each the stem of the word."""
        worth: dict[str, float] = {}
        stems: dict[str, str] = {}
        meant = ((term, of) for term, of in query.meant_grams.items() if not self._words.is_well_known(term))
        for term, of_word in (*meant, *query.grams.items()):
            worth.update(of_word)
            stems.update(dict.fromkeys(of_word, term))
        return worth, stems

    def _of_all(self, asked: Question) -> Answers | None:
        """What all tools answer, where they are few."""
        slots = range(len(self._ids))
        return Answers(asked, slots, pieces=True) if asked.said and len(slots) <= _FEW else None

    def _scores(self, asked: Question) -> list[float]:
        scores = [0.0] * len(self._ids)
        for one in asked.all:
            whole = one.whole
            for slot, weight in zip(one.slots, one.weights, strict=True):
                scores[slot] += whole * weight
        return scores

    def _best(self, scores: Sequence[float], among: Collection[str] | None, limit: int) -> list[int]:
        """The slots with the highest scores, best first, without those of score 0."""
        if among is not None and len(among) < len(self) / 4:
            slots = (self._slot_of.get(id) for id in among)
            found = sorted(
                [slot for slot in slots if slot is not None and scores[slot] > 0], key=self._ids.__getitem__
            )
        elif len(self._ids) <= _FEW:
            found = [
                slot for id, slot in self._by_id() if scores[slot] > 0 and (among is None or id in among)
            ]
        else:
            found = sorted(self._highest(scores, among, limit), key=self._ids.__getitem__)
        found.sort(key=scores.__getitem__, reverse=True)
        return found[:limit]

    def _by_id(self) -> Sequence[tuple[str, int]]:
        """The ids with their slots, in the order of the ids."""
        if not self._sorted:
            self._sorted = sorted(self._slot_of.items())
        return self._sorted

    def _highest(self, scores: Sequence[float], among: Collection[str] | None, limit: int) -> list[int]:
        """At least `limit` slots, if as many score, among them the highest; looks no further than it must."""
        ids, slot_of = self._ids, self._slot_of
        among = slot_of if among is None else among
        looked = limit
        while True:
            least = nlargest(looked, scores)[-1] if 0 < looked < len(scores) else 0.0
            least = max(least, _LEAST)
            high = [slot for slot, score in enumerate(scores) if score >= least]
            found = [slot for slot in high if slot_of.get(id := ids[slot]) == slot and id in among]
            if len(found) >= limit or least == _LEAST:
                return found
            looked *= 4

    def _hits(self, scores: Mapping[int, float], answers: Answers) -> list[Hit]:
        return [Hit(self._ids[slot], score, *answers.told_of(slot)) for slot, score in scores.items()]

    def _insert(self, document: Document) -> None:
        slot = len(self._ids)
        self._ids.append(document.id)
        self._slot_of[document.id] = slot
        self._sorted = []
        by_word, by_gram = _weights(document)
        self._words.add(slot, by_word)
        self._grams.add(slot, by_gram)

    def _remove(self, id: str) -> None:
        document = self._documents.pop(id, None)
        if document is None:
            return
        del self._slot_of[id]
        self._sorted = []
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
        self._sorted = []
        self._lately: dict[tuple[bytes, bool], Question] = {}
        self._words = Postings(_COMMON_WORD)
        self._grams = Postings(_COMMON_GRAM)


def _weights(document: Document) -> tuple[dict[str, float], dict[str, float]]:
    """How strongly the document holds each stem and each 4-gram, in 0..1."""
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
