"""A search index of tools: words (BM25F) mixed with character 4-grams, in plain Python, changed in place."""

import math
import threading
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.search.query import Query, Worth, read_query
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
    length_share: float
    """How much a longer text dilutes its words: 0 not at all, 1 in proportion."""


# How these were found: docs/decisions/0036-choosing-the-index.md
_NAME = _Field(3.0, 3, 0.5)
_DESCRIPTION = _Field(1.0, 14, 0.1)
_PARAMETER_NAMES = _Field(0.5, 5, 0.75)
_PARAMETER_TEXTS = _Field(0.5, 30, 0.75)
_CATEGORY = _Field(1.0, 2, 0.75)
_EXAMPLES = _Field(0.75, 25, 0.25)
_SATURATION = 2.0
_GRAM_SHARE = 0.3
_WELL_KNOWN = 25
"""Where more tools hold a word they are told apart by it as it is, not by what else it may mean."""
_COMMON_WORD = 1 / 2
_COMMON_GRAM = 1 / 40
"""Terms in a larger share of the tools tell next to nothing, and are most of the work."""
_NEVER_COMMON = 400
_SPREAD = 0.2
"""How much of what the best holder answers of a word the others answer no more."""
_SPREAD_AMONG = 32
_SPREAD_PLACES = 16
_COMPACT_AT = 64


@dataclass(frozen=True, slots=True)
class _Asked:
    """One term of a query: how much of the query it is, and which slots hold it how strongly."""

    term: str
    share: float
    slots: "array[int]"
    weights: "array[float]"


_NO_SLOTS = array("I")
_NO_WEIGHTS = array("f")
_NO_MEANINGS: Mapping[str, Sequence[Worth]] = {}


class _Postings:
    """Term → which slots hold it, and how strongly (0..1); slots of removed tools stay until compaction."""

    def __init__(self, common: float) -> None:
        self._common = common
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

    def weighed(
        self, worth: Worth, documents: int, meanings: Mapping[str, Sequence[Worth]] = _NO_MEANINGS
    ) -> list[_Asked]:
        """The terms of a query, by how well they tell some of so many documents from others.

        A term and its `meanings` are one thing asked: a tool answers it by the best of them. Terms that too
        many hold have no slots, but where none has any then.
        """
        most = max(_NEVER_COMMON, documents * self._common)
        telling = self._all_weighed(worth, documents, meanings, most)
        if any(one.slots for one in telling):
            return telling
        return self._all_weighed(worth, documents, meanings, documents)

    def _all_weighed(
        self, worth: Worth, documents: int, meanings: Mapping[str, Sequence[Worth]], most: float
    ) -> list[_Asked]:
        weighed = []
        for term, value in worth.items():
            one = self._said(term, value, documents, most)
            if term in meanings and not self.is_well_known(term):
                one = self._meant(one, meanings[term], documents, most)
            weighed.append(one)
        return weighed

    def _said(self, term: str, worth: float, documents: int, most: float) -> _Asked:
        """One term, not yet weighed against the others of its query; without slots where too many hold it."""
        share = worth * self._rarity(term, documents)
        if 0 < self._holders(term) <= most:
            return _Asked(term, share, self._slots[term], self._weights[term])
        return _Asked(term, share, _NO_SLOTS, _NO_WEIGHTS)

    def _meant(self, said: _Asked, meanings: Iterable[Worth], documents: int, most: float) -> _Asked:
        """A term with its meanings. Beside one that tools hold no meaning is more telling than itself."""
        held = self._holders(said.term) > 0
        share = said.share if held else 0.0
        best = _answers([said])
        for meaning in meanings:
            terms = [self._said(term, worth, documents, most) for term, worth in meaning.items()]
            if not any(one.slots for one in terms):
                continue
            whole = sum(one.share for one in terms)
            least = min(1.0, said.share * sum(meaning.values()) / whole) if held else 1.0
            share = max(share, least * whole)
            for slot, answer in _answers(terms, least).items():
                if answer > best.get(slot, 0.0):
                    best[slot] = answer
        share = share or said.share
        weights = array("f", [answer / share for answer in best.values()])
        return _Asked(said.term, share, array("I", best), weights)

    def is_well_known(self, term: str) -> bool:
        return self._holders(term) > _WELL_KNOWN

    def _rarity(self, term: str, documents: int) -> float:
        holders = self._holders(term)
        return math.log(1 + (documents - holders + 0.5) / (holders + 0.5))

    def _holders(self, term: str) -> int:
        return len(self._slots.get(term, ())) - self._removed.get(term, 0)


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

    def rank(
        self,
        query: str,
        *,
        among: Collection[str] | None = None,
        limit: int = 20,
        spread: bool = False,
        bridge: bool = True,
    ) -> list[Hit]:
        """The best tools for `query`, best first; ties in the order of their ids.

        `bridge`: what words mean by the lexicon counts too. `spread`: for messages that need several tools.
        What better ones answer of the query counts less for those that follow, and their scores are lower
        by it.
        """
        said = read_query(query, bridge=bridge)
        with self._lock:
            by_word = self._words.weighed(said.words, len(self), said.meanings)
            by_gram = self._grams.weighed(self._grams_of(said), len(self))
            asked = [*_shared(by_word, 1 - _GRAM_SHARE), *_shared(by_gram, _GRAM_SHARE)]
            scores = self._scores(asked)
            covered = self._coverages(_shared([one for one in by_word if one.term in said.telling]))
            best = self._best(scores, among, max(limit, _SPREAD_AMONG) if spread else limit)
            if spread:
                best = _spread(best, asked, scores)
            return [Hit(self._ids[slot], scores[slot], covered[slot]) for slot in best[:limit]]

    def coverage(self, id: str, query: str) -> float:
        """The share of `query` that one tool knows, as in `Hit.coverage`; 0 for an unknown id."""
        return next((hit.coverage for hit in self.rank(query, among=(id,))), 0.0)

    def _grams_of(self, query: Query) -> Worth:
        """Its 4-grams, and those of what its words mean where that counts."""
        found: dict[str, float] = {}
        for term, meant in query.meant_grams.items():
            if not self._words.is_well_known(term):
                found.update(meant)
        return {**found, **query.grams}

    def _scores(self, asked: Iterable[_Asked]) -> list[float]:
        scores = [0.0] * len(self._ids)
        for one in asked:
            share = one.share
            for slot, weight in zip(one.slots, one.weights, strict=True):
                scores[slot] += share * weight
        return scores

    def _coverages(self, asked: Iterable[_Asked]) -> list[float]:
        covered = [0.0] * len(self._ids)
        for one in asked:
            share = one.share
            for slot in one.slots:
                covered[slot] += share
        return covered

    def _best(self, scores: list[float], among: Collection[str] | None, limit: int) -> list[int]:
        """The slots with the highest scores, best first, without those of score 0."""
        there = self._slot_of
        named = there.values() if among is None else [there[id] for id in there.keys() & among]
        slots = [slot for slot in named if scores[slot] > 0]
        if len(slots) > limit:  # most of the sorting is spared
            least = sorted(map(scores.__getitem__, slots))[-limit] if limit else math.inf
            slots = [slot for slot in slots if scores[slot] >= least]
        slots.sort(key=lambda slot: (-scores[slot], self._ids[slot]))
        return slots[:limit]

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
        self._words = _Postings(_COMMON_WORD)
        self._grams = _Postings(_COMMON_GRAM)


