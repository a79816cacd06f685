"""Which tools a model call offers: found by words and categories, kept steady through a conversation."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.llm.smalltalk import asks_nothing
from app.routing.intent import Intent
from app.search.index import Parts, ToolIndex
from app.search.learned import SCORE_SHARE, Fits, overlaid
from app.search.words import says_something

_BOOST = 1.25
"""Soft: a tool of another category that fits much better still wins."""

_RANKED = 4
"""How many times the tools that a call may hold are ranked for each phrase, beside those of the chosen
categories."""

_NEEDED_DEPTH = 3
_NEEDED_SHARE = 0.6
_NEEDED_COVERAGE = 0.2

_NOTHING_LEARNED: Fits = {}
_OF_NO_SIZE: Mapping[str, int] = {}
_NO_PARTS = Parts()

ROOM = 3_300
"""Bytes of definitions that come with a change, beside what is needed: a turn with a call sends them
twice."""

_MORE_ROOM = 1.25
"""So much more there is where several categories were chosen, or none and words alone decide."""

_FITTING_SHARE = 0.2
"""How good beside the first of a ranking what comes with a change is: it costs no more than a smaller one."""

_NEARLY_AS_GOOD = 0.7
"""Where words alone decide, a tool that is offered already and so good is left to answer."""

Why = Literal["few", "category", "always", "include", "words", "sibling", "kept", "reading"]
"""All are offered · the best of a chosen category · in every call · a chosen skill asks for it · its words
fit · another of its category · the conversation has it · reads the chosen skills."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tool that is offered, and why.

    `phrase`: which it fits best, "" for the message itself; `score` is the index's for that, `boost` what
    its chosen category makes of it, `coverage` the share of the words that it knows; all 0 where it fits
    none. `kept`: the conversation had it before. `learned`: how much of the score comes from what it was
    called for before; `parts`: of what the index made it.
    """

    name: str
    why: Why
    phrase: str = ""
    score: float = 0.0
    boost: float = 0.0
    coverage: float = 0.0
    kept: bool = False
    learned: float = 0.0
    parts: Parts = _NO_PARTS


def select_tools(
    intent: Intent,
    said: str,
    index: ToolIndex,
    tools: Mapping[str, str],
    *,
    sticky: Sequence[str] = (),
    always: Sequence[str] = (),
    beside: Sequence[str] = (),
    learned: Fits = _NOTHING_LEARNED,
    sizes: Mapping[str, int] = _OF_NO_SIZE,
    room: int = ROOM,
    limit: int = 8,
) -> tuple[Chosen, ...]:
    """At most `limit` tools of `tools` (name → category), in an order that changes little.

    `sticky`: what the conversation was offered last; it stays as it is while it holds what this message
    cannot do without. Else all that fit the message come, at the end; what leaves for them is the oldest
    that is of no use now, of other categories first. Room is left where nothing fits. `always`: offered with
    every call, but where that leaves no room for what the message is about. `beside`: what the chosen skills
    want beside their own. `learned`: how the tools fit the message by what they were called for before.
    `sizes`: bytes of the tools' definitions; what is not needed comes as far as there is `room`. Few tools
    are all offered.
    """
    if len(tools) <= limit:
        return tuple(Chosen(name, "few", kept=name in sticky) for name in sorted(tools))
    rankings = _rankings(intent, said, index, tools, learned, _RANKED * limit)
    categories = intent.categories if intent.is_clear else ()
    asked_for = intent.categories if intent.source == "model" else ()
    best = [name for category in asked_for if (name := _best_of(category, rankings, tools)) is not None]
    had = [name for name in sticky if name in tools]
    heads = list(_interleaved([_heads(ranking) for ranking in rankings]))
    fixed = [name for name in always if name in tools] if limit > 1 else []
    wanted = [name for name in beside if name in tools]
    margin = _NEEDED_COVERAGE if intent.source == "continued" else 0.0
    vital = list(_vital(rankings, categories, tools, margin)) if categories else heads
    first = best if categories else heads[:1]
    needed = _first([*first, *fixed, *wanted, *vital], limit)
    missing = _without(needed, had)
    if not categories:
        told = {*fixed, *wanted}
        missing = [name for name in missing if name in told or not _is_answered(name, had, rankings)]
    fitting = list(_interleaved([_fitting(ranking) for ranking in rankings]))
    group = categories or [tools[name] for name in heads[:1]]
    siblings = list(_siblings(group, rankings, tools))
    if had and len(had) <= limit and not missing:
        names = had
    else:
        whole = siblings if len({*needed, *siblings}) <= limit else []
        own = frozenset(name for name in tools if tools[name] in categories)
        staying = [name for name in fitting if name in had and name in own]
        coming = _first([*needed, *whole, *staying, *fitting], limit)
        guests = [name for name in coming if own and name not in own and name not in needed]
        steady = changed(had, _without(coming, guests), limit, first={*had} - own, welcome=guests)
        room = room if len(categories) == 1 else round(room * _MORE_ROOM)
        names = _first([*steady, *(siblings if own else ())], limit)
        lasting = [name for name in had if name in own]
        leaving = [*_without(names, [*coming, *lasting]), *reversed(_without(coming, lasting)), *lasting]
        names = _light(names, _without(leaving, needed), sizes, room)
    reasons: dict[Why, Collection[str]] = {
        "category": best,
        "always": fixed,
        "include": wanted,
        "words": [*vital, *fitting],
        "sibling": siblings,
        "kept": had,
    }
    chosen = [_chosen(name, reasons, rankings, kept=name in had) for name in names]
    return tuple(_explained(chosen, said, index))


def changed(
    had: Sequence[str],
    wanted: Sequence[str],
    limit: int,
    *,
    first: Collection[str],
    welcome: Sequence[str] = (),
) -> list[str]:
    """At most `limit` names: `had` with what is wanted at its end. For that leave the oldest that are not
    wanted, those of `first` before others; these alone leave for what is only `welcome`."""
    needed = _first(wanted, limit)
    room = limit - sum(name not in first for name in had if name not in needed)
    needed = _first([*needed, *welcome], max(room, len(needed)))
    coming = [name for name in needed if name not in had]
    idle = [name for name in had if name not in needed]
    leaving = dict.fromkeys([*(name for name in idle if name in first), *idle])
    gone = list(leaving)[: max(len(had) + len(coming) - limit, 0)]
    return [*(name for name in had if name not in gone), *coming]


def _light(names: Sequence[str], leaving: Iterable[str], sizes: Mapping[str, int], room: int) -> list[str]:
    """The names without the first of those that may leave, until the others have room."""
    surplus = sum(sizes.get(name, 0) for name in names) - room
    gone = set[str]()
    for name in leaving:
        if surplus <= 0:
            break
        if name in names:
            gone.add(name)
            surplus -= sizes.get(name, 0)
    return _without(names, gone)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A tool in the ranking for one text."""

    name: str
    phrase: str
    score: float
    boost: float
    coverage: float
    learned: float

    @property
    def worth(self) -> float:
        return self.score * self.boost


