"""Scores of tools for a text: the terms of the query, the tools that hold them, and what each answers."""

import math
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, repeat
from operator import mul
from sys import intern
from typing import NamedTuple

from app.search.clauses import asks_whether
from app.search.lexicon import Meaning, lexicon
from app.search.words import ALL_STOP_WORDS, content, grams_of, stem, words

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
class Query:
    """A text as the index asks for it.

    `words` are all stems, `telling` those that carry meaning. By stem: the 4-grams of its words, its
    `meanings`, and the 4-grams of the first of these.
    """

    words: Worth = field(default_factory=dict)
    telling: Worth = field(default_factory=dict)
    grams: Mapping[str, Worth] = field(default_factory=dict)
    meanings: Mapping[str, tuple[Meaning, ...]] = field(default_factory=dict)
    meant_grams: Mapping[str, Worth] = field(default_factory=dict)


def read_query(text: str) -> Query:
    """Return the query of a text, with what its words mean by the lexicon."""
    found = words(text)
    telling = content(found)
    stems = dict.fromkeys(map(stem, telling), 1.0)
    asked = {stem(_STATE): _ASKED} if asks_whether(text) else {}
    by_place = lexicon().meanings(found)
    meant = {stem(found[place]): meanings for place, meanings in by_place.items()}
    by_stem: dict[str, dict[str, float]] = {}
    for word in telling:
        by_stem.setdefault(stem(word), {}).update(dict.fromkeys(grams_of(word), 1.0))
    return Query(
        words=dict.fromkeys(map(stem, found), _SMALL_WORD) | asked | stems,
        telling=stems,
        grams={**by_stem},
        meanings=meant,
        meant_grams={term: _meant_grams(meanings[:_MEANT_BY_GRAMS]) for term, meanings in meant.items()},
    )


@lru_cache(maxsize=4096)
def _worth_of(meaning: Meaning) -> Worth:
    """Return the worth of a meaning's terms; several that carry meaning count as one together."""
    telling = max(1, sum(word not in ALL_STOP_WORDS for word in meaning))
    return {
        stem(word): _MEANT * (_SMALL_WORD if word in ALL_STOP_WORDS else 1.0) / telling for word in meaning
    }


def _meant_grams(meanings: Sequence[Meaning]) -> Worth:
    telling = [word for meaning in meanings for word in meaning if word not in ALL_STOP_WORDS]
    return dict.fromkeys(chain.from_iterable(map(grams_of, telling)), _MEANT_GRAM / len(meanings))


class Asked(NamedTuple):
    """A term of a query with its `share` of it; each of `slots` answers `whole` times its weight."""

    term: str
    share: float
    whole: float
    slots: "array[int]"
    weights: "array[float]"

    def near(self, slots: Collection[int]) -> list[tuple[int, float]]:
        """Return those of `slots` that answer, with their weights."""
        return [
            (slot, weight) for slot, weight in zip(self.slots, self.weights, strict=True) if slot in slots
        ]


