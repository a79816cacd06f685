"""A message as the index asks for it: terms with their worth, and what the lexicon says they may mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from app.search.lexicon import Meaning, lexicon
from app.search.words import ALL_STOP_WORDS, content, grams, stem, words

Worth = Mapping[str, float]
"""What each term of something counts."""

_SMALL_WORD = 0.2
"""What a small word counts beside words that carry meaning: little, but "turn on" is not "turn off"."""
_MEANT = 0.7
"""What a meaning counts beside a word that the message itself holds."""
_MEANT_GRAM = 0.5
"""The same for 4-grams, shared by the meanings that are looked for by them."""
_MEANT_BY_GRAMS = 3


@dataclass(frozen=True, slots=True)
class Query:
    """`words` are all stems, `telling` those that carry meaning.

    By stem: the 4-grams of its words, its `meanings`, and the 4-grams of the first of them.
    """

    words: Worth = field(default_factory=dict)
    telling: Worth = field(default_factory=dict)
    grams: Mapping[str, Worth] = field(default_factory=dict)
    meanings: Mapping[str, tuple[Meaning, ...]] = field(default_factory=dict)
    meant_grams: Mapping[str, Worth] = field(default_factory=dict)


def read_query(text: str, *, bridge: bool) -> Query:
    """What `text` asks for; `bridge`: also in the words of the lexicon."""
    found = words(text)
    telling = content(found)
    stems = dict.fromkeys(map(stem, telling), 1.0)
    meant = (
        {stem(found[place]): means for place, means in lexicon().meanings(found).items()} if bridge else {}
    )
    return Query(
        words=dict.fromkeys(map(stem, found), _SMALL_WORD) | stems,
        telling=stems,
        grams=_grams(telling),
        meanings=meant,
        meant_grams={term: _meant_grams(means[:_MEANT_BY_GRAMS]) for term, means in meant.items()},
    )


@lru_cache(maxsize=4096)
def worth_of(meaning: Meaning) -> Worth:
    """What the terms of a meaning count; several that carry meaning count as one together."""
    telling = max(1, sum(word not in ALL_STOP_WORDS for word in meaning))
    return {
        stem(word): _MEANT * (_SMALL_WORD if word in ALL_STOP_WORDS else 1.0) / telling for word in meaning
    }


def _grams(telling: Iterable[str]) -> dict[str, Worth]:
    found: dict[str, dict[str, float]] = {}
    for word in telling:
        found.setdefault(stem(word), {}).update(dict.fromkeys(grams([word]), 1.0))
    return {**found}


def _meant_grams(meanings: Sequence[Meaning]) -> Worth:
    telling = [word for meaning in meanings for word in meaning if word not in ALL_STOP_WORDS]
    return dict.fromkeys(grams(telling), _MEANT_GRAM / len(meanings))
