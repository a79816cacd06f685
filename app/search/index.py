"""A search index of tools: words (BM25F) mixed with character 4-grams, in plain Python, changed in place."""

import math
import threading
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nsmallest
from operator import mul
from sys import intern
from typing import NamedTuple

from app.search.clauses import asks_for_several, asks_of_state, asks_whether
from app.search.lexicon import Meaning, Meanings, lexicon
from app.search.phrases import without_slots
from app.search.words import ALL_STOP_WORDS, WORDS, content, grams_of, stem, words

Worth = Mapping[str, float]  # how much each term counts

_SMALL_WORD = 0.2  # beside words that carry meaning: little, but "turn on" is not "turn off"
_STATE, _ASKED = "state", 0.3  # what a yes-or-no question asks for, and its worth
_MEANT = 0.7  # worth of a meaning beside a word that the message itself holds
_MEANT_GRAM = 0.5  # the same for 4-grams, shared by the meanings that are looked for by them
_MEANT_BY_GRAMS = 3
_WELL_KNOWN = 25  # tools that hold a word from which on its other meanings no longer count
# share of the best tool's answer to a word that the tools after it no longer answer
SPREAD, SPREAD_OF_ONE = 0.2, 0.02  # where several things are asked for, and where one is
_SPREAD_PLACES = 8
SPREAD_AMONG = 32


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


class _Field(NamedTuple):
    """A field of a document, and the weight of its words.

    `usual_length` is fixed, not the average of what is indexed, so that adding a tool never moves another's
    score; `length_share`: how much a longer text dilutes its words, 0 not at all, 1 in proportion.
    """

    text: Callable[[Document], str]
    weight: float
    usual_length: float
    length_share: float


_FIELDS = (  # how these were found: docs/routing.md
    _Field(lambda tool: tool.name, 3.0, 3, 0.5),
    _Field(lambda tool: tool.description, 1.0, 14, 0.1),
    _Field(lambda tool: " ".join(tool.parameters), 0.5, 5, 0.75),
    _Field(lambda tool: " ".join(tool.parameters.values()), 0.5, 30, 0.75),
    _Field(lambda tool: tool.category, 1.0, 2, 0.75),
    _Field(lambda tool: " ".join(map(without_slots, tool.examples)), 0.5, 25, 0.25),
)
_SATURATION = 2.0
_GRAM_SHARE = 0.3
_NAME_BEGINS = 2  # words of a name, of which the first may be the server's


@lru_cache(maxsize=4096)
def _worth_of(meaning: Meaning) -> Worth:
    """Return the worth of a meaning's terms; several that carry meaning count as one together."""
    telling = max(1, sum(word not in ALL_STOP_WORDS for word in meaning))
    return {
        stem(word): _MEANT * (_SMALL_WORD if word in ALL_STOP_WORDS else 1.0) / telling for word in meaning
    }


def _grams_of_meanings(meanings: Iterable[Meaning]) -> list[str]:
    telling = [word for meaning in meanings for word in meaning if word not in ALL_STOP_WORDS]
    return [gram for word in telling for gram in grams_of(word)]


class Asked(NamedTuple):
    """A term of a query with its `share` of it; each of `slots` answers `whole` times its weight.

    `word`: the stem that it is, or is a piece of; `known`: what a tool that holds it adds to its coverage.
    """

    term: str
    share: float
    whole: float
    slots: "array[int]"
    weights: "array[float]"
    word: str = ""
    known: float = 0.0


_NOTHING: "tuple[array[int], array[float]]" = array("I"), array("f")


