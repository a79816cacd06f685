"""Selection of the tools that a model call offers: by words and categories, steady through a conversation."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from app.messages import JSON
from app.routing.intent import Intent
from app.routing.rankings import KNOWS_BETTER, Rankings, rank_tools
from app.search.index import ToolIndex

ROOM = 3_300  # bytes of definitions that come with a change, beside what is needed
_MORE_ROOM = 1.25  # factor if several categories were chosen, or none
_RANKED = 4  # times the limit: the tools that are ranked for each phrase
_NO_SIZES: Mapping[str, int] = {}
# all are offered · best of a chosen category · in every call · a chosen skill asks for it · its words fit ·
# another of its category · the conversation has it · reads the chosen skills
Why = Literal["few", "category", "always", "include", "words", "sibling", "kept", "reading"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tool that is offered, and why.

    `phrase`: the one it fits best, "" for the message itself; `score` and `coverage` are for that phrase, 0
    if it fits none. `kept`: the conversation had it before.
    """

    name: str
    why: Why
    phrase: str = ""
    score: float = 0.0
    coverage: float = 0.0
    kept: bool = False

    @property
    def row(self) -> dict[str, JSON]:
        """Return the fields as a journal keeps them."""
        return asdict(self)


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
        return tuple(Chosen(name, "few", kept=name in sticky) for name in sorted(tools))
    rankings = rank_tools(intent, said, index, tools, _RANKED * limit)
    fixed = [name for name in always if name in tools] if limit > 1 else []
    had = [name for name in sticky if name in tools]
    wanted = _wanted(intent, rankings, had, fixed, [name for name in beside if name in tools], limit)
    names = had
    if not intent.is_clear or len(intent.categories) != 1:
        room = round(room * _MORE_ROOM)
    if not had or len(had) > limit or not wanted.vital.issubset(had):
        names = _renewed(had, wanted, sizes, room, limit)
    return tuple(_explained(name, wanted.reasons.get(name, "kept"), rankings, had) for name in names)


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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The tools that a message wants, the best first.

    `vital`: it cannot do without them; `needed`: they come with a change; `useful`: as far as there is room;
    `whole`: all of the chosen categories; `reasons`: the first reason that each has.
    """

    vital: frozenset[str]
    needed: Sequence[str]
    useful: Sequence[str]
    whole: Sequence[str]
    reasons: Mapping[str, Why]


def _wanted(
    intent: Intent,
    rankings: Rankings,
    had: Sequence[str],
    always: Sequence[str],
    included: Sequence[str],
    limit: int,
) -> _Wanted:
    goes_on = intent.source == "continued"
    categories = intent.categories if intent.is_clear else ()
    best = [] if goes_on else list(filter(None, map(rankings.best_of, categories)))
    if categories:
        by_words = rankings.vital(categories, KNOWS_BETTER if goes_on else 0.0)
        needed = _first([*best, *always, *included, *by_words], limit)
        vital = frozenset(needed)
    else:
        by_words = rankings.heads()
        needed = _first([*by_words[:1], *always, *included, *by_words], limit)
        vital = frozenset([*always, *included, *rankings.firsts(had)])
    fitting = rankings.fitting()
    siblings = rankings.of(categories or [rankings.tools[name] for name in by_words[:1]])
    reasons: dict[str, Why] = dict.fromkeys(siblings, "sibling")
    reasons |= dict.fromkeys((*by_words, *fitting), "words")
    reasons |= dict.fromkeys(included, "include")
    reasons |= dict.fromkeys(always, "always")
    reasons |= dict.fromkeys(best, "category")
    return _Wanted(vital, needed, fitting, siblings if categories else (), reasons)


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


def _explained(name: str, why: Why, rankings: Rankings, had: Collection[str]) -> Chosen:
    """Return the tool with the text that it fits best."""
    best, kept = rankings.best(name), name in had
    if best is None:
        return Chosen(name, why, kept=kept)
    return Chosen(name, why, best.phrase, round(best.score, 3), round(best.coverage, 3), kept)


def _first(names: Iterable[str], limit: int) -> list[str]:
    return list(dict.fromkeys(names))[:limit]
