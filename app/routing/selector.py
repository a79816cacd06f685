"""Which tools a model call offers: found by words and categories, kept steady through a conversation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.routing.intent import Intent
from app.search.index import ToolIndex
from app.search.words import says_something

_BOOST = 1.25
"""Soft: a tool of another category that fits much better still wins."""

_RANKED = 4
"""How many times the tools that a call may hold are ranked for each phrase, beside those of the chosen
categories."""

_NEEDED_DEPTH = 3
_NEEDED_SHARE = 0.6
_NEEDED_COVERAGE = 0.2


def select_tools(
    intent: Intent,
    said: str,
    index: ToolIndex,
    tools: Mapping[str, str],
    *,
    sticky: Sequence[str] = (),
    always: Sequence[str] = (),
    beside: Sequence[str] = (),
    limit: int = 8,
) -> tuple[str, ...]:
    """Names of at most `limit` tools of `tools` (name → category), in an order that changes little.

    `sticky`: what the conversation was offered last; it keeps its places, and gives way only where this
    message needs other tools. `always`: offered with every call, but where that leaves no room for what the
    message is about. `beside`: what the chosen skills want beside their own. Few tools are all offered.
    """
    if len(tools) <= limit:
        return tuple(sorted(tools))
    rankings = _rankings(intent, said, index, tools, _RANKED * limit)
    fixed = [name for name in always if name in tools] if limit > 1 else []
    found = [_best_of(category, rankings, tools) for category in intent.categories]
    chosen = [name for name in found if name is not None]
    heads = list(_interleaved([_needed(ranking) for ranking in rankings]))
    best = chosen or heads[:1]
    wanted = [name for name in beside if name in tools]
    needed = _first([*best, *fixed, *wanted, *heads, *_siblings(intent, rankings, tools)], limit)
    kept = _kept([name for name in sticky if name in tools], needed, limit)
    added = [name for name in needed if name not in kept]
    if kept and not added:
        return tuple(kept)
    filling = _interleaved([[name for name, _, _ in ranking] for ranking in rankings])
    return tuple(_first([*kept, *added, *filling], limit))


_Ranking = list[tuple[str, float, float]]
"""(name, boosted score, coverage), best first."""


def _rankings(
    intent: Intent, said: str, index: ToolIndex, tools: Mapping[str, str], depth: int
) -> list[_Ranking]:
    texts = dict.fromkeys(text for text in (*intent.phrases, said) if says_something(text))
    chosen = frozenset(name for name, category in tools.items() if category in intent.categories)
    return [_boosted(index, text, frozenset(tools), chosen, depth) for text in texts]


def _boosted(
    index: ToolIndex, text: str, among: frozenset[str], chosen: frozenset[str], depth: int
) -> _Ranking:
    own = {hit.id: hit for hit in index.rank(text, among=chosen, limit=len(chosen))} if chosen else {}
    hits = own | {hit.id: hit for hit in index.rank(text, among=among, limit=depth, spread=True)}
    found = [
        (hit.id, hit.score * (_BOOST if hit.id in chosen else 1.0), hit.coverage) for hit in hits.values()
    ]
    return sorted(found, key=lambda entry: (-entry[1], entry[0]))


def _best_of(category: str, rankings: Iterable[_Ranking], tools: Mapping[str, str]) -> str | None:
    found = [(-score, name) for ranking in rankings for name, score, _ in ranking if tools[name] == category]
    return (
        min(found)[1] if found else min((name for name, of in tools.items() if of == category), default=None)
    )


def _siblings(intent: Intent, rankings: Sequence[_Ranking], tools: Mapping[str, str]) -> Iterator[str]:
    """The other tools of the chosen categories, the best first: they come before what is merely sticky."""
    categories = frozenset(intent.categories) if intent.source == "model" else frozenset[str]()
    yield from _interleaved(
        [[name for name, _, _ in ranking if tools[name] in categories] for ranking in rankings]
    )
    yield from sorted(name for name, category in tools.items() if category in categories)


def _needed(ranking: _Ranking) -> list[str]:
    """The few at the head that are nearly as good as the first: what this message cannot do without."""
    top = ranking[0][1] if ranking else 0.0
    head = ranking[:_NEEDED_DEPTH]
    return [name for name, score, cover in head if score >= _NEEDED_SHARE * top and cover >= _NEEDED_COVERAGE]


def _kept(sticky: Sequence[str], needed: Sequence[str], limit: int) -> list[str]:
    """The sticky tools that stay, in their order; the oldest that are not needed leave for those that are."""
    surplus = len(sticky) + sum(name not in sticky for name in needed) - limit
    kept = []
    for name in sticky:
        if surplus > 0 and name not in needed:
            surplus -= 1
        else:
            kept.append(name)
    return kept


def _interleaved(lists: Sequence[Sequence[str]]) -> Iterator[str]:
    for place in range(max(map(len, lists), default=0)):
        yield from (names[place] for names in lists if place < len(names))


def _first(names: Iterable[str], limit: int) -> list[str]:
    return list(dict.fromkeys(names))[:limit]
