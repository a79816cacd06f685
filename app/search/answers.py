"""What some tools answer of a question, word by word, and their ranking spread over its words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


class Answers:
    """What each of some tools answers of a question: the best of a ranking, and others that are looked at.

    `scores` are those of all tools, by slot; without them `slots` are all, and what they answer makes them.
    `pieces`: 4-grams count as the words that they are pieces of, which that and `spread` need.
    """

    def __init__(
        self,
        question: Question,
        slots: Iterable[int],
        scores: Sequence[float] | None = None,
        *,
        pieces: bool = False,
    ) -> None:
        self._question = question
        self._slots = frozenset(slots)
        self._near = None if scores is None else self._slots
        nothing = [0.0] * len(self._slots) if scores is None else dict.fromkeys(self._slots, 0.0)
        self._by_word = [nothing.copy() for _ in range(question.said)]
        self._said, self._meant, self._covered = nothing.copy(), nothing.copy(), nothing.copy()
        words = len(question.words)
        self._add_words(question.word_of[:words])
        if pieces:
            self._add_pieces(question.word_of[words:])
        self.scores = self._sums() if scores is None else scores

    def told_of(self, slot: int) -> tuple[float, Parts]:
        """The share of the question that it knows, weighted by how telling each word is; and of what its
        score is made."""
        said, meant = self._said[slot], self._meant[slot]
        return self._covered[slot], Parts(said, meant, max(self.scores[slot] - said - meant, 0.0))

    def _sums(self) -> list[float]:
        return [sum(answers) for answers in zip(*self._by_word, strict=True)]

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

    def spread(self, slots: Sequence[int], limit: int) -> dict[int, float]:
        """The slots, at most `limit`, in the order in which each adds most to those before it, and how much.

        They come with the best first. What one answers of a word, those that follow answer no more.
        """
        among = slots[:SPREAD_AMONG]
        columns = ([answers[slot] for slot in among] for answers in self._by_word)
        by_word = [answers for answers in columns if any(answers)]
        most = [max(answers) for answers in by_word]
        left = [1.0] * len(most)
        now = [self.scores[slot] for slot in among]
        order: dict[int, float] = {}
        last = 0.0
        for to_come in reversed(range(min(limit, _SPREAD_PLACES, len(among)))):
            last = max(now)
            best = now.index(last)
            order[among[best]] = last
            now[best] = -1.0  # taken
            for word, answers in enumerate(by_word if to_come else ()):
                if answer := answers[best]:
                    gone = left[word] * _SPREAD * answer / most[word]
                    left[word] -= gone
                    now = [score - gone * other for score, other in zip(now, answers, strict=True)]
        rest = [slot for slot in slots if slot not in order][: limit - len(order)]
        return order | {slot: min(self.scores[slot], last) for slot in rest}
