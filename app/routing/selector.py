"""Selection of the tools that a model call offers: by words and categories, steady through a conversation."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, NamedTuple

from app.llm.smalltalk import asks_nothing
from app.routing.classifier import KNOWS_BETTER, KNOWS_ENOUGH, Intent
from app.search.clauses import clauses_of
from app.search.index import ToolIndex
from app.search.words import says_something

ROOM = 3_300  # bytes of definitions that come with a change, beside what is needed
_MORE_ROOM = 1.25  # factor if several categories were chosen, or none
_RANKED = 4  # times the limit: the tools that are ranked for each phrase
LONGEST_SAID = 400  # characters of a message whose clauses are ranked: a longer one is material
MOST_CLAUSES = 4
_BOOST = 1.25  # of a chosen category; soft: a tool of another one that fits much better still wins
_FITTING_SHARE = 0.2  # of the first of a ranking: tools this good come along with a change
_NO_SIZES: Mapping[str, int] = {}
# all are offered · best of a chosen category · in every call · a chosen skill asks for it · its words fit ·
# another of its category · the conversation has it · reads the chosen skills
Why = Literal["few", "category", "always", "include", "words", "sibling", "kept", "reading"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tool that is offered, and why.

    `phrase`: the one it fits best, "" for the message itself; `score` and `coverage` are for that phrase, 0
    if it fits none.
    """

    name: str
    why: Why
    phrase: str = ""
    score: float = 0.0
    coverage: float = 0.0


def select_tools(
    intent: Intent,
    said: str,
    index: ToolIndex,
    tools: Mapping[str, str],
    *,
    sticky: Sequence[str] = (),
    always: Sequence[str] = (),
    beside: Sequence[str] = (),
    sizes: Mapping[str, int] = _NO_SIZES,
    room: int = ROOM,
    limit: int = 8,
) -> tuple[Chosen, ...]:
    """Return at most `limit` tools of `tools` (name → category), in an order that changes little.

    `sticky` tools were offered last in the conversation; they stay as they are while they hold what this
    message cannot do without. Else all that fit the message come, at the end, and those leave that are of no
    use now. `always`: offered with every call, unless that leaves no room for what the message is about.
    `beside`: wanted by the chosen skills beside their own. `sizes`: bytes of the tools' definitions; what is
    not needed comes as far as there is `room`. If there are few tools all are offered.
    """
    if len(tools) <= limit:
        return tuple(Chosen(name, "few") for name in sorted(tools))
    rankings = _rank(intent, said, index, tools, _RANKED * limit)
    fixed = [name for name in always if name in tools] if limit > 1 else []
    had = [name for name in sticky if name in tools]
    included = [name for name in beside if name in tools]
    wanted = _wanted(intent, rankings, tools, fixed, included, limit)
    names = had
    if not intent.is_clear or len(intent.categories) != 1:
        room = round(room * _MORE_ROOM)
    if not had or len(had) > limit or not set(wanted.needed).issubset(had):
        names = _renewed(had, wanted, sizes, room, limit)
    return tuple(_explained(name, wanted.reasons.get(name, "kept"), rankings) for name in names)


def changed(had: Sequence[str], wanted: Sequence[str], limit: int, first: Collection[str]) -> list[str]:
    """Return at most `limit` names: `had` with what is wanted at its end.

    The oldest that are not wanted leave for it, those of `first` before others.
    """
    needed = _first(wanted, limit)
    coming = [name for name in needed if name not in had]
    idle = [name for name in had if name not in needed]
    leaving = dict.fromkeys([*(name for name in idle if name in first), *idle])
    gone = list(leaving)[: max(len(had) + len(coming) - limit, 0)]
    return [*(name for name in had if name not in gone), *coming]


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


Ranking = Sequence[Ranked]  # for one text, best first; never empty


def _rank(intent: Intent, said: str, index: ToolIndex, tools: Mapping[str, str], depth: int) -> list[Ranking]:
    """Rank the `depth` best of `tools` (name → category) for each text, and all fitting of the categories.

    Nothing is ranked if nothing is asked.
    """
    asked = () if asks_nothing(said) else (*intent.phrases, said, *_tasks(intent, said))
    own = frozenset(name for name, category in tools.items() if category in intent.categories)
    rankings: list[Ranking] = []
    for text in dict.fromkeys(text for text in asked if says_something(text)):
        ranked = []
        for id, score, coverage in index.spread(text, among=tools.keys(), apart=own, limit=depth):
            worth = score * (_BOOST if id in own else 1.0)
            ranked.append(Ranked(id, tools[id], "" if text == said else text, score, worth, coverage))
        if ranked:
            rankings.append(sorted(ranked, key=_order))
    return rankings


