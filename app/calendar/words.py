"""Moments, repetitions and past days as people write them: "mañana a las 9", "every weekday at 7", "ayer"."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo

from app.calendar.grammar import (
    DAYS_AGO,
    HOURS,
    KINDS,
    LONGEST_READ,
    MONTHS,
    NEVER_TOGETHER,
    PARTS,
    PAST,
    UNITS,
    WEEKDAYS,
    Clock,
    Piece,
    clock_of,
    leaves_unread,
    number,
    pieces,
    weekdays,
)
from app.calendar.rules import CRON, EVERY, UNTIL, instant, month_days, next_after
from app.text import fold

DEFAULT_HOUR = 9
NUMBERED_WITHIN = 40  # days in which "Thursday 17" comes
NEXT_IS_UNCLEAR = 1  # days: on a Thursday, "next Friday" may be tomorrow or in a week
_SMALLEST_CLEAR_HOUR = 6  # below it "a las 3" may be of the night or of the afternoon
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_JOINING = frozenset("y e and o ou or a to hasta ate until till para pra pras".split())  # noqa: SIM905
_BESIDE = 2  # characters between two names of the same day: "tomorrow, the 5th"
_UNTIL_BEFORE = re.compile(r"\b(?:hasta|ate|until|till)\s+(?:(?:las?|as)\s+)?$")

Problem = Literal["", "missing", "past", "ambiguous", "unclear"]


@dataclass(frozen=True, slots=True)
class When:
    """A moment, or the first of several: `due` in Unix seconds, `start` and `rule` as in `next_after`."""

    due: float
    start: datetime
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The time that a text names: `words` name it, `rest` is the text without them.

    `choices` are the times that an ambiguous text may mean, by the person's clock; `kinds` are those of
    `words`.
    """

    when: When | None = None
    problem: Problem = ""
    choices: tuple[datetime, ...] = ()
    words: tuple[str, ...] = ()
    rest: str = ""
    kinds: frozenset[str] = frozenset()


def read_when(text: str, zone: ZoneInfo, now: float, language: str = "en", country: str = "") -> Reading:
    """Read the first moment or repetition of a text, the next that fits, in a person's zone."""
    text = unicodedata.normalize("NFC", text)
    found = _of_the_moment(pieces(text[:LONGEST_READ], language), text)
    if not found:
        return Reading(problem="missing", rest=text)
    found, end = _with_end(found, text)
    words = tuple(text[one.start : one.end].strip() for one in found)
    try:
        reading = _Reader([one for one in found if one is not end], zone, now, language, country).read()
        if end is not None and end.kind in KINDS["clock"]:
            reading = Reading(problem="unclear")  # "every 2 hours until 6 pm" is no rule of ours
        elif end is not None:
            reading = _ended(reading, _Reader([end], zone, now, language, country).read())
    except (ValueError, OverflowError):
        reading = Reading(problem="unclear")
    kinds = frozenset(one.kind for one in found)
    rest = _without(text, found)
    if reading.problem in ("", "ambiguous") and leaves_unread(rest):
        reading = Reading(problem="unclear")
    return Reading(reading.when, reading.problem, reading.choices, words, rest, kinds)


def _with_end(found: list[Piece], text: str) -> tuple[list[Piece], Piece | None]:
    """Return the pieces and the day, or the hour, up to which the others repeat, with its "until"."""
    for at, piece in enumerate(found):
        start = _start_of_until(piece, text) if piece.kind in KINDS["end"] | KINDS["clock"] else None
        if start is not None and any(one.kind in KINDS["repeating"] for one in found):
            end = replace(piece, start=start)
            return [*found[:at], end, *found[at + 1 :]], end
    return found, None


