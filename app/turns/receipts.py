"""Receipts: what the tools of a turn did, in their own words, so that a reply cannot leave it out."""

from collections.abc import Callable, Iterable, Iterator

import orjson

from app.search.words import fold
from app.turns.actions import Round

MARK = "✓"
"""How the `summary` of a result begins whose call changed something."""
LONGEST = 300
"""Characters of one receipt."""
MOST = 10
"""Receipts that one reply names one by one."""


def receipts(rounds: Iterable[Round], is_bundled: Callable[[str], bool]) -> list[str]:
    """The receipts of finished calls, the oldest first. Only tools that `is_bundled` names are believed."""
    said = (
        summary
        for one in rounds
        for call in one.calls
        if is_bundled(call.name) and (summary := _summary(one.results.get(call.id, "")))
    )
    return list(dict.fromkeys(said))


def with_receipts(text: str, said: Iterable[str]) -> str:
    """A reply that holds these receipts: those that it leaves out stand below it."""
    told = _letters(text)
    missing = [one for one in said if _letters(one) not in told]
    return "\n\n".join(filter(None, (text, "\n".join(_bounded(missing)))))


def _summary(result: str) -> str:
    """The first line of a result's receipt, "" where it has none."""
    read = orjson.loads(result) if result.startswith('{"ok":true') else {}
    data = read.get("data")
    summary = data.get("summary") if isinstance(data, dict) else None
    if not isinstance(summary, str) or not summary.startswith(MARK):
        return ""
    line = summary.splitlines()[0]
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _bounded(missing: list[str]) -> Iterator[str]:
    yield from missing[:MOST]
    if len(missing) > MOST:
        yield f"{MARK} + {len(missing) - MOST}"


def _letters(text: str) -> str:
    """Letters and digits alone: a model adds stars, quotes and spaces, and changes no word."""
    return "".join(filter(str.isalnum, fold(text)))
