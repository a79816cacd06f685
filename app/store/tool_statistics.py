"""How often tools were called, how long they took, what they failed with: a row a tool, day and outcome."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from sqlite3 import Connection, Row

from app.store.codes import MOST_CODES, OK, OTHER, counted_code
from app.store.database import Database

_BASE = 1.25
_LAST_STEP = 80
"""Some 16 hours."""
_NEVER_RAN = -1
_SINCE = (
    "SELECT tool, code, step, sum(calls) AS calls FROM tool_statistics WHERE day >= ?"
    " GROUP BY tool, code, step ORDER BY tool"
)


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """One tool's calls. Durations in seconds, each at most a quarter too long; None where no call ran."""

    tool: str
    calls: int
    succeeded: int
    success_rate: float
    """In 0..1."""
    p50: float | None
    p90: float | None
    p99: float | None
    errors: dict[str, int]
    """Failed calls by code, the most frequent first."""


def count(conn: Connection, tool: str, code: str, seconds: float | None, day: str) -> None:
    """Counts one call; part of the transaction that records its result.

    `tool`: a name that a tool has, else "unknown"; `code`: "ok" or the failure's; `seconds`: None where it
    was refused before it ran; `day`: see `day_of`.
    """
    conn.execute(
        "INSERT INTO tool_statistics (tool, day, code, step, calls)"
        " VALUES (:tool, :day, iif(:code = :ok OR :most >"
        "   (SELECT count(DISTINCT code) FROM tool_statistics"
        "    WHERE tool = :tool AND day = :day AND code NOT IN (:ok, :other, :code)),"
        "   :code, :other), :step, 1) ON CONFLICT DO UPDATE SET calls = calls + 1",
        {
            "tool": tool,
            "day": day,
            "code": counted_code(code),
            "step": _step(seconds),
            "ok": OK,
            "other": OTHER,
            "most": MOST_CODES,
        },
    )


def summary(conn: Connection, since_day: str) -> list[ToolFigures]:
    """The figures of every tool that was called on that day or later, by name."""
    return _summed(conn.execute(_SINCE, (since_day,)))


async def read_summary(store: Database, since_day: str) -> list[ToolFigures]:
    """The same of an open database, beside its writer."""
    return _summed(await store.all(_SINCE, since_day))


def day_of(at: float) -> str:
    """The day that calls and tokens count by: UTC, YYYY-MM-DD."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _summed(rows: Iterable[Row]) -> list[ToolFigures]:
    by_tool: dict[str, list[tuple[str, int, int]]] = {}
    for row in rows:
        by_tool.setdefault(row["tool"], []).append((row["code"], row["step"], row["calls"]))
    return [_figures(tool, counted) for tool, counted in by_tool.items()]


def _figures(tool: str, counted: list[tuple[str, int, int]]) -> ToolFigures:
    codes, steps = Counter[str](), Counter[int]()
    for code, step, calls in counted:
        codes[code] += calls
        steps[step] += calls
    total, succeeded = codes.total(), codes.pop(OK, 0)
    del steps[_NEVER_RAN]
    return ToolFigures(
        tool,
        total,
        succeeded,
        succeeded / total,
        _percentile(steps, 50),
        _percentile(steps, 90),
        _percentile(steps, 99),
        dict(sorted(codes.items(), key=lambda entry: (-entry[1], entry[0]))),
    )


def _percentile(steps: Counter[int], percent: int) -> float | None:
    """The upper end of the step by which so many of a hundred calls had ended."""
    ended = 0
    for step in sorted(steps):
        ended += steps[step]
        if ended * 100 >= percent * steps.total():
            return float(_BASE**step) / 1000
    return None


def _step(seconds: float | None) -> int:
    """The lowest power of 1.25 of a millisecond that a duration does not exceed."""
    if seconds is None:
        return _NEVER_RAN
    if seconds <= 0.001:
        return 0
    return min(math.ceil(math.log(seconds * 1000, _BASE)), _LAST_STEP)
