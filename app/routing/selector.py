"""Selection of the tools that a model call offers: by words and categories, steady through a conversation."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from app.messages import JSON
from app.routing.intent import Intent
from app.routing.rankings import KNOWS_BETTER, Rankings, rank_tools
from app.search.index import ToolIndex
from app.search.scoring import Parts

ROOM = 3_300  # bytes of definitions that come with a change, beside what is needed
_MORE_ROOM = 1.25  # factor if several categories were chosen, or none
_RANKED = 4  # times the limit: the tools that are ranked for each phrase
_NO_SIZES: Mapping[str, int] = {}
# all are offered · best of a chosen category · in every call · a chosen skill asks for it · its words fit ·
# another of its category · the conversation has it · reads the chosen skills
Why = Literal["few", "category", "always", "include", "words", "sibling", "kept", "reading"]


def _no_parts() -> dict[str, float]:
    return Parts()._asdict()


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tool that is offered, and why.

    `phrase`: the one it fits best, "" for the message itself; `score`, `boost`, `coverage` and `parts` (by
    the names of `Parts`) are those of its `Ranked` for that phrase, 0 if it fits none. `kept`: the
    conversation had it before.
    """

    name: str
    why: Why
    phrase: str = ""
    score: float = 0.0
    boost: float = 0.0
    coverage: float = 0.0
    kept: bool = False
    parts: Mapping[str, float] = field(default_factory=_no_parts)

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
    message cannot do without. Else all that fit the message come, at the end, and the oldest that are of no
    use now leave, of other categories first. `always`: offered with every call, unless that leaves no room
    for what the message is about. `beside`: wanted by the chosen skills beside their own. `sizes`: bytes of
    the tools' definitions; what is not needed comes as far as there is `room`. If there are few tools all
    are offered.
    """
    if len(tools) <= limit:
        return tuple(Chosen(name, "few", kept=name in sticky) for name in sorted(tools))
    rankings = rank_tools(intent, said, index, tools, _RANKED * limit)
    fixed = [name for name in always if name in tools] if limit > 1 else []
    included = [name for name in beside if name in tools]
    wanted = _wanted(intent, rankings, fixed, included, limit)
    had = [name for name in sticky if name in tools]
    names = had if _serves(had, wanted, rankings, limit) else _renewed(had, wanted, sizes, room, limit)
    return tuple(_explained(names, wanted, rankings, had))


def changed(
    had: Sequence[str],
    wanted: Sequence[str],
    limit: int,
    *,
    first: Collection[str],
    welcome: Sequence[str] = (),
) -> list[str]:
    """Return at most `limit` names: `had` with what is wanted at its end.

    The oldest that are not wanted leave for it, those of `first` before others; only these leave for what is
    `welcome`.
    """
    needed = _first(wanted, limit)
    room = limit - sum(name not in first for name in had if name not in needed)
    needed = _first([*needed, *welcome], max(room, len(needed)))
    coming = [name for name in needed if name not in had]
    idle = [name for name in had if name not in needed]
    leaving = dict.fromkeys([*(name for name in idle if name in first), *idle])
    gone = list(leaving)[: max(len(had) + len(coming) - limit, 0)]
    return [*(name for name in had if name not in gone), *coming]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The tools that a message wants, by reason; the best first.

    `categories`: the chosen ones, none if words alone decide; `own`: their tools. `best`: of each that the
    model chose; `vital`: asked for by the words; `fitting`: all of some use for them; `siblings`: all of
    `own`, else of the first tool's category. `needed`: the message cannot do without them.
    """

    categories: Collection[str]
    own: Collection[str]
    best: Sequence[str]
    always: Sequence[str]
    included: Sequence[str]
    vital: Sequence[str]
    fitting: Sequence[str]
    siblings: Sequence[str]
    needed: Sequence[str]

    def reasons(self) -> Mapping[str, Why]:
        """Return the first reason that each tool has."""
        found: dict[str, Why] = dict.fromkeys(self.siblings, "sibling")
        found |= dict.fromkeys((*self.vital, *self.fitting), "words")
        found |= dict.fromkeys(self.included, "include")
        found |= dict.fromkeys(self.always, "always")
        return found | dict.fromkeys(self.best, "category")