class Postings:
    """Slots, in their order, and weights (0 to 1) by term."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, slot: int, weights: Mapping[str, float]) -> None:
        for term, weight in weights.items():
            if term not in self._found:  # the other postings hold many of the same terms
                self._found[intern(term)] = array("I"), array("f")
            self._found[term][0].append(slot)
            self._found[term][1].append(weight)

    def remove(self, slot: int, found: Iterable[str]) -> None:
        for term in found:
            slots, weights = self._found[term]
            place = bisect_left(slots, slot)
            del slots[place], weights[place]

    def weighed(self, worth: Worth, documents: int, meanings: Mapping[str, Meanings]) -> list[Asked]:
        """Return the terms of a query, by how well they tell some of so many documents from others.

        A term and its `meanings` are one thing asked: a tool answers it by the best of them.
        """
        weighed = []
        for term, value in worth.items():
            one = self._said(term, value, documents)
            if term in meanings and not self.is_well_known(term):
                one = self._with_meanings(one, meanings[term], documents)
            weighed.append(one)
        return weighed

    def is_well_known(self, term: str) -> bool:
        return len(self._found.get(term, _NOTHING)[0]) > _WELL_KNOWN

    def _said(self, term: str, worth: float, documents: int) -> Asked:
        """Return a term not yet weighed against the others."""
        slots, weights = self._found.get(term, _NOTHING)
        share = worth * math.log(1 + (documents - len(slots) + 0.5) / (len(slots) + 0.5))
        return Asked(term, share, share, slots, weights)

    def _with_meanings(self, said: Asked, meanings: Iterable[Meaning], documents: int) -> Asked:
        """Return a term with its meanings; if tools hold it, no meaning tells more than the term itself."""
        is_held = bool(said.slots)
        share = said.share if is_held else 0.0
        best = _answers([said])
        for worths in map(_worth_of, meanings):
            terms = [self._said(term, worth, documents) for term, worth in worths.items()]
            if not any(one.slots for one in terms):
                continue
            whole = sum(one.share for one in terms)
            least = min(1.0, said.share * sum(worths.values()) / whole) if is_held else 1.0
            share = max(share, least * whole)
            for slot, answer in _answers(terms, least).items():
                best[slot] = max(best[slot], answer)
        slots, weights = array("I", sorted(best)), array("f", [answer for _, answer in sorted(best.items())])
        return Asked(said.term, share or said.share, 1.0, slots, weights)


def shared(weighed: Sequence[Asked], whole: float = 1.0) -> list[Asked]:
    """Return the terms that any tool answers; with the others their shares add up to `whole`."""
    part = whole / (sum(one.share for one in weighed) or 1.0)
    return [one._replace(share=part * one.share, whole=part * one.whole) for one in weighed if one.slots]


def _answers(asked: Iterable[Asked], part: float = 1.0) -> dict[int, float]:
    """Return how much of what was asked each slot answers, 0 for all others."""
    answers: dict[int, float] = defaultdict(float)
    for one in asked:
        for slot, weight in zip(one.slots, one.weights, strict=True):
            answers[slot] += part * one.whole * weight
    return answers


class Answers:
    """The share of a question that each tool answers, word by word; `scores` are those of all tools.

    `coverage`: the share of the question's words that a tool knows, weighted by how telling each is.
    """

    def __init__(self, question: Sequence[Asked], slots: Iterable[int], scores: Sequence[float]) -> None:
        self._scores = scores
        numbers: dict[str, int] = {}
        for one in question:
            numbers.setdefault(one.word, len(numbers))
        near = frozenset(slots)
        self._by_word = {slot: [0.0] * len(numbers) for slot in near}
        self.coverage = dict.fromkeys(near, 0.0)
        for one in question:
            word = numbers[one.word]
            for slot, weight in zip(one.slots, one.weights, strict=True):
                if slot in near:
                    self._by_word[slot][word] += one.whole * weight
                    self.coverage[slot] += one.known

    def spread(self, slots: Sequence[int], limit: int, share: float) -> dict[int, float]:
        """Return at most `limit` slots, each the one that adds most to those before it, with how much.

        `slots` come with the best first. What one answers of a word, those after it answer by a `share` less.
        """
        among = {slot: self._by_word[slot] for slot in slots[:SPREAD_AMONG]}
        most = list(map(max, zip(*among.values(), strict=True)))
        left = [1.0] * len(most)
        order: dict[int, float] = {}
        last = 0.0
        while among and len(order) < min(limit, _SPREAD_PLACES):
            added = {slot: sum(map(mul, left, column)) for slot, column in among.items()}
            first = max(added, key=lambda slot: added[slot])
            order[first] = last = added[first]
            left = [
                untold - untold * share * answer / best if answer else untold
                for untold, answer, best in zip(left, among.pop(first), most, strict=True)
            ]
        rest = [slot for slot in slots if slot not in order][: limit - len(order)]
        return order | {slot: min(self._scores[slot], last) for slot in rest}


class ToolIndex:
    """Finds tools by what a person wrote; documents come and go at any time, from any thread."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._lock = threading.Lock()
        self._documents: dict[str, Document] = {}
        self._ids: list[str] = []  # by slot; those of removed tools stay
        self._slot_of: dict[str, int] = {}
        self._changing: set[int] = set()
        self._words = Postings()
        self._grams = Postings()
        self.add(documents)

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, id: object) -> bool:
        return id in self._documents

    def category(self, id: str) -> str:
        """Return the category of a tool, its own name if it has none."""
        document = self._documents.get(id)
        return (document.category if document is not None else "") or id

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents; one with the id of another takes its place, unless they are the same."""
        with self._lock:
            for document in documents:
                if self._documents.get(document.id) == document:
                    continue
                self._remove(document.id)
                self._insert(document)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        with self._lock:
            for id in ids:
                self._remove(id)

    def rank(self, query: str, *, among: Collection[str] | None = None, limit: int = 20) -> list[Hit]:
        """Return the best tools for `query`, best first; ties in the order of their ids."""
        with self._lock:
            question = self._question(query)
            scores = self._scores(question)
            best = self._best(scores, among, limit)
            answers = Answers(question, best, scores)
            return self._hits(query, {slot: scores[slot] for slot in best}, answers)

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
            scores = self._scores(question)
            best = self._best(scores, among, max(limit, SPREAD_AMONG))
            own = self._best(scores, apart, len(apart))
            answers = Answers(question, (*best, *own), scores)
            share = SPREAD if asks_for_several(query) else SPREAD_OF_ONE
            spread = answers.spread(best, limit, share) | answers.spread(own, len(own), share)
            return self._hits(query, spread, answers)

    def _question(self, text: str) -> list[Asked]:
        """Return the terms that a text asks for and any tool answers: its words, then its 4-grams.

        Words also ask for what they mean by the lexicon.
        """
        found = words(text)
        telling = content(found)
        stems = dict.fromkeys(map(stem, telling), 1.0)
        state = {stem(_STATE): _ASKED} if asks_whether(text) else {}
        meant = {stem(found[place]): means for place, means in lexicon().meanings(found).items()}
        worth = dict.fromkeys(map(stem, found), _SMALL_WORD) | state | stems
        by_word = self._words.weighed(worth, len(self), meant)
        known = {one.term: one.share for one in shared([one for one in by_word if one.term in stems])}
        grams: dict[str, tuple[float, str]] = {}  # their worth, and the word that each is a piece of
        for term, meanings in meant.items():
            if not self._words.is_well_known(term):
                first = meanings[:_MEANT_BY_GRAMS]
                grams |= dict.fromkeys(_grams_of_meanings(first), (_MEANT_GRAM / len(first), term))
        for term in stems:
            for word in telling:
                if stem(word) == term:
                    grams |= dict.fromkeys(grams_of(word), (1.0, term))
        by_gram = self._grams.weighed({gram: worth for gram, (worth, _) in grams.items()}, len(self), {})
        asked = shared(by_word, 1 - _GRAM_SHARE)
        pieces = shared(by_gram, _GRAM_SHARE)
        return [
            *[one._replace(word=one.term, known=known.get(one.term, 0.0)) for one in asked],
            *[one._replace(word=grams[one.term][1]) for one in pieces],
        ]

    def _scores(self, question: Sequence[Asked]) -> list[float]:
        """Return the score of each slot."""
        scores = [0.0] * len(self._ids)
        for one in question:
            whole = one.whole
            for slot, weight in zip(one.slots, one.weights, strict=True):
                scores[slot] += whole * weight
        return scores

    def _best(self, scores: Sequence[float], among: Collection[str] | None, limit: int) -> list[int]:
        """Return the slots with the highest scores, best first, without those of score 0."""
        ids = self._slot_of.keys() if among is None else among
        known = ((id, slot) for id in ids if (slot := self._slot_of.get(id)) is not None)
        found = [(-scores[slot], id, slot) for id, slot in known if scores[slot] > 0]
        return [slot for _, _, slot in nsmallest(limit, found)]

    def _hits(self, query: str, scores: Mapping[int, float], answers: Answers) -> list[Hit]:
        """Return the hits, best first.

        If `query` asks how things are, no tool that changes something scores above one that reads and knows
        as much of it; of equals those that read come first.
        """
        hits = [Hit(self._ids[slot], score, answers.coverage[slot]) for slot, score in scores.items()]
        changing = {self._ids[slot] for slot in scores if slot in self._changing}
        if asks_of_state(query):
            reading = [hit for hit in hits if hit.id not in changing]
            for place, hit in enumerate(hits):
                if hit.id in changing:
                    as_good = (one.score for one in reading if one.coverage >= hit.coverage)
                    hits[place] = hit._replace(score=min([hit.score, *as_good]))
        return sorted(hits, key=lambda hit: (-hit.score, hit.id in changing, hit.id))

    def _insert(self, document: Document) -> None:
        slot = len(self._ids)
        self._documents[document.id] = document
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
        slot = self._slot_of.pop(id)
        by_word, by_gram = _weights(document)
        self._words.remove(slot, by_word)
        self._grams.remove(slot, by_gram)


def _weights(document: Document) -> tuple[dict[str, float], dict[str, float]]:
    """Return how strongly the document holds each stem and each 4-gram, 0 to 1."""
    by_word: dict[str, float] = {}
    by_gram: dict[str, float] = {}
    for kind in _FIELDS:
        found = words(kind.text(document))
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
