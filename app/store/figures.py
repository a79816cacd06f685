"""Figures of the last day: messages and turns by the hour, and how long answers took."""

from collections import Counter
from dataclasses import dataclass

from app.store.database import Connection, scalar

HOURS = 24
HOUR_SECONDS = 3600.0


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
    first = now - now % HOUR_SECONDS - (HOURS - 1) * HOUR_SECONDS
    since = f"turn_{int(first * 1000):012x}"
    turns = conn.execute(
        "SELECT created_at, done_at, outcome FROM turns WHERE id >= ? AND created_at >= ?", (since, first)
    ).fetchall()
    row = scalar(conn, "SELECT min(id) FROM messages WHERE turn_id >= ?", since)
    counts = Counter[tuple[int, str]]()
    for at, direction in conn.execute(
        "SELECT at, direction FROM messages WHERE id >= ? AND at >= ? AND kind <> 'scheduled'",
        (row or 0, first),
    ):
        counts[int((at - first) // HOUR_SECONDS), direction] += 1
    begun = Counter(int((turn["created_at"] - first) // HOUR_SECONDS) for turn in turns)
    took = sorted(turn["done_at"] - turn["created_at"] for turn in turns if turn["outcome"] == "answered")
    hours = [
        Hour(first + n * HOUR_SECONDS, counts[n, "in"], counts[n, "out"], begun[n]) for n in range(HOURS)
    ]
    return Day(
        hours,
        failed=sum(turn["outcome"] == "failed" for turn in turns),
        half=took[len(took) // 2] if took else None,
        most=took[min(len(took) * 95 // 100, len(took) - 1)] if took else None,
    )