def _wanted(
    intent: Intent, rankings: Rankings, always: Sequence[str], included: Sequence[str], limit: int
) -> _Wanted:
    tools = rankings.tools
    goes_on = intent.source == "continued"
    categories = intent.categories if intent.is_clear else ()
    best = [] if goes_on else list(filter(None, map(rankings.best_of, categories)))
    if categories:
        vital = rankings.vital(categories, KNOWS_BETTER if goes_on else 0.0)
        needed = [*best, *always, *included, *vital]
    else:
        vital = rankings.heads()
        needed = [*vital[:1], *always, *included, *vital]
    return _Wanted(
        categories,
        frozenset(name for name, category in tools.items() if category in categories),
        best,
        always,
        included,
        vital,
        rankings.fitting(),
        rankings.siblings(categories or [tools[name] for name in vital[:1]]),
        _first(needed, limit),
    )


def _serves(had: Collection[str], wanted: _Wanted, rankings: Rankings, limit: int) -> bool:
    """Return whether what the conversation has will do; if words alone decide, nearly as good will do."""
    if not had or len(had) > limit:
        return False
    missing = _without(wanted.needed, had)
    if wanted.categories:
        return not missing
    told = {*wanted.always, *wanted.included}
    return all(name not in told and rankings.is_answered(name, had) for name in missing)


def _renewed(
    had: Sequence[str], wanted: _Wanted, sizes: Mapping[str, int], room: int, limit: int
) -> list[str]:
    """Return what the conversation has, with all that fits at its end, as far as there is room.

    A category comes whole if it fits, so that no later message about it changes the set. Guests (of other
    categories and not needed) take only the places of other guests.
    """
    own, siblings = wanted.own, wanted.siblings
    whole = siblings if len({*wanted.needed, *siblings}) <= limit else ()
    staying = [name for name in wanted.fitting if name in had and name in own]
    coming = _first([*wanted.needed, *whole, *staying, *wanted.fitting], limit)
    guests = [name for name in coming if own and name not in own and name not in wanted.needed]
    steady = changed(had, _without(coming, guests), limit, first={*had} - {*own}, welcome=guests)
    names = _first([*steady, *(siblings if own else ())], limit)
    room = room if len(wanted.categories) == 1 else round(room * _MORE_ROOM)
    return _light(names, _leaving(names, coming, had, wanted), sizes, room)


def _leaving(names: Iterable[str], coming: Sequence[str], had: Iterable[str], wanted: _Wanted) -> list[str]:
    """Return what is not needed, in the order in which it leaves.

    First what is of no use now, then what fits least; last what the conversation has of these categories.
    """
    lasting = [name for name in had if name in wanted.own]
    fitting = [name for name in coming if name in lasting]
    order = [*_without(names, [*coming, *lasting]), *reversed(_without(coming, lasting))]
    return _without([*order, *_without(lasting, fitting), *reversed(fitting)], wanted.needed)


def _light(names: Sequence[str], leaving: Sequence[str], sizes: Mapping[str, int], room: int) -> list[str]:
    """Return the names without the first of those that may leave, until the others have room.

    A huge definition does not drive the others out: it leaves before them, or counts for half of the room if
    it is needed.
    """
    counted = {name: sizes.get(name, 0) for name in names}
    counted |= {name: min(counted[name], room // 2) for name in names if name not in leaving}
    surplus = sum(counted.values()) - room
    gone = set[str]()
    for name in sorted(leaving, key=lambda name: counted.get(name, 0) <= room):
        if surplus <= 0:
            break
        if name in names:
            gone.add(name)
            surplus -= counted[name]
    return _without(names, gone)


def _explained(
    names: Collection[str], wanted: _Wanted, rankings: Rankings, had: Collection[str]
) -> Iterator[Chosen]:
    """Yield each tool with the text that it fits best, and the parts of its score for that."""
    reasons, ranked = wanted.reasons(), rankings.best(names)
    for name in names:
        why, kept, best = reasons.get(name, "kept"), name in had, ranked.get(name)
        if best is None:
            yield Chosen(name, why, kept=kept)
            continue
        score, coverage = round(best.score, 3), round(best.coverage, 3)
        parts = {kind: round(part, 3) for kind, part in best.parts._asdict().items()}
        yield Chosen(name, why, best.phrase, score, best.boost, coverage, kept, parts)


def _without(names: Iterable[str], others: Collection[str]) -> list[str]:
    return [name for name in names if name not in others]


def _first(names: Iterable[str], limit: int) -> list[str]:
    return list(dict.fromkeys(names))[:limit]