def _tasks(intent: Intent, said: str) -> list[str]:
    """Return the clauses of a message with several, unless the model named its tasks."""
    clauses = clauses_of(said) if len(intent.phrases) < 2 and len(said) <= LONGEST_SAID else []
    return clauses if 1 < len(clauses) <= MOST_CLAUSES else []


def _order(one: Ranked) -> tuple[float, str]:
    return -one.worth, one.name


def _fitting(ranking: Ranking) -> list[str]:
    least = _FITTING_SHARE * ranking[0].worth
    return [one.name for one in ranking if one.worth >= least]


def _vital(ranking: Ranking, categories: Collection[str], margin: float) -> str | None:
    """Return the best of the chosen categories, or the first if it knows more of the words by a `margin`."""
    own = [one for one in ranking if one.category in categories]
    known = max((one.coverage for one in own), default=0.0)
    if ranking[0].coverage > known + margin:
        return ranking[0].name
    return own[0].name if own and known >= KNOWS_ENOUGH else None


def _best_of(category: str, rankings: Sequence[Ranking], tools: Mapping[str, str]) -> str | None:
    """Return its best tool for any of the texts, else its first by name; None if it has none."""
    own = [one for ranking in rankings for one in ranking if one.category == category]
    if own:
        return min(own, key=_order).name
    return min((name for name, of in tools.items() if of == category), default=None)


def _by_turns(lists: Iterable[Sequence[str]]) -> list[str]:
    """Return the first of each list, then the second of each; one may come several times."""
    return [name for names in zip_longest(*lists) for name in names if name]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The tools that a message wants, the best first.

    `needed`: it cannot do without them; `useful`: they come as far as there is room; `whole`: all of the
    chosen categories; `reasons`: the first reason that each has.
    """

    needed: Sequence[str]
    useful: Sequence[str]
    whole: Sequence[str]
    reasons: Mapping[str, Why]


def _wanted(
    intent: Intent,
    rankings: Sequence[Ranking],
    tools: Mapping[str, str],
    always: Sequence[str],
    included: Sequence[str],
    limit: int,
) -> _Wanted:
    goes_on = intent.source == "continued"
    categories = intent.categories if intent.is_clear else ()
    best = [] if goes_on else [name for one in categories if (name := _best_of(one, rankings, tools))]
    if categories:
        margin = KNOWS_BETTER if goes_on else 0.0
        by_words = [name for ranking in rankings if (name := _vital(ranking, categories, margin))]
    else:
        by_words = [ranking[0].name for ranking in rankings if ranking[0].coverage > 0]
    needed = _first([*(best or by_words[:1]), *always, *included, *by_words], limit)
    own = categories or [tools[name] for name in by_words[:1]]
    fitting = _by_turns(map(_fitting, rankings))
    siblings = _by_turns([one.name for one in ranking if one.category in own] for ranking in rankings)
    siblings += sorted(name for name, category in tools.items() if category in own)
    reasons: dict[str, Why] = dict.fromkeys(siblings, "sibling")
    reasons |= dict.fromkeys((*by_words, *fitting), "words")
    reasons |= dict.fromkeys(included, "include")
    reasons |= dict.fromkeys(always, "always")
    reasons |= dict.fromkeys(best, "category")
    return _Wanted(needed, fitting, siblings if categories else (), reasons)


def _renewed(
    had: Sequence[str], wanted: _Wanted, sizes: Mapping[str, int], room: int, limit: int
) -> list[str]:
    """Return what is needed, then what is useful, as far as there is room: first what the conversation has.

    A category comes whole if it fits, so that no later message about it changes the set. A huge definition
    that is needed counts for half of the room: it does not drive the others out.
    """
    left = room - sum(min(sizes.get(name, 0), room // 2) for name in wanted.needed)
    names = list(wanted.needed)
    whole = wanted.whole if len({*wanted.needed, *wanted.whole}) <= limit else ()
    for name in dict.fromkeys([*whole, *wanted.useful, *wanted.whole, *reversed(had)]):
        size = sizes.get(name, 0)
        if name not in names and len(names) < limit and size <= left:
            names.append(name)
            left -= size
    return [*(name for name in had if name in names), *(name for name in names if name not in had)]


def _explained(name: str, why: Why, rankings: Sequence[Ranking]) -> Chosen:
    """Return the tool with the text that it fits best."""
    ranked = [one for ranking in rankings for one in ranking if one.name == name]
    if not ranked:
        return Chosen(name, why)
    best = max(ranked, key=lambda one: one.worth)
    return Chosen(name, why, best.phrase, round(best.score, 3), round(best.coverage, 3))


def _first(names: Iterable[str], limit: int) -> list[str]:
    return list(dict.fromkeys(names))[:limit]
