"""Scheduled turns over a year of three clocks, with deaths in between."""

import asyncio
import random
import time
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from sqlite3 import Connection
from zoneinfo import ZoneInfo

import pytest

from app.calendar.rules import next_after
from app.schedule.alarm import Reminders
from app.store.database import Database
from tests.databases import database_at
from tests.store.rows import Everybody

ZONES = ("America/Santiago", "America/Mexico_City", "Europe/Madrid")
BEGIN = datetime(2026, 1, 1, 12, tzinfo=ZoneInfo("UTC")).timestamp()
YEAR, STEP = 365 * 86_400, 3_600
TIMES = {  # of a task or a watch: rule, hour of the first time
    "briefing": ("FREQ=DAILY", 8, "task"),
    "shutdown": ("FREQ=WEEKLY;BYDAY=SU", 2, "task"),  # where clocks change; and in quiet hours
    "price": ("EVERY:7200", 9, "watch"),
}
QUIET = {"America/Santiago": "23:00-07:00", "America/Mexico_City": "", "Europe/Madrid": "22:30-08:00"}


def _settle_in(conn: Connection, zone: str) -> None:
    conn.execute(
        "INSERT INTO people (id, realm, created_at, timezone, quiet_hours) VALUES (?, 'terminal', 0, ?, ?)",
        (zone, zone, QUIET[zone]),
    )
    conn.execute(
        "INSERT INTO conversations (id, person_id, channel, created_at) VALUES (?, ?, 'terminal', 0)",
        (zone, zone),
    )
    for number, (name, (rule, hour, kind)) in enumerate(TIMES.items(), 1):
        start = datetime(2026, 1, 2, hour)
        due = next_after(rule, start, ZoneInfo(zone), BEGIN)
        conn.execute(
            "INSERT INTO schedules (id, person_id, conversation_id, number, text, rule, start, zone, due_at,"
            " kind, created_at, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)",
            (f"{name} {zone}", zone, zone, number, name, rule, start.isoformat(), zone, due, kind),
        )


def _run_all(conn: Connection) -> None:
    """End every turn that was queued, as lanes do."""
    conn.execute("UPDATE inbox SET done_at = ? WHERE done_at IS NULL", (time.time(),))


@pytest.mark.slow
async def test_each_time_of_a_year_runs_once_and_none_in_quiet_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, clock = random.Random(7), BEGIN
    monkeypatch.setattr(time, "time", lambda: clock)

    async def open_again() -> tuple[Database, Reminders]:
        store = Database(database_at(tmp_path / "recado.db"))
        await store.open()
        alarm = Reminders(
            store, ("terminal",), template=None, access=Everybody(), sender=None, look_again=asyncio.Event()
        )
        return store, alarm

    store, alarm = await open_again()
    for zone in ZONES:
        await store.tx(lambda conn, zone=zone: _settle_in(conn, zone))
    while clock < BEGIN + YEAR:
        clock += STEP
        if chance.random() < 0.01:  # it is killed before, at or after the look
            when = asyncio.create_task(alarm.tick())
            await asyncio.sleep(chance.random() * 0.003)
            when.cancel()
            await store.close()
            clock += chance.choice((0, 0, 3 * STEP))
            store, alarm = await open_again()
        await alarm.tick()
        await store.tx(_run_all)
    runs = await store.all("SELECT wamid, text, person_id, at FROM messages WHERE kind = 'scheduled'")
    await store.close()
    at: dict[tuple[str, str], list[datetime]] = {}
    for run in runs:
        moment = datetime.fromtimestamp(run["at"], ZoneInfo(run["person_id"]))
        at.setdefault((run["text"], run["person_id"]), []).append(moment)
    for zone in ZONES:
        days = [one.date() for one in at["briefing", zone]]
        first = datetime(2026, 1, 2).date()
        assert days == [first + timedelta(days=n) for n in range(len(days))]
        assert len(days) >= 364
        sundays = [one.date() for one in at["shutdown", zone]]
        assert {one.weekday() for one in sundays} == {6}
        assert all(later - earlier == timedelta(days=7) for earlier, later in pairwise(sundays))
        watched = at["price", zone]
        gaps = [(b - a).total_seconds() for a, b in pairwise(watched)]
        assert min(gaps) > 0
        if not QUIET[zone]:
            assert len(watched) > 0.97 * YEAR / 7200
            continue
        begin, end = QUIET[zone].split("-")
        for one in (*at["briefing", zone], *at["shutdown", zone], *watched):
            assert end <= f"{one:%H:%M}" < begin, (one, zone)
