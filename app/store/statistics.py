"""Statistics: how tools did, by day, error code and step of duration; what came and went in the last day."""

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

from app.store.database import Connection, Row, scalar

UNKNOWN_TOOL = "unknown"  # counted in place of a name that no tool has
OK = "ok"
OTHER = "OTHER"
MOST_CODES = 32  # error codes of one tool; what goes beyond them is counted as OTHER

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_BASE = 1.25
_LAST_STEP = 80  # about 16 hours
_NEVER_RAN = -1

HOURS = 24
HOUR_SECONDS = 3600.0
_HOUR = "CAST({} * 1000 AS BIGINT) / 3600000"  # of milliseconds: PostgreSQL rounds where SQLite cuts


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """The calls of one tool.

    Half of them took at most `half` seconds (at most a quarter too long), None if no call ran.
    """

    tool: str
    calls: int
    success_rate: float  # 0 to 1
    half: float | None
    errors: dict[str, int]  # failed calls by code, the most frequent first


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour that began at `at`."""

    at: float
    received: int
    sent: int
    turns: int


@dataclass(frozen=True, slots=True)
class Day:
    """The last 24 hours; `half` and `most` (95 %) of the answers took no more seconds, None without one."""

    hours: list[Hour]
    failed: int
    half: float | None
    most: float | None

    @property
    def received(self) -> int:
        return sum(hour.received for hour in self.hours)


def count_call(conn: Connection, tool: str, code: str, seconds: float | None, day: str) -> None:
    """Count one call, in the transaction that records its result.

    `tool` is the name of a tool, else "unknown"; `code` is "ok" or the error code; `seconds` is None if the
    call was refused before it ran; `day` comes from `day_of`.
    """
    step = _NEVER_RAN
    if seconds is not None:
        step = min(math.ceil(math.log(max(seconds * 1000, 1), _BASE)), _LAST_STEP)
    rows = conn.execute("SELECT DISTINCT code FROM tool_statistics WHERE tool = ? AND day = ?", (tool, day))
    conn.execute(
        "INSERT INTO tool_statistics (tool, day, code, step, calls) VALUES (?, ?, ?, ?, 1)"
        " ON CONFLICT (tool, day, code, step) DO UPDATE SET calls = tool_statistics.calls + 1",
        (tool, day, counted_code(code, {row["code"] for row in rows}), step),
    )


def tool_figures(conn: Connection, since_day: str) -> list[ToolFigures]:
    """Return the figures of every tool that was called on that day or later, by name."""
    rows = conn.execute(
        "SELECT tool, code, step, sum(calls) AS calls FROM tool_statistics WHERE day >= ?"
        " GROUP BY tool, code, step ORDER BY tool",
        (since_day,),
    )
    return [_figures(tool, list(counted)) for tool, counted in groupby(rows, key=itemgetter("tool"))]


def day_of(at: float) -> str:
    """Return the day that calls and tokens are counted by: UTC, YYYY-MM-DD."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def counted_code(code: str, known: Collection[str] = ()) -> str:
    """Return the code to count by: OTHER if it is no error code, or one too many beside the `known` ones.

    Models and tools invent words, and the number of figures must stay bounded.
    """
    if not _CODE.fullmatch(code):
        return OTHER
    has_room = code == OK or code in known or len(set(known) - {OK, OTHER}) < MOST_CODES
    return code if has_room else OTHER


def _figures(tool: str, rows: Sequence[Row]) -> ToolFigures:
    codes, steps = Counter[str](), Counter[int]()
    for row in rows:
        codes[row["code"]] += row["calls"]
        steps[row["step"]] += row["calls"]
    total, succeeded = codes.total(), codes.pop(OK, 0)
    del steps[_NEVER_RAN]
    errors = dict(sorted(codes.items(), key=lambda entry: (-entry[1], entry[0])))
    return ToolFigures(tool, total, succeeded / total, _half(steps), errors)


def _half(steps: Counter[int]) -> float | None:
    """Return the upper end of the step within which half of the calls had ended."""
    ended = 0
    for step in sorted(steps):
        ended += steps[step]
        if ended * 2 >= steps.total():
            return float(_BASE**step) / 1000
    return None


def last_day(conn: Connection, now: float) -> Day:
    """Return the figures of the hours up to this one."""
    # The id of a turn begins with its time, and messages are numbered in order: indexes are used of both.
    hour = int(now // HOUR_SECONDS) - HOURS + 1
    first = hour * HOUR_SECONDS
    since = f"turn_{int(first * 1000):012x}"
    earliest = "SELECT id FROM messages WHERE turn_id >= ? ORDER BY turn_id LIMIT 100"  # a turn may wait
    row = scalar(conn, f"SELECT min(id) FROM ({earliest}) AS earliest", since)
    messages = conn.execute(
        f"SELECT {_HOUR.format('at')}, direction, count(*) FROM messages"
        " WHERE id >= ? AND at >= ? AND kind <> 'scheduled' GROUP BY 1, 2",
        (row or 0, first),
    )
    counts: dict[tuple[int, str], int] = {(at, direction): count for at, direction, count in messages}
    lately = "FROM turns WHERE id >= ? AND created_at >= ?"
    turns = conn.execute(
        f"SELECT {_HOUR.format('created_at')}, outcome, count(*) {lately} GROUP BY 1, 2", (since, first)
    ).fetchall()
    begun = Counter[int]()
    for at, _, count in turns:
        begun[at] += count
    answers = f"SELECT done_at - created_at {lately} AND outcome = 'answered' ORDER BY 1"
    took = [seconds for (seconds,) in conn.execute(answers, (since, first))]
    hours = [
        Hour(one * HOUR_SECONDS, counts.get((one, "in"), 0), counts.get((one, "out"), 0), begun[one])
        for one in range(hour, hour + HOURS)
    ]
    return Day(
        hours,
        failed=sum(count for _, outcome, count in turns if outcome == "failed"),
        half=took[len(took) // 2] if took else None,
        most=took[min(len(took) * 95 // 100, len(took) - 1)] if took else None,
    )
