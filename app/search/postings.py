"""Which tools hold a term, and how strongly; what the terms of a query are worth among them."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from sys import intern
from typing import NamedTuple

from app.search.lexicon import Meaning
from app.search.query import Worth, worth_of

_WELL_KNOWN = 25
"""Where more tools hold a word they are told apart by it as it is, not by what else it may mean."""
_NEVER_COMMON = 400
_REMEMBERED = 1024
"""Terms with meanings, most of the work of a message; everyday words come again and again."""


class Asked(NamedTuple):
    """One term of a query, and its `share` of it. Each of `slots` answers `whole` times its weight.

    `by_itself`: the slots that answer by the word that was said; None where it has no other meaning.
    """

    term: str
    share: float
    whole: float
    slots: "array[int]"
    weights: "array[float]"
    by_itself: frozenset[int] | None = None

    def near(self, slots: frozenset[int] | None) -> Iterable[tuple[int, float]]:
        """Those of `slots` that answer, with their weights; all that answer where none are named."""
        mine, weights = self.slots, self.weights
        if slots is None:
            return zip(mine, weights, strict=True)
        if len(mine) <= _FEW:
            return [(slot, weight) for slot, weight in zip(mine, weights, strict=True) if slot in slots]
        return [(slot, weights[bisect_left(mine, slot)]) for slot in slots.intersection(mine)]


_FEW = 128
"""Slots that are gone through faster than they are looked up one by one."""

_NO_SLOTS = array("I")
_NO_WEIGHTS = array("f")
_NO_MEANINGS: Mapping[str, tuple[Meaning, ...]] = {}


class Postings:
    """Term → which slots hold it, and how strongly (0..1); slots of removed tools stay until compaction."""

    def __init__(self, common: float) -> None:
        self._common = common
        self._slots: dict[str, array[int]] = {}
        self._weights: dict[str, array[float]] = {}
        self._single: dict[float, array[float]] = {}
        self._removed: dict[str, int] = {}
        self._meant_lately: dict[tuple[str, float, float, tuple[Meaning, ...]], Asked] = {}

    def add(self, slot: int, weights: Mapping[str, float]) -> None:
        # Half the terms are of one tool alone: these share their arrays, until a second one comes.
        self._meant_lately.clear()
        alone = array("I", (slot,))
        for term, weight in weights.items():
            slots = self._slots.get(term)
            if slots is None:
                self._slots[intern(term)] = alone
                self._weights[term] = self._single.setdefault(weight, array("f", (weight,)))
            elif len(slots) == 1:
                self._slots[term] = array("I", (*slots, slot))
                self._weights[term] = array("f", (*self._weights[term], weight))
            else:
                slots.append(slot)
                self._weights[term].append(weight)

    def forget(self, found: Iterable[str]) -> None:
        self._meant_lately.clear()
        for term in found:
            self._removed[term] = self._removed.get(term, 0) + 1

    def weighed(
        self, worth: Worth, documents: int, meanings: Mapping[str, tuple[Meaning, ...]] = _NO_MEANINGS
    ) -> list[Asked]:
        """The terms of a query, by how well they tell some of so many documents from others.

        A term and its `meanings` are one thing asked: a tool answers it by the best of them. Terms that too
        many hold have no slots, but where none has any then.
        """
        most = max(_NEVER_COMMON, documents * self._common)
        telling = self._all_weighed(worth, documents, meanings, most)
        if any(one.slots for one in telling):
            return telling
        return self._all_weighed(worth, documents, meanings, documents)

    def is_well_known(self, term: str) -> bool:
        return self._holders(term) > _WELL_KNOWN

    def _all_weighed(
        self, worth: Worth, documents: int, meanings: Mapping[str, tuple[Meaning, ...]], most: float
    ) -> list[Asked]:
        weighed = []
        for term, value in worth.items():
            one = self._said(term, value, documents, most)
            if term in meanings and not self.is_well_known(term):
                one = self._with_meanings(one, meanings[term], documents, most)
            weighed.append(one)
        return weighed

    def _said(self, term: str, worth: float, documents: int, most: float) -> Asked:
        """One term, not yet weighed against the others of its query; without slots where too many hold it."""
        holders = self._holders(term)
        share = worth * math.log(1 + (documents - holders + 0.5) / (holders + 0.5))
        if 0 < holders <= most:
            return Asked(term, share, share, self._slots[term], self._weights[term])
        return Asked(term, share, share, _NO_SLOTS, _NO_WEIGHTS)

    def _with_meanings(
        self, said: Asked, meanings: tuple[Meaning, ...], documents: int, most: float
    ) -> Asked:
        key = said.term, said.share, most, meanings
        if key not in self._meant_lately:
            if len(self._meant_lately) >= _REMEMBERED:
                self._meant_lately.clear()
            self._meant_lately[key] = self._meant(said, meanings, documents, most)
        return self._meant_lately[key]

    def _meant(self, said: Asked, meanings: Iterable[Meaning], documents: int, most: float) -> Asked:
        """A term with its meanings. Beside one that tools hold no meaning is more telling than itself."""
        held = self._holders(said.term) > 0
        share = said.share if held else 0.0
        own = _answers([said])
        best = dict(own)
        for worths in map(worth_of, meanings):
            terms = [self._said(term, worth, documents, most) for term, worth in worths.items()]
            if not any(one.slots for one in terms):
                continue
            whole = sum(one.share for one in terms)
            least = min(1.0, said.share * sum(worths.values()) / whole) if held else 1.0
            share = max(share, least * whole)
            best = _joined(best, _answers(terms, least), max)
        by_itself = frozenset(slot for slot, answer in own.items() if best[slot] == answer)
        slots, weights = array("I", sorted(best)), array("f", [answer for _, answer in sorted(best.items())])
        return Asked(said.term, share or said.share, 1.0, slots, weights, by_itself)

    def _holders(self, term: str) -> int:
        return len(self._slots.get(term, ())) - self._removed.get(term, 0)


def shared(weighed: Sequence[Asked], whole: float = 1.0) -> list[Asked]:
    """Those that any tool answers; with those of the others their shares make `whole`."""
    part = whole / (sum(one.share for one in weighed) or 1.0)
    return [
        Asked(one.term, part * one.share, part * one.whole, one.slots, one.weights, one.by_itself)
        for one in weighed
        if one.slots
    ]


def _answers(asked: Iterable[Asked], part: float = 1.0) -> dict[int, float]:
    """How much of what was asked each slot answers."""
    answers: dict[int, float] = {}
    for one in asked:
        by_one = dict(zip(one.slots, map((part * one.whole).__mul__, one.weights), strict=True))
        answers = _joined(answers, by_one, float.__add__)
    return answers


def _joined(
    one: dict[int, float], other: dict[int, float], both: Callable[[float, float], float]
) -> dict[int, float]:
    """The one that is larger, with what the other holds."""
    if len(one) < len(other):
        one, other = other, one
    for slot in one.keys() & other.keys():
        other[slot] = both(one[slot], other[slot])
    one.update(other)
    return one