class Postings:
    """Slots and weights (0 to 1) by term; slots of removed tools stay."""

    def __init__(self) -> None:
        self._slots: dict[str, array[int]] = {}
        self._weights: dict[str, array[float]] = {}
        self._removed: dict[str, int] = {}

    def add(self, slot: int, weights: Mapping[str, float]) -> None:
        for term, weight in weights.items():
            if term not in self._slots:
                term = intern(term)  # the other postings hold many of the same terms
                self._slots[term], self._weights[term] = array("I"), array("f")
            self._slots[term].append(slot)
            self._weights[term].append(weight)

    def forget(self, found: Iterable[str]) -> None:
        """Count the terms of a removed tool."""
        for term in found:
            self._removed[term] = self._removed.get(term, 0) + 1

    def weighed(
        self, worth: Worth, documents: int, meanings: Mapping[str, tuple[Meaning, ...]]
    ) -> list[Asked]:
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
        return self._holders(term) > _WELL_KNOWN

    def _said(self, term: str, worth: float, documents: int) -> Asked:
        """Return a term not yet weighed against the others."""
        holders = self._holders(term)
        share = worth * math.log(1 + (documents - holders + 0.5) / (holders + 0.5))
        if holders > 0:
            return Asked(term, share, share, self._slots[term], self._weights[term])
        return Asked(term, share, share, array("I"), array("f"))

    def _with_meanings(self, said: Asked, meanings: Iterable[Meaning], documents: int) -> Asked:
        """Return a term with its meanings; if tools hold it, no meaning tells more than the term itself."""
        is_held = self._holders(said.term) > 0
        share = said.share if is_held else 0.0
        best = _answers([said])
        for worths in map(_worth_of, meanings):
            terms = [self._said(term, worth, documents) for term, worth in worths.items()]
            if not any(one.slots for one in terms):
                continue
            whole = sum(one.share for one in terms)
            least = min(1.0, said.share * sum(worths.values()) / whole) if is_held else 1.0
            share = max(share, least * whole)
            best = _joined(best, _answers(terms, least), max)
        slots, weights = array("I", sorted(best)), array("f", [answer for _, answer in sorted(best.items())])
        return Asked(said.term, share or said.share, 1.0, slots, weights)

    def _holders(self, term: str) -> int:
        return len(self._slots.get(term, ())) - self._removed.get(term, 0)


def shared(weighed: Sequence[Asked], whole: float = 1.0) -> list[Asked]:
    """Return the terms that any tool answers; with the others their shares add up to `whole`."""
    part = whole / (sum(one.share for one in weighed) or 1.0)
    return [one._replace(share=part * one.share, whole=part * one.whole) for one in weighed if one.slots]


def _answers(asked: Iterable[Asked], part: float = 1.0) -> dict[int, float]:
    """Return how much of what was asked each slot answers."""
    answers: dict[int, float] = {}
    for one in asked:
        by_one = {
            slot: part * one.whole * weight for slot, weight in zip(one.slots, one.weights, strict=True)
        }
        answers = _joined(answers, by_one, float.__add__)
    return answers


def _joined(
    one: dict[int, float], other: dict[int, float], combine: Callable[[float, float], float]
) -> dict[int, float]:
    return one | {slot: combine(one[slot], value) if slot in one else value for slot, value in other.items()}


@dataclass(frozen=True, slots=True)
class Question:
    """The terms that a text asks for: words and 4-grams by their shares of it.

    `telling`: what each of the words adds to the coverage; `word_of`: for each of all terms the number of the
    word in the text that it is, or is a piece of; `said`: how many words the text has.
    """

    words: Sequence[Asked]
    grams: Sequence[Asked]
    telling: Sequence[float]
    word_of: Sequence[int]
    said: int

    def scores(self, slots: int) -> list[float]:
        """Return the score of each of so many slots."""
        scores = [0.0] * slots
        for one in (*self.words, *self.grams):
            whole = one.whole
            for slot, weight in zip(one.slots, one.weights, strict=True):
                scores[slot] += whole * weight
        return scores


class Answers:
    """The share of a question that each tool answers, word by word; `scores` are those of all tools.

    `coverage`: the share of the question's words that a tool knows, weighted by how telling each is.
    """

    def __init__(self, question: Question, slots: Iterable[int], scores: Sequence[float]) -> None:
        self._scores = scores
        near = frozenset(slots)
        self._by_word = {slot: [0.0] * question.said for slot in near}
        self.coverage = dict.fromkeys(near, 0.0)
        terms, shares = (*question.words, *question.grams), chain(question.telling, repeat(0.0))
        for word, one, share in zip(question.word_of, terms, shares, strict=False):
            for slot, weight in one.near(near):
                self._by_word[slot][word] += one.whole * weight
                self.coverage[slot] += share

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
