"""Rankings of tools for a message: one for each phrase of it and one for the message itself."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from app.llm.smalltalk import asks_nothing
from app.routing.intent import Intent
from app.search.clauses import clauses_of
from app.search.index import ToolIndex
from app.search.words import says_something

_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
LONGEST_SAID = 400  # characters of a message whose clauses are ranked: a longer one is material
MOST_CLAUSES = 4
KNOWS_BETTER = 0.2  # larger share of the words by which another category takes a message over
KNOWS_ENOUGH = 0.2  # share of the words that a tool must know to be more than a chance
_BOOST = 1.25  # of a chosen category; soft: a tool of another one that fits much better still wins
_HEAD_DEPTH = 3
_HEAD_SHARE = 0.6
_FITTING_SHARE = 0.2  # of the first of a ranking: tools this good come along with a change
_NEARLY_AS_GOOD = 0.7  # if words alone decide, a tool this good that is offered already stays


class Ranked(NamedTuple):
    """A tool in the ranking for one text: a `phrase`, or "" for the message itself.

    `worth`: the index's score, raised for a chosen category.
    """

    name: str
    category: str
    phrase: str
    score: float
    worth: float
    coverage: float


Ranking = Sequence[Ranked]  # best first; those of `Rankings` are never empty


@dataclass(frozen=True, slots=True)
class Rankings:
    """A ranking for each text of `tools` (name → category).

    Names come by turns from each ranking, the best first; one may come several times.
    """

    each: Sequence[Ranking]
    tools: Mapping[str, str]

    def firsts(self, had: Collection[str]) -> list[str]:
        """Return the best for each text for which none of `had` is nearly as good."""
        firsts = [(ranking[0], [one for one in ranking if one.name in had]) for ranking in self.each]
        return [
            first.name for first, others in firsts if not any(_is_nearly(other, first) for other in others)
        ]

    def heads(self) -> list[str]:
        """Return the first for each text and the few that are nearly as good."""
        return list(_by_turns(map(_head, self.each)))

    def fitting(self) -> list[str]:
        """Return all that are of some use."""
        return list(_by_turns(map(_fitting, self.each)))

    def vital(self, categories: Collection[str], margin: float) -> list[str]:
        """Return the best of the chosen categories for each text.

        A tool of another category takes its place if it knows more of the words, by more than `margin`.
        """
        best = (_vital(ranking, categories, margin) for ranking in self.each)
        return [name for name in best if name]

    def of(self, categories: Collection[str]) -> list[str]:
        """Return all tools of these categories, those that fit first."""
        ranked = ([one.name for one in ranking if one.category in categories] for ranking in self.each)
        others = sorted(name for name, category in self.tools.items() if category in categories)
        return list(dict.fromkeys([*_by_turns(ranked), *others]))

    def best_of(self, category: str) -> str | None:
        """Return its best tool for any of the texts, else its first by name; None if it has none."""
        firsts = (next((one for one in ranking if one.category == category), None) for ranking in self.each)
        if own := [first for first in firsts if first is not None]:
            return min(own, key=_order).name
        return min((name for name, of in self.tools.items() if of == category), default=None)

    def best(self, name: str) -> Ranked | None:
        """Return the tool from the ranking where it is worth most."""
        found = [one for ranking in self.each for one in ranking if one.name == name]
        return max(found, key=lambda one: one.worth, default=None)


def rank_tools(intent: Intent, said: str, index: ToolIndex, tools: Mapping[str, str], depth: int) -> Rankings:
    """Rank the `depth` best of `tools` (name → category) for each text, and all fitting of the categories.

    Nothing is ranked if nothing is asked.
    """
    asked = () if asks_nothing(said) else (*intent.phrases, said, *_tasks(intent, said))
    own = frozenset(name for name, category in tools.items() if category in intent.categories)
    rankings: list[Ranking] = []
    for text in dict.fromkeys(text for text in asked if says_something(text)):
        named = f"{text} web page" if intent.source == "sticky" and _ADDRESS.search(text) else text
        phrase = "" if text == said else text
        hits = index.spread(named, among=tools.keys(), apart=own, limit=depth)
        worth = {hit.id: hit.score * (_BOOST if hit.id in own else 1.0) for hit in hits}
        ranked = (
            Ranked(hit.id, tools[hit.id], phrase, hit.score, worth[hit.id], hit.coverage) for hit in hits
        )
        rankings.append(sorted(ranked, key=_order))
    return Rankings([ranking for ranking in rankings if ranking], tools)


def _tasks(intent: Intent, said: str) -> list[str]:
    """Return the clauses of a message with several, unless the model named its tasks."""
    clauses = clauses_of(said) if len(intent.phrases) < 2 and len(said) <= LONGEST_SAID else []
    return clauses if 1 < len(clauses) <= MOST_CLAUSES else []


def _order(one: Ranked) -> tuple[float, str]:
    return -one.worth, one.name


def _head(ranking: Ranking) -> list[str]:
    first, *others = ranking[:_HEAD_DEPTH]
    nearly = (one for one in others if one.worth >= _HEAD_SHARE * first.worth)
    head = [first, *(one for one in nearly if one.coverage >= KNOWS_ENOUGH)]
    return [one.name for one in head if one.coverage > 0]


def _is_nearly(other: Ranked, first: Ranked) -> bool:
    return other.coverage >= first.coverage and other.worth >= _NEARLY_AS_GOOD * first.worth


def _fitting(ranking: Ranking) -> list[str]:
    least = _FITTING_SHARE * ranking[0].worth
    return [one.name for one in ranking if one.worth >= least]


def _vital(ranking: Ranking, categories: Collection[str], margin: float) -> str | None:
    own = [one for one in ranking if one.category in categories]
    known = max((one.coverage for one in own), default=0.0)
    if ranking[0].coverage > known + margin:
        return ranking[0].name
    return own[0].name if own and known >= KNOWS_ENOUGH else None


def _by_turns(lists: Iterable[Sequence[str]]) -> Iterator[str]:
    for names in zip_longest(*lists):
        yield from filter(None, names)
