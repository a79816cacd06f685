"""The alarm of reminders, tasks and watches: finds what is due, and queues a message or a turn."""

import asyncio
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from datetime import time as clock_time
from typing import Literal
from zoneinfo import ZoneInfo

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from app.calendar.rules import instant, next_after
from app.messages import Outgoing, Template, Wakeable
from app.schedule.wording import reminder_text
from app.store import people, schedules
from app.store.database import Connection, Database
from app.store.outbox import WINDOW_SECONDS, Draft, written_at
from app.store.ownership import HasAccessRules
from app.store.schedules import Due, Firing, Schedule
from app.tasks import end_tasks
from app.text import Private

log = structlog.get_logger(__name__)

LATE_SECONDS = 120.0  # more than this after its time a reminder says that it is late
WINDOW_MARGIN = 300.0  # the last seconds of the window count as too late: Meta's clock and ours may differ
Way = Literal["text", "template", ""]
_LANGUAGES = {"es": "es", "pt": "pt_BR", "en": "en"}
_CLOCK = r"(\d{1,2})(?:[:.h](\d{2})|\s?h)?"
_BETWEEN = r"(?:-|–|to|a|as|às|a\s+las|hasta|até)"
_HOURS = re.compile(rf"(?:(?:de|from)\s+)?{_CLOCK}\s*{_BETWEEN}\s*{_CLOCK}", re.IGNORECASE)