_Ranking = list[_Ranked]
"""Best first."""


def _rankings(
    intent: Intent, said: str, index: ToolIndex, tools: Mapping[str, str], learned: Fits, depth: int
) -> list[_Ranking]:
    asked = () if asks_nothing(said) else (*intent.phrases, said)
    texts = dict.fromkeys(text for text in asked if says_something(text))
    own = frozenset(name for name, category in tools.items() if category in intent.categories)
    known = {name: fit for name, fit in learned.items() if name in tools}
    rankings = (
        _ranking(index, text, text != said, frozenset(tools), own, known if text == said else {}, depth)
        for text in texts
    )
    return [ranking for ranking in rankings if ranking]


def _ranking(
    index: ToolIndex,
    text: str,
    is_phrase: bool,
    among: frozenset[str],
    own: frozenset[str],
    learned: Fits,
    depth: int,
) -> _Ranking:
    """The tools for a text; those of the chosen categories lose nothing to others that answer the same."""
    hits = {hit.id: hit for hit in index.rank(text, among=among, limit=depth, spread=True)}
    if own:
        hits |= {hit.id: hit for hit in index.rank(text, among=own, limit=len(own), spread=True)}
    found = (
        _Ranked(
            hit.id,
            text if is_phrase else "",
            hit.score,
            _BOOST if hit.id in own else 1.0,
            hit.coverage,
            SCORE_SHARE * learned.get(hit.id, 0.0),
        )
        for hit in overlaid(hits.values(), learned)
    )
    return sorted(found, key=lambda one: (-one.worth, one.name))