def cut_end(text: str, language: str) -> tuple[str, str]:
    """Return a text without its "until Sunday", and that; "" where it names no such day."""
    text = unicodedata.normalize("NFC", text)
    for piece in pieces(text[:LONGEST_READ], language):
        start = _start_of_until(piece, text) if piece.kind in KINDS["end"] else None
        if start is not None:
            return f"{text[:start].rstrip(' ,')}{text[piece.end :]}".strip(), text[start : piece.end].strip()
    return text, ""


def _start_of_until(piece: Piece, text: str) -> int | None:
    """Return where the "until" before a piece begins, None if there is none."""
    found = _UNTIL_BEFORE.search(fold(text[: piece.start]))
    return None if found is None else found.start()


def _ended(reading: Reading, end: Reading) -> Reading:
    """Return a repetition that ends with the day of `end`."""
    if reading.when is None or end.when is None or not reading.when.rule:
        return replace(reading, when=None, problem=reading.problem or end.problem or "unclear")
    last = datetime.combine(end.when.start.date(), time(23, 59))
    if last < reading.when.start:
        return replace(reading, when=None, problem="past")
    ended = replace(reading.when, rule=f"{reading.when.rule}{UNTIL}{last.isoformat(timespec='minutes')}")
    return replace(reading, when=ended)


def _of_the_moment(found: Sequence[Piece], text: str) -> list[Piece]:
    """Drop the hours of what is to be told ("at 9 that I meet Ana at 10"); of "12 midnight" keep the word."""
    kept: list[Piece] = []
    for piece in found:
        between = text[kept[-1].end : piece.start] if kept else ""
        is_further = piece.kind in KINDS["clock"] and any(one.kind in KINDS["clock"] for one in kept)
        if is_further and piece.kind != "clock" and kept[-1].kind == "clock" and not between.strip():
            kept[-1] = replace(piece, start=kept[-1].start)
        elif not is_further or _is_joined(between):
            kept.append(piece)
    return kept


def _is_joined(between: str) -> bool:
    """Return True if the words before a further hour add it to the one before: "at 8 and at 20"."""
    *_, last = ["", *re.findall(r"\w+", fold(between))]
    return not last or last in _JOINING


def _without(text: str, found: Sequence[Piece]) -> str:
    parts, at = [], 0
    for one in found:
        parts.append(text[at : one.start])
        at = one.end
    return " ".join(" ".join([*parts, text[at:]]).split())


