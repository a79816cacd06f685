"""What some tools answer of a question, word by word, and their ranking spread over its words."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from operator import mul
from typing import NamedTuple

from app.search.postings import Asked

_SPREAD = 0.2
"""How much of what the best holder answers of a word the others answer no more."""
SPREAD_AMONG = 32
_SPREAD_PLACES = 8
"""So many of the best are put into another order, for so many places."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a text asks for: words and 4-grams by their shares of it.

    `telling`: what each of these words adds to the coverage; `word_of`: for each of all terms the number of
    the word in the text that it is, or is a piece of; `said`: how many words that has.
    """

    words: Sequence[Asked]
    grams: Sequence[Asked]
    telling: Sequence[float]
    word_of: Sequence[int]
    said: int

    @property
    def all(self) -> Sequence[Asked]:
        return [*self.words, *self.grams]


class Parts(NamedTuple):
    """What a score is made of: words that the tool knows, what others mean by the lexicon, 4-grams.

    They add up to the score before a spread ranking takes off what better tools have answered.
    """

    words: float = 0.0
    meanings: float = 0.0
    grams: float = 0.0


_Column = tuple[float, ...]
"""What a slot answers of each word."""


class Answers:
    """What each of some tools answers of a question: the best of a ranking, and others that are looked at.

    `scores` are those of all tools, by slot; without them `slots` are all, and what they answer makes them.
    `pieces`: 4-grams count as the words that they are pieces of, which that and `spread` need.
    """

    def __init__(
        self,
        question: Question,
        slots: Collection[int],
        scores: Sequence[float] | None = None,
        *,
        pieces: bool = False,
    ) -> None:
        self._question = question
        self._near = None if scores is None else frozenset(slots)
        nothing = [0.0] * len(slots) if self._near is None else dict.fromkeys(self._near, 0.0)
        self._by_word = [nothing.copy() for _ in range(question.said)]
        self._said, self._meant, self._covered = nothing.copy(), nothing.copy(), nothing.copy()
        words = len(question.words)
        self._add_words(question.word_of[:words])
        if pieces:
            self._add_pieces(question.word_of[words:])
        self._columns = [] if scores is not None else list(zip(*self._by_word, strict=True))
        self.scores = list(map(sum, self._columns)) if scores is None else scores

    def told_of(self, slot: int) -> tuple[float, Parts]:
        """The share of the question that it knows, weighted by how telling each word is; and of what its
        score is made."""
        said, meant = self._said[slot], self._meant[slot]
        return self._covered[slot], Parts(said, meant, max(self.scores[slot] - said - meant, 0.0))

    def spread(self, slots: Sequence[int], limit: int) -> dict[int, float]:
        """The slots, at most `limit`, in the order in which each adds most to those before it, and how much.

        They come with the best first. What one answers of a word, those that follow answer no more.
        """
        among = slots[:SPREAD_AMONG]
        alike: dict[_Column, list[int]] = {}
        for place, slot in enumerate(among):
            alike.setdefault(self._column(slot), []).append(place)
        most = list(map(max, zip(*alike, strict=True)))
        left = [1.0] * len(most)
        # What each adds, as it was known last: it only ever becomes less, so few need be looked at again.
        known = [(-sum(column), places[0], column) for column, places in alike.items()]
        heapify(known)
        order: dict[int, float] = {}
        last = 0.0
        while known and len(order) < min(limit, _SPREAD_PLACES):
            before, place, column = known[0]
            last = sum(map(mul, left, column))
            if last < -before:
                heapreplace(known, (-last, place, column))
                continue
            order[among[place]] = last
            left = [
                share - share * _SPREAD * answer / best if answer else share
                for share, answer, best in zip(left, column, most, strict=True)
            ]
            del alike[column][0]
            if alike[column]:
                heapreplace(known, (-last, alike[column][0], column))
            else:
                heappop(known)
        rest = [slot for slot in slots if slot not in order][: limit - len(order)]
        return order | {slot: min(self.scores[slot], last) for slot in rest}

    def _column(self, slot: int) -> _Column:
        return self._columns[slot] if self._columns else tuple([answers[slot] for answers in self._by_word])

    def _add_words(self, word_of: Sequence[int]) -> None:
        question, said, meant, covered = self._question, self._said, self._meant, self._covered
        for word, one, share in zip(word_of, question.words, question.telling, strict=True):
            by_word, by_itself, whole = self._by_word[word], one.by_itself, one.whole
            for slot, weight in one.near(self._near):
                answer = whole * weight
                by_word[slot] += answer
                covered[slot] += share
                (said if by_itself is None or slot in by_itself else meant)[slot] += answer

    def _add_pieces(self, word_of: Sequence[int]) -> None:
        for word, one in zip(word_of, self._question.grams, strict=True):
            by_word, whole = self._by_word[word], one.whole
            for slot, weight in one.near(self._near):
                by_word[slot] += whole * weight