def _best_of(category: str, rankings: Iterable[_Ranking], tools: Mapping[str, str]) -> str | None:
    found = [(-one.worth, one.name) for ranking in rankings for one in ranking if tools[one.name] == category]
    return (
        min(found)[1] if found else min((name for name, of in tools.items() if of == category), default=None)
    )


def _siblings(
    categories: Collection[str], rankings: Sequence[_Ranking], tools: Mapping[str, str]
) -> Iterator[str]:
    """The tools of the chosen categories, the best first. They come whole where they fit: then no later
    message about them changes the set."""
    yield from _interleaved(
        [[one.name for one in ranking if tools[one.name] in categories] for ranking in rankings]
    )
    yield from sorted(name for name, category in tools.items() if category in categories)


def _heads(ranking: _Ranking) -> list[str]:
    """The first, if it knows a word, and the few that are nearly as good."""
    least = _NEEDED_SHARE * ranking[0].worth
    nearly = [one for one in ranking[1:_NEEDED_DEPTH] if one.worth >= least]
    head = [one for one in nearly if one.coverage >= _NEEDED_COVERAGE]
    return [one.name for one in (ranking[0], *head) if one.coverage > 0]


def _is_answered(name: str, had: Collection[str], rankings: Iterable[_Ranking]) -> bool:
    """Whether for each text that a tool fits there is one of `had` that knows as many words, and is nearly as
    good."""
    return all(
        any(
            other.name in had
            and other.coverage >= one.coverage
            and other.worth >= _NEARLY_AS_GOOD * one.worth
            for other in ranking
        )
        for ranking in rankings
        for one in ranking
        if one.name == name
    )


def _fitting(ranking: _Ranking) -> list[str]:
    """All that are of some use."""
    least = _FITTING_SHARE * ranking[0].worth
    return [one.name for one in ranking if one.worth >= least]


def _vital(
    rankings: Iterable[_Ranking], categories: Collection[str], tools: Mapping[str, str], margin: float
) -> Iterator[str]:
    """The best for each text: of the chosen categories, unless the first is another that knows more of its
    words than any of them, by more than `margin`."""
    for ranking in rankings:
        own = [one for one in ranking if tools[one.name] in categories]
        known = max((one.coverage for one in own), default=0.0)
        first = ranking[0]
        if first.coverage > known + margin:
            yield first.name
        elif own and known >= _NEEDED_COVERAGE:
            yield own[0].name


def _chosen(
    name: str, reasons: Mapping[Why, Collection[str]], rankings: Iterable[_Ranking], *, kept: bool
) -> Chosen:
    why: Why = next((why for why, names in reasons.items() if name in names), "sibling")
    found = [one for ranking in rankings for one in ranking if one.name == name]
    if not found:
        return Chosen(name, why, kept=kept)
    best = max(found, key=lambda one: one.worth)
    score, coverage = round(best.score, 3), round(best.coverage, 3)
    return Chosen(name, why, best.phrase, score, best.boost, coverage, kept, round(best.learned, 3))


def _explained(chosen: Sequence[Chosen], said: str, index: ToolIndex) -> Iterator[Chosen]:
    """Each with the parts of its score, as the index has them for the text that it fits best."""
    fitting: dict[str, list[str]] = {}
    for one in chosen:
        if one.score:
            fitting.setdefault(one.phrase, []).append(one.name)
    parts = {phrase: index.parts(phrase or said, names) for phrase, names in fitting.items()}
    for one in chosen:
        yield replace(one, parts=_rounded(parts.get(one.phrase, {}).get(one.name, _NO_PARTS)))


def _rounded(parts: Parts) -> Parts:
    return Parts(round(parts.words, 3), round(parts.meanings, 3), round(parts.grams, 3))


def _interleaved(lists: Sequence[Sequence[str]]) -> Iterator[str]:
    for place in range(max(map(len, lists), default=0)):
        yield from (names[place] for names in lists if place < len(names))


def _without(names: Iterable[str], others: Collection[str]) -> list[str]:
    return [name for name in names if name not in others]


def _first(names: Iterable[str], limit: int) -> list[str]:
    return list(dict.fromkeys(names))[:limit]
