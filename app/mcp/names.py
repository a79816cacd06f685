"""Names under which tools of servers are offered: fit for every model, ending as the tool is named."""

import hashlib
import re
from collections.abc import Collection, Iterable

LONGEST = 64
KEPT_END = 40
"""Characters of the end that stay where a name is shortened: models know a tool by its own name."""
_MARK = 8
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")

Pair = tuple[str, str]
"""A server and its tool, both as they name themselves."""


def offered_name(server: str, tool: str) -> str:
    """`mcp_<server>_<tool>` of at most 64 fit characters; what is shortened has a hash in the middle."""
    name = _plain(server, tool)
    return name if len(name) <= LONGEST else _shortened(name, _mark(server, tool))


def unique_names(pairs: Iterable[Pair]) -> dict[Pair, str]:
    """A name for each, none twice; which ones does not depend on their order.

    Where several come to the same name, the one that is spelled so keeps it, if it is the only one, and the
    others have a hash of server and tool in the middle.
    """
    alike: dict[str, list[Pair]] = {}
    for pair in sorted(set(pairs)):
        alike.setdefault(offered_name(*pair), []).append(pair)
    kept = {name: _keeper(name, group) for name, group in alike.items()}
    names = {pair: name for name, pair in kept.items() if pair is not None}
    used = set(alike)
    for group in alike.values():
        for pair in group:
            if pair not in names:
                names[pair] = _marked(pair, used)
                used.add(names[pair])
    return names


def _keeper(name: str, group: list[Pair]) -> Pair | None:
    """Whose name it is; None for nobody's."""
    exact = [pair for pair in group if f"mcp_{pair[0]}_{pair[1]}" == name] if len(group) > 1 else group
    return exact[0] if len(exact) == 1 else None


def _marked(pair: Pair, used: Collection[str]) -> str:
    """The first free name with a hash in the middle: the second is needed once in four thousand millions."""
    server, tool = pair
    again = ""
    while True:
        mark = _mark(server, tool + again)
        name = _clean(f"mcp_{server}_{mark}_{tool}")
        name = name if len(name) <= LONGEST else _shortened(_plain(server, tool), mark)
        if name not in used:
            return name
        again += "\0"


def _plain(server: str, tool: str) -> str:
    return _clean(f"mcp_{server}_{tool}")


def _clean(name: str) -> str:
    return _UNFIT.sub("_", name)


def _shortened(name: str, mark: str) -> str:
    return f"{name[: LONGEST - KEPT_END - _MARK - 2]}_{mark}_{name[-KEPT_END:]}"


def _mark(server: str, tool: str) -> str:
    written = f"{server}\0{tool}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(written).hexdigest()[:_MARK]