class Reminders:
    """Tells or starts what is due. The rows are the truth; APScheduler is the alarm clock of the next one."""

    def __init__(
        self,
        store: Database,
        channels: Collection[str],
        *,
        template: Template | None,
        access: HasAccessRules,
        sender: Wakeable,
        look_again: asyncio.Event,
    ) -> None:
        self._store = store
        self._channels = channels
        self._template = template
        self._access = access
        self._sender = sender
        self._look_again = look_again  # set, it makes the sweep find the turns that were queued
        self._alarm_clock = AsyncIOScheduler(timezone=UTC)  # its jobs are in memory only
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def has_template(self) -> bool:
        """Return True if a reminder reaches people who have not written for a day."""
        return self._template is not None

    async def start(self) -> None:
        """Tell what is due, however long the server was off."""
        self._alarm_clock.start()
        self._task = asyncio.create_task(self._run(), name="reminders")
        self.look()

    async def stop(self) -> None:
        if self._task is not None:
            self._alarm_clock.shutdown(wait=False)
            await end_tasks(self._task)

    def look(self) -> None:
        """Look at the rows now: one was made or changed, or it is time."""
        self._asked.set()

    async def _run(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            try:
                await self.tick()
            except Exception as error:  # the sweep asks again
                log.error("reminders failed", error=f"{type(error).__name__}: {error}")

    async def tick(self) -> None:
        """Tell or start everything that is due, and set the alarm for the next one."""
        now = time.time()
        due_now, ahead = await self._store.tx(lambda conn: self._find(conn, now))
        plans = await asyncio.to_thread(lambda: [(due, self._plan(due, way, now)) for due, way in due_now])
        again = await asyncio.to_thread(_due_again, ahead, now) if ahead else []

        def settle(conn: Connection) -> tuple[list[Schedule], float | None]:
            for schedule, at in again:
                schedules.follow_clock(conn, schedule, at, now)
            told = []
            for due, plan in plans:
                if plan is None:
                    schedules.hold(conn, due.schedule, now)
                elif isinstance(plan, float):
                    schedules.put_off(conn, due, plan)
                elif schedules.fire(conn, plan, now):
                    told.append(due.schedule)
            return told, schedules.next_due(conn, now)

        told, next_due = await self._store.tx(settle)
        for person in dict.fromkeys(one.person_id for one in told if not one.runs_turn):
            self._sender.wake(person)
        if any(one.runs_turn for one in told):
            self._look_again.set()
        if len(due_now) == schedules.AT_ONCE and (
            told or not all(isinstance(one, Firing) for _, one in plans)
        ):
            self.look()  # there may be more
        else:
            self._set_alarm(next_due)

    def _plan(self, due: Due, way: Way, now: float) -> Firing | float | None:
        """Return its firing, or when the person's quiet hours end; None if it cannot be told now."""
        try:
            if due.schedule.runs_turn:  # a reminder's hour was asked for
                zone = ZoneInfo(due.own_zone or due.schedule.zone)
                if (until := quiet_until(due.quiet_hours, zone, now)) is not None:
                    return until
            return self._firing(due, way, now) if way else None
        except Exception as error:  # such as an unknown zone: it is held, and stops no other
            reason = f"{type(error).__name__}: {error}"
            log.error("a reminder cannot be told", schedule=due.schedule.id, error=Private(reason))
            return None

    def _find(self, conn: Connection, now: float) -> tuple[list[tuple[Due, Way]], list[Schedule]]:
        """Return what is due with the way to its person, also what was held, and what fired in the future."""
        schedules.settle_held(conn, now)
        due = [(due, self._way_to(conn, due, now)) for due in schedules.due(conn, self._channels, now)]
        return due, schedules.fired_in_future(conn, now)

    def _way_to(self, conn: Connection, due: Due, now: float) -> Way:
        """Return how a message reaches the person now: not ("") if it has to wait until they write.

        On WhatsApp a text reaches them for a day after their last message; a template brings no answer of a
        turn, and no reminder whose template failed. Who may not write any more is not written to either.
        """
        where = due.conversation
        if not people.may_come(conn, self._access.access_rules(where.channel), where.person_id):
            return ""
        if where.channel == "terminal":
            return "text"
        if now < (written_at(conn, where.id) or 0.0) + WINDOW_SECONDS - WINDOW_MARGIN:
            return "text"
        return "template" if self._template and not (due.schedule.resends or due.schedule.runs_turn) else ""

    def _firing(self, due: Due, way: Way, now: float) -> Firing:
        schedule = due.schedule
        next_due = next_time(schedule, now)
        if schedule.runs_turn:
            return Firing(due, None, next_due)
        late = now - schedule.due_at > LATE_SECONDS
        text = reminder_text(schedule, due.language, now, late=late, own_zone=due.own_zone)
        message = Outgoing(text)
        if way == "template" and self._template is not None:
            language = self._template.language or _LANGUAGES.get(due.language, "en")
            message = replace(message, template=replace(self._template, language=language))
        return Firing(due, Draft(text, (message,)), next_due)

    def _set_alarm(self, due: float | None) -> None:
        self._alarm_clock.remove_all_jobs()
        if due is not None:
            at = datetime.now(UTC) + timedelta(seconds=max(due - time.time(), 0.0))
            self._alarm_clock.add_job(self._ring, "date", run_date=at, misfire_grace_time=None)

    async def _ring(self) -> None:
        self.look()


def next_time(schedule: Schedule, after: float) -> float | None:
    """Return when a repeated reminder comes next after a time; None for another one, or if it is over."""
    if not schedule.rule:
        return None
    start, zone = datetime.fromisoformat(schedule.start), ZoneInfo(schedule.zone)
    return next_after(schedule.rule, start, zone, after)


def _due_again(ahead: Sequence[Schedule], now: float) -> list[tuple[Schedule, float]]:
    """Return the next times of rules after the clock was set back, later than what was told."""
    found = []
    for schedule in ahead:
        due = schedule.due_at
        if schedule.active and due > now:
            try:
                due = next_time(schedule, max(now, schedule.told_due or 0.0)) or due
            except Exception as error:  # it keeps its time, and stops no other
                log.error("a reminder was not set back", schedule=schedule.id, error=type(error).__name__)
        found.append((schedule, due))
    return found


def read_hours(text: str) -> str | None:
    """Return hours such as "22-7" or "22:30 a 7:00" as "22:30-07:00"; None for anything else."""
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        return None
    clocks = [(int(found[hour]), int(found[hour + 1] or 0)) for hour in (1, 3)]
    if clocks[0] == clocks[1] or any(hour > 23 or minute > 59 for hour, minute in clocks):
        return None
    return "-".join(f"{hour:02}:{minute:02}" for hour, minute in clocks)


def quiet_until(hours: str, zone: ZoneInfo, moment: float) -> float | None:
    """Return when the quiet hours end in which a moment lies (both Unix seconds); None if it lies in none.

    Of an end that the clock shows twice the second counts.
    """
    if not hours:
        return None
    begin, end = map(clock_time.fromisoformat, hours.split("-"))
    local = datetime.fromtimestamp(moment, zone)
    clock, over_midnight = local.time(), begin > end
    if not (clock >= begin or clock < end if over_midnight else begin <= clock < end):
        return None
    day = local.date() + timedelta(days=over_midnight and clock >= begin)
    until = datetime.combine(day, end)
    return max(instant(until, zone), until.replace(tzinfo=zone, fold=1).timestamp())


def runs_wait_until(conn: Connection, conversation: str, now: float) -> float | None:
    """Return when quiet hours end that hold back a run which is queued already; None if nothing is held back.

    It was queued before they began, and waited for a limit or for a person of the business.
    """
    found = schedules.run_that_waits(conn, conversation)
    return None if found is None else quiet_until(found["quiet_hours"], ZoneInfo(found["zone"]), now)