class _Reader:
    """Reads one text: its pieces by kind, and the moment at which it was said."""

    def __init__(
        self, found: Sequence[Piece], zone: ZoneInfo, now: float, language: str, country: str
    ) -> None:
        self._found = found
        self._by_kind: dict[str, Piece] = {}
        for piece in found:
            self._by_kind.setdefault(piece.kind, piece)
        self._clocks = [piece for piece in found if piece.kind in KINDS["clock"]]
        self._days = sorted(
            {day for piece in found if piece.kind == "weekday" for day in weekdays(piece.said["day"])}
        )
        self._zone = zone
        self._now = now
        self._local = datetime.fromtimestamp(now, zone).replace(tzinfo=None, microsecond=0)
        self._month_first = language == "en" and month_first(country, zone)

    def read(self) -> Reading:
        kinds, parts = self._by_kind.keys(), [piece for piece in self._found if piece.kind == "part"]
        once = [piece.kind for piece in self._found if piece.kind not in KINDS["may_come_again"]]
        one_day = [piece for piece in self._found if piece.kind in KINDS["one_day"]]
        # "an hour later": than what?
        is_vague = not kinds.isdisjoint(("nth_weekday", "habit", "shift"))
        has_parts = len({PARTS[piece.said.get("part", "noche")] for piece in parts}) > 1 and not self._clocks
        is_tonight_tomorrow = "tomorrow" in kinds and any("tonight" in piece.said for piece in parts)
        is_told_twice = len(once) > len(set(once))
        # "for an hour" says how long it goes on
        lasts = "lasting" in (self._said("span") or ()) and (self._clocks or len(kinds) > 1)
        # "the gas tomorrow at 10 and the light on the 5th"
        are_apart = any(
            later.kind == earlier.kind or later.start - earlier.end > _BESIDE
            for earlier, later in pairwise(one_day)
        )
        contradicts = any(pair <= kinds for pair in NEVER_TOGETHER)
        if is_vague or has_parts or is_tonight_tomorrow or is_told_twice or lasts or are_apart or contradicts:
            return Reading(problem="unclear")  # better than the half of it
        reading = self._first()
        repeats = reading.when is not None and reading.when.rule
        if ("span" in kinds and repeats) or (len(self._days) > 1 and not repeats):
            return Reading(problem="unclear")  # how long it goes on; one of several days
        if len(self._clocks) < 2 or reading.problem not in ("", "ambiguous"):
            return reading
        return self._several(reading)

    def _several(self, reading: Reading) -> Reading:
        """Return one rule for all named hours; unclear if no rule can say so."""
        times = {clock_of(piece, self._part()) for piece in self._clocks}
        if len(times) == 1:
            return reading
        minutes = {clock.minute for clock in times}
        in_doubt = any(not clock.is_certain and clock.hour < _SMALLEST_CLEAR_HOUR for clock in times)
        begin, end = self._clocks[0].end, self._clocks[-1].start
        between = (piece.said.keys() for piece in self._found if begin <= piece.start < end)
        has_own_days = any({"day", "days"} & said for said in between)  # "mon at 8, thu at 9"
        when = reading.when
        if when is None or not when.rule.startswith("FREQ") or len(minutes) > 1 or in_doubt or has_own_days:
            return Reading(problem="unclear")
        hours = ",".join(str(hour) for hour in sorted(clock.hour for clock in times))
        start = when.start.replace(hour=0, minute=minutes.pop())
        return self._repeated(f"{when.rule};BYHOUR={hours};BYMINUTE={start.minute}", start)

    def _first(self) -> Reading:
        if iso := self._said("iso"):
            return self._iso(iso)
        if cron := self._said("cron"):
            return self._repeated(CRON + " ".join(cron["cron"].split()), self._local)
        if rrule := self._said("rrule"):
            return self._ruled(rrule["rrule"].upper())
        for kind, read in (
            ("month_day", self._month_day),
            ("yearly", self._yearly),
            ("workdays", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
            ("weekends", "FREQ=WEEKLY;BYDAY=SA,SU"),
            ("every_other", self._every_other),
            ("every_part", "FREQ=DAILY"),
            ("every_weekday", self._every_weekday),
            ("every", self._every),
        ):
            if (said := self._said(kind)) is not None:
                return self._ruled(read) if isinstance(read, str) else read(said)
        return self._once()

    def _said(self, kind: str) -> Mapping[str, str] | None:
        piece = self._by_kind.get(kind)
        return None if piece is None else piece.said

    # Once

    def _iso(self, said: Mapping[str, str]) -> Reading:
        if "time" not in said:
            return self._on(date.fromisoformat(said["date"]))
        moment = datetime.fromisoformat(f"{said['date']}T{said['time']}{said.get('offset', '').upper()}")
        return self._at(moment.timestamp() if moment.tzinfo is not None else instant(moment, self._zone))

    def _once(self) -> Reading:
        if "yesterday" in self._by_kind:
            return Reading(problem="past")
        if (said := self._said("span")) is not None:
            return self._span(said)
        day = self._date()
        return self._next_clock() if day is None else self._on(day)

    def _span(self, said: Mapping[str, str]) -> Reading:
        seconds, days, months = span(said)
        if seconds:
            return self._at(self._now + seconds + days * 86_400)
        day = later_day(self._local.date(), days, months)
        if self._clock() is not None:
            return self._on(day)
        return self._at(instant(datetime.combine(day, self._local.time()), self._zone))

    def _date(self) -> date | None:
        """Return the named day, None if there is none; raise ValueError if two names of it disagree."""
        day = self._named_day()
        dated, numbered = self._said("date"), self._said("day_of_month")
        if day is not None and (
            (self._days and day.weekday() not in self._days)
            or ("today" in self._by_kind and day != self._local.date())
            or (dated is not None and day != self._calendar_day(dated))
            or (numbered is not None and day.day != int(numbered["day"]))
        ):
            raise ValueError("two names of a day disagree")
        return day

    def _named_day(self) -> date | None:
        today = self._local.date()
        if (said := self._said("tomorrow")) is not None:
            return today + timedelta(days=2 if "after" in said else 1)
        if (said := self._said("date")) is not None:
            return self._calendar_day(said)
        if self._days:
            return self._weekday()
        if (said := self._said("day_of_month")) is not None:
            return self._day_of_month(int(said["day"]))
        if "weekend" in self._by_kind:
            is_now = today.weekday() == 6 and self._clock() is not None
            return today if is_now else today + timedelta(days=(5 - today.weekday()) % 7)
        if "next_week" in self._by_kind:
            return today + timedelta(days=7)
        if "next_month" in self._by_kind:
            return later_day(today, 0, 1)
        return today if "today" in self._by_kind else None

    def _calendar_day(self, said: Mapping[str, str]) -> date:
        if "first" in said:
            one, two = int(said["first"]), int(said["second"])
            if self._month_first is None and one != two and max(one, two) <= 12:
                raise ValueError("the phone and the zone write dates in different ways")
            day, month = (two, one) if self._month_first or two > 12 else (one, two)
            year = said.get("year3", "")
            year = f"20{year}" if len(year) == 2 else year
        else:
            day = int(said.get("day") or said["day2"])
            month = MONTHS[said.get("month") or said["month2"]]
            year = said.get("year") or said.get("year2") or ""
        if year:
            return date(int(year), month, day)
        today = self._local.date()
        years = (today.year + ahead for ahead in range(9))
        return _first(today, (date(one, month, day) for one in years if _exists(one, month, day)))

    def _weekday(self) -> date:
        today, day, said = self._local.date(), self._days[0], self._by_kind["weekday"].said
        if number := said.get("number") or (self._said("day_of_month") or {}).get("day"):
            return self._numbered(day, int(number))
        if "next_week" in self._by_kind:
            return today + timedelta(days=7 - today.weekday() + day)
        ahead = (day - today.weekday()) % 7
        clock = self._clock()
        passed = clock is None or (clock.hour, clock.minute) <= (self._local.hour, self._local.minute)
        if ahead == 0 and (passed or "next" in said or "coming" in said):
            ahead = 7
        if ("next" in said or "coming" in said) and 0 < ahead <= NEXT_IS_UNCLEAR:
            raise ValueError("the next one may be this or the one after it")
        return today + timedelta(days=ahead)

    def _numbered(self, weekday: int, number: int) -> date:
        """Return the day of "Thursday 17"; raise ValueError if no such Thursday comes soon."""
        today = self._local.date()
        coming = (today + timedelta(days=ahead) for ahead in range(NUMBERED_WITHIN))
        return _first(today, (one for one in coming if (one.weekday(), one.day) == (weekday, number)))

    def _day_of_month(self, day: int) -> date:
        today = self._local.date()
        months = (later_day(today.replace(day=1), 0, ahead) for ahead in range(13))
        return _first(today, (one.replace(day=day) for one in months if _exists(one.year, one.month, day)))

    def _on(self, day: date) -> Reading:
        """Return the named clock time on a day."""
        clock = self._clock() or Clock(DEFAULT_HOUR)
        is_today = day == self._local.date()
        named = (self._said("clock") or {}).get("hour")
        is_midnight = clock.hour == 0 and named in ("12", "doce", "doze", "twelve")
        if ("midnight" in self._by_kind or is_midnight) and not is_today:
            return Reading(problem="unclear")  # at the beginning of that day, or at its end?
        moment = datetime.combine(day, time(clock.hour, clock.minute))
        if is_today and clock.hour == 0 and self._passed(moment):
            moment += timedelta(days=1)  # "today at midnight" is the end of today
        if is_today and self._clock() is None and self._passed(moment):
            return Reading(problem="unclear")  # "today", and no hour: nobody can tell which
        afternoon, tomorrow = (moment + timedelta(hours=hours) for hours in (12, 24))
        if not clock.is_certain and is_today and self._passed(moment) and not self._passed(afternoon):
            return Reading(problem="ambiguous", choices=(afternoon, tomorrow))
        if not clock.is_certain and clock.hour < _SMALLEST_CLEAR_HOUR and not self._passed(moment):
            return Reading(problem="ambiguous", choices=(moment, afternoon))
        return self._at(instant(moment, self._zone))

    def _next_clock(self) -> Reading:
        """Return the next time for a clock time without a day, unless that is ambiguous."""
        clock = self._clock()
        if clock is None:
            return Reading(problem="missing")
        today = datetime.combine(self._local.date(), time(clock.hour, clock.minute))
        half = timedelta(hours=24 if clock.is_certain else 12)
        coming = [one for n in range(4) if not self._passed(one := today + n * half)]
        first, second = coming[:2]
        is_of_today = {"this", "tonight"} & (self._said("part") or {}).keys()
        if is_of_today and first.date() > today.date() and first.hour >= _SMALLEST_CLEAR_HOUR:
            return Reading(problem="past")  # "this afternoon", said in the evening
        in_doubt = first.hour != clock.hour and clock.hour >= _SMALLEST_CLEAR_HOUR
        if not clock.is_certain and (in_doubt or first.hour < _SMALLEST_CLEAR_HOUR):
            return Reading(problem="ambiguous", choices=(first, second))
        return self._at(instant(first, self._zone))

    def _passed(self, local: datetime) -> bool:
        return instant(local, self._zone) <= self._now

    def _at(self, due: float) -> Reading:
        if due <= self._now:
            return Reading(problem="past")
        start = datetime.fromtimestamp(due, self._zone).replace(tzinfo=None)
        return Reading(When(due, start))

    # Again and again

    def _month_day(self, said: Mapping[str, str]) -> Reading:
        if "last" in said:
            again = any(word in said["last"] for word in ("cada", "every", "each", "todo", "meses"))
            reading = self._ruled("FREQ=MONTHLY;BYMONTHDAY=-1")
            return reading if again or reading.when is None else self._at(reading.when.due)
        day = int(next((number for name, number in said.items() if name.startswith("each_day")), 1))
        if not 1 <= day <= 31:
            return Reading(problem="unclear")
        return self._ruled(f"FREQ=MONTHLY;{month_days(day)}")

    def _yearly(self, said: Mapping[str, str]) -> Reading:
        day = int(next(value for name, value in said.items() if name.startswith("day")))
        month = MONTHS[next(value for name, value in said.items() if name.startswith("month"))]
        if not _exists(2024, month, day):
            return Reading(problem="unclear")
        return self._ruled(f"FREQ=YEARLY;BYMONTH={month};{month_days(day)}")

    def _every_other(self, said: Mapping[str, str]) -> Reading:
        other = said.get("other", "day" if "other_day" in said else "week")
        if (named := weekdays(other)) and other not in UNITS:
            return self._weekly({named[0]}, 2)
        return self._stepped(2, other)

    def _every_weekday(self, said: Mapping[str, str]) -> Reading:
        named = {*weekdays(said.get("days") or said["days2"]), *self._days}
        every = self._said("every") or {}
        is_weeks = UNITS.get(every.get("unit", "")) == "week"
        if every and not is_weeks and "week" not in every:
            return Reading(problem="unclear")
        return self._weekly(named, number(every["count"]) if is_weeks and "count" in every else 1)

    def _weekly(self, named: Collection[int], weeks: int) -> Reading:
        listed, today = ",".join(_DAYS[day] for day in sorted(named)), self._local.date()
        if weeks == 1:
            return self._ruled(f"FREQ=WEEKLY;BYDAY={listed}")
        first = today + timedelta(days=min((day - today.weekday()) % 7 for day in named))
        return self._ruled(f"FREQ=WEEKLY;INTERVAL={weeks};BYDAY={listed}", first)

    def _every(self, said: Mapping[str, str]) -> Reading:
        named = next((unit for unit in ("day", "week", "month", "hour", "year") if unit in said), "")
        return self._stepped(number(said.get("count", "1")), named or UNITS[said["unit"]])

    def _stepped(self, count: int, unit: str) -> Reading:
        if count < 1:
            return Reading(problem="unclear")
        if unit in ("minute", "hour"):
            if self._clock() is not None:
                return Reading(problem="unclear")  # at that hour, or from it on?
            seconds = count * (60 if unit == "minute" else 3600)
            return self._repeated(f"{EVERY}{seconds}", self._local + timedelta(seconds=seconds))
        if self._days and not (unit == "week" or (unit == "day" and count == 1)):
            return Reading(problem="unclear")  # "every 15 days on Fridays" is no rule
        day = self._date() or self._local.date()
        if unit == "week":
            return self._ruled(f"FREQ=WEEKLY;INTERVAL={count};BYDAY={_DAYS[day.weekday()]}", day)
        if unit == "month":
            return self._ruled(f"FREQ=MONTHLY;INTERVAL={count};{month_days(day.day)}", day)
        if unit == "year":
            return self._ruled(f"FREQ=YEARLY;INTERVAL={count};BYMONTH={day.month};{month_days(day.day)}", day)
        return self._ruled(f"FREQ=DAILY;INTERVAL={count}" if count > 1 else "FREQ=DAILY", day)

    def _ruled(self, rule: str, day: date | None = None) -> Reading:
        """Return a calendar rule at the named clock time, beginning with the first one from a day (today)."""
        clock = self._clock() or Clock(DEFAULT_HOUR)
        moment = datetime.combine(day or self._local.date(), time(clock.hour, clock.minute))
        if not clock.is_certain and clock.hour < _SMALLEST_CLEAR_HOUR:
            if (due := next_after(rule, moment, self._zone, self._now)) is not None:
                moment = datetime.fromtimestamp(due, self._zone).replace(tzinfo=None)
            return Reading(problem="ambiguous", choices=(moment, moment + timedelta(hours=12)))
        if self._passed(moment) and "INTERVAL" in rule and "DAILY" in rule:
            moment += timedelta(days=1)
        return self._repeated(rule, moment)

    def _repeated(self, rule: str, start: datetime) -> Reading:
        due = next_after(rule, start, self._zone, self._now)
        return Reading(problem="unclear") if due is None else Reading(When(due, start, rule))

    # Clock times

    def _clock(self) -> Clock | None:
        """Return the named clock time, else that of the named part of the day, else None."""
        part = self._part()
        for kind in ("noon", "midnight", "clock"):
            if (piece := self._by_kind.get(kind)) is not None:
                return clock_of(piece, part)
        return Clock(HOURS[part]) if part else None

    def _part(self) -> str:
        for kind in ("part", "every_part"):
            if (said := self._said(kind)) is not None:
                return "night" if "tonight" in said else PARTS[said["part"]]
        return ""


def month_first(country: str, zone: ZoneInfo) -> bool | None:
    """Return True if 3/12 is in March for people there; None if their phone and their zone disagree."""
    from babel.core import get_global

    home = get_global("zone_territories").get(zone.key, country)
    return None if country and home != country and "US" in (home, country) else "US" in (home, country)


def span(said: Mapping[str, str]) -> tuple[float, int, int]:
    """Return the seconds, days and months of an amount of time."""
    unit = UNITS.get(said["unit"], "second")
    amount = 0.5 if "half" in said else 0.25 if "quarter" in said else float(number(said["count"]))
    if "more_half" in said:
        amount += 0.5
    seconds, days, months = _amount(amount, unit)
    if "more" in said and ("more_unit" in said or unit == "hour"):
        more = _amount(number(said["more"]), UNITS.get(said.get("more_unit", ""), "minute"))
        seconds, days, months = seconds + more[0], days + more[1], months + more[2]
    return seconds + number(said.get("more_seconds", "0")), days, months


def _amount(amount: float, unit: str) -> tuple[float, int, int]:
    if unit in _SECONDS:
        return amount * _SECONDS[unit], 0, 0
    if unit in ("day", "week"):
        days = amount * (7 if unit == "week" else 1)
        return (days - int(days)) * 86_400, int(days), 0
    months = amount * (12 if unit == "year" else 1)
    return 0.0, round(months % 1 * 30), int(months)


def _first(today: date, days: Iterable[date]) -> date:
    """Return the first of these days that is not over. Raise ValueError if there is none."""
    for day in days:
        if day >= today:
            return day
    raise ValueError("there is no such day")


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def later_day(day: date, days: int, months: int) -> date:
    """Return a later day by the calendar: the last of the month if that month is shorter."""
    from dateutil.relativedelta import relativedelta

    later: date = day + relativedelta(days=days, months=months)
    return later


def read_past(text: str, zone: ZoneInfo, now: float) -> tuple[float, float, str] | None:
    """Return the past time that a text names, [since, until) in Unix seconds, and the text without its words.

    None if it names none; the first of several counts. Without a year the last such month or day is meant.
    """
    found = PAST.search(fold(text))
    if found is None:
        return None
    today = datetime.fromtimestamp(now, zone).date()
    try:
        first, after = _past_days({name: said for name, said in found.groupdict().items() if said}, today)
    except ValueError:  # the 30th of February
        return None
    since, until = (datetime.combine(day, time(), zone).timestamp() for day in (first, after))
    return since, until, " ".join(f"{text[: found.start()]} {text[found.end() :]}".split())


def _past_days(said: dict[str, str], today: date) -> tuple[date, date]:
    """Return the first day that is meant, and the day after the last."""
    one = timedelta(days=1)
    if "before" in said or "day" in said:
        day = today - DAYS_AGO.get(said.get("day", ""), 2) * one
        return day, day + one
    if name := said.get("last") or said.get("last2") or said.get("this"):
        return _period(UNITS[name], today, 0 if "this" in said else 1)
    if unit := said.get("unit") or said.get("unit2"):
        count = number(said.get("count") or said["count2"])
        if UNITS[unit] in ("day", "week"):
            day = today - count * (7 if UNITS[unit] == "week" else 1) * one
            around = 3 * one if UNITS[unit] == "week" else 0 * one
            return day - around, day + around + one
        return _period(UNITS[unit], today, count)
    if "of" in said:
        day = date(today.year, MONTHS[said["of"]], int(said["number"]))
        day = day if day <= today else day.replace(year=today.year - 1)
        return day, day + one
    if "month" in said:
        return _period("month", today, (today.month - MONTHS[said["month"]]) % 12)
    weekday = WEEKDAYS[said.get("weekday") or said["weekday2"]]
    day = today - ((today.weekday() - weekday - 1) % 7 + 1) * one
    return day, day + one


def _period(unit: str, today: date, back: int) -> tuple[date, date]:
    """Return the first day of the week, month or year so many before this one, and the day after its last."""
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, monday + timedelta(days=7)
    months = 1 if unit == "month" else 12
    first = later_day(today.replace(month=today.month if unit == "month" else 1, day=1), 0, -back * months)
    return first, later_day(first, 0, months)
