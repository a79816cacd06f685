"""What each model call of a turn is offered: what was chosen for the turn, then what a search of it found.

Pure, from what is written down, so that a restart offers the same.
"""

from collections.abc import Iterator, Sequence

import orjson

from app.messages import JSON
from app.routing.selector import changed
from app.routing.tool_search import SEARCH_TOOLS
from app.skills.disclosure import LOAD_SKILL, READ_SKILL_FILE
from app.turns.actions import Round


def offers(chosen: tuple[str, ...], rounds: Sequence[Round], limit: int) -> list[tuple[str, ...]]:
    """Names of the at most `limit` tools of each model call so far, and last those of the next one.

    What was found comes at the end; the oldest leave for it, those first that the turn did not call.
    """
    offered = [chosen]
    called: set[str] = set()
    for one in rounds:
        called |= {call.name for call in one.calls}
        last, found = offered[-1], list(_found(one))
        if not found:
            offered.append(last)
            continue
        wanted = [SEARCH_TOOLS, *_reading(last), *found]
        idle = [name for name in last if name not in called]
        offered.append(tuple(changed(last, wanted, limit, first=idle)))
    return offered


def _reading(offered: Sequence[str]) -> list[str]:
    """The tools that read skills, where they were offered: what was found may need them."""
    return [name for name in (LOAD_SKILL, READ_SKILL_FILE) if name in offered]


def _found(one: Round) -> Iterator[str]:
    """Names in the results of the round's searches."""
    for call in one.calls:
        if call.name == SEARCH_TOOLS and call.id in one.results:
            yield from _names(orjson.loads(one.results[call.id]))


def _names(result: JSON) -> Iterator[str]:
    data = result.get("data") if result["ok"] else None
    listed = data.get("tools") if isinstance(data, dict) else None
    for tool in listed if isinstance(listed, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            yield tool["name"]
