"""Figures of the last day: messages and turns by the hour, and how long answers took."""

from collections import Counter
from dataclasses import dataclass

from app.store.database import Connection, scalar

HOURS = 24
HOUR_SECONDS = 3600.0
_HOUR = "CAST({} * 1000 AS BIGINT) / 3600000"  # of milliseconds: PostgreSQL rounds where SQLite cuts


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


def last_day(conn: Connection, now: float) -> Day:
    """Return the figures of the hours up to this one.

    The id of a turn begins with its time, and messages are numbered in their order: both indexes are used.
    """
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
    answers = conn.execute(
        f"SELECT done_at - created_at {lately} AND outcome = 'answered' ORDER BY 1", (since, first)
    )
    took = [row[0] for row in answers]
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