def _answers(asked: Sequence[_Asked], part: float = 1.0) -> dict[int, float]:
    """How much of what was asked each slot answers."""
    first, *others = asked
    share = part * first.share
    answers = {slot: share * weight for slot, weight in zip(first.slots, first.weights, strict=True)}
    for one in others:
        share = part * one.share
        for slot, weight in zip(one.slots, one.weights, strict=True):
            answers[slot] = answers.get(slot, 0.0) + share * weight
    return answers


def _shared(weighed: Sequence[_Asked], whole: float = 1.0) -> list[_Asked]:
    """Those that any tool answers; with those of the others their shares make `whole`."""
    part = whole / (sum(one.share for one in weighed) or 1.0)
    return [_Asked(one.term, part * one.share, one.slots, one.weights) for one in weighed if one.slots]


def _spread(slots: Sequence[int], asked: Iterable[_Asked], scores: list[float]) -> list[int]:
    """The slots in the order in which each adds most to those before it; lowers their `scores` to that."""
    left = {slot: scores[slot] for slot in slots[:_SPREAD_AMONG]}
    terms = [held for one in asked if len(held := _held(one, left)) > 1]
    order: list[int] = []
    while left and len(order) < _SPREAD_PLACES:
        taken = max(left, key=left.__getitem__)
        scores[taken] = left.pop(taken)
        order.append(taken)
        for held in terms:
            if taken in held:
                lost = _SPREAD * held[taken] / max(held.values())
                for slot, value in held.items():
                    held[slot] = value * (1 - lost)
                    if slot in left:
                        left[slot] -= value * lost
    rest = [slot for slot in slots if slot not in order]
    for slot in rest:
        scores[slot] = min(scores[slot], scores[order[-1]])
    return order + rest


def _held(asked: _Asked, slots: Collection[int]) -> dict[int, float]:
    """What each of the slots answers of a term."""
    pairs = zip(asked.slots, asked.weights, strict=True)
    return {slot: asked.share * weight for slot, weight in pairs if slot in slots}


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
        for word in found:
            term = stem(word)
            by_word[term] = by_word.get(term, 0.0) + strength
        for gram in grams(telling):
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
