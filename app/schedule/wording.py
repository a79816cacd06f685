"""Reminders in words: their times, and the message when their time has come."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_skeleton, get_day_names, get_timezone_location
from babel.lists import format_list

from app.calendar.rules import CRON, EVERY, UNTIL, shown_zone
from app.i18n import say
from app.store.schedules import LastRun, Schedule
from app.text import escape_text

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WORKDAYS = "MO,TU,WE,TH,FR"
_LEAP_YEAR = 2024
RESULT_CHARACTERS = 80


def reminder_text(schedule: Schedule, language: str, now: float, *, late: bool, own_zone: str = "") -> str:
    """Return the message of a due reminder; a late one says what it was for.

    `own_zone` is the zone that the person said is theirs.
    """
    text = shown_text(schedule, language)
    if not late:
        return say(language, "⏰ Reminder: {text}", text=text)
    when = moment_text(schedule.due_at, schedule.zone, now, language, own_zone)
    return say(language, "⏰ Late, this was for {when}: {text}", when=when, text=text)


def quoted_text(schedule: Schedule, language: str) -> str:
    """Return a reminder's text; text made from others' words is quoted and says so."""
    if not schedule.taint:
        return schedule.text
    return say(language, "“{text}” (others' words may be in this)", text=escape_text(schedule.text))


def shown_text(schedule: Schedule, language: str) -> str:
    """Return a reminder's text with what it is, if it is more than a reminder or is paused."""
    text = quoted_text(schedule, language)
    if schedule.kind == "task":
        text = say(language, "(task) {text}", text=text)
    elif schedule.kind == "watch":
        text = say(language, "(watch) {text}", text=text)
    return say(language, "(paused) {text}", text=text) if schedule.paused_at is not None else text


def when_text(schedule: Schedule, now: float, language: str, own_zone: str) -> str:
    """Return a reminder's next time and, if it repeats, its rule."""
    moment = moment_text(schedule.next_at, schedule.zone, now, language, own_zone)
    if not schedule.rule:
        return moment
    rule = rule_text(schedule.rule, datetime.fromisoformat(schedule.start), language)
    return say(language, "{rule} (next: {moment})", rule=rule, moment=moment)


def run_text(run: LastRun, now: float, language: str, zone: str) -> str:
    """Return a line about the last run of a task or a watch: when, what came of it, and its tokens."""
    said = " ".join(run.reply.split())[:RESULT_CHARACTERS]
    if run.outside:
        said = say(language, "“{text}” (others' words may be in this)", text=escape_text(said))
    results = {
        "answered": said,
        "silent": say(language, "nothing to tell"),
        "parked": say(language, "it waits for your answer"),
        "stopped": say(language, "stopped"),
        "business": say(language, "stopped"),
        "failed": say(language, "it failed"),
        "refused": say(language, "the day's allowance was used up"),
    }
    result = results.get(run.outcome, say(language, "it runs"))
    when = moment_text(run.at, zone, now, language)
    return say(
        language, "last: {when}, {tokens} tokens: {result}", when=when, tokens=run.tokens, result=result
    )


def moment_text(due: float, zone: str, now: float, language: str, own_zone: str = "") -> str:
    """Return a moment: "tomorrow 09:00"; its date and the city of its zone if the person lives in another."""
    local, today = (datetime.fromtimestamp(at, ZoneInfo(zone)) for at in (due, now))
    if own_zone in ("", zone):
        return local_text(local, today.date(), language)
    return f"{_dated(local, today.date(), language)} ({city_of(zone, language)})"


def local_text(local: datetime, today: date, language: str) -> str:
    """Return a time of the person's clock such as "Mon 23 Nov 09:00"."""
    clock = f"{local:%H:%M}"
    if local.date() == today:
        return say(language, "today {time}", time=clock)
    if local.date() == today + timedelta(days=1):
        return say(language, "tomorrow {time}", time=clock)
    return _dated(local, today, language)


def _dated(local: datetime, today: date, language: str) -> str:
    pattern = "EEE d MMM" if local.year == today.year else "EEE d MMM y"
    return f"{format_date(local, pattern, locale=language)} {local:%H:%M}"


def city_of(zone: str, language: str) -> str:
    """Return the city after which a zone is called, in the person's language; of others their name."""
    if "/" not in zone or zone.startswith("Etc/"):
        return shown_zone(zone)
    return str(get_timezone_location(zone, locale=language, return_city=True)).rsplit("/")[-1]


def rule_text(rule: str, start: datetime, language: str) -> str:
    """Return a rule in words if there are short ones, else as it was written."""
    rule, _, end = rule.partition(UNTIL)
    if end:
        last = datetime.fromisoformat(end)  # written so that it is read alike wherever its language is spoken
        day = f"{last.day} {last:%b %Y}" if language == "en" else f"{last:%d/%m/%Y}"
        return say(language, "{rule} until {date}", rule=rule_text(rule, start, language), date=day)
    if rule.startswith(EVERY):
        return _every_text(float(rule.removeprefix(EVERY)), language)
    if rule.startswith(CRON):
        return rule.removeprefix(CRON)
    parts = dict(part.split("=", 1) for part in rule.split(";"))
    clocks = f"{start:%H:%M}"
    if parts.get("BYHOUR", "").replace(",", "").isdigit() and parts.get("BYMINUTE", "").isdigit():
        hours, minute = parts.pop("BYHOUR").split(","), int(parts.pop("BYMINUTE"))
        clocks = ", ".join(f"{int(hour):02}:{minute:02}" for hour in hours)
    return f"{_calendar_text(rule, parts, start, language)} {clocks}"


def _every_text(seconds: float, language: str) -> str:
    if seconds == 3600:
        return say(language, "every hour")
    if seconds % 3600:
        return say(language, "every {n} minutes", n=round(seconds / 60))
    return say(language, "every {n} hours", n=round(seconds / 3600))


def _calendar_text(rule: str, parts: dict[str, str], start: datetime, language: str) -> str:
    n, days = int(parts.get("INTERVAL", "1")), parts.get("BYDAY", "")
    day_of_month = parts.get("BYMONTHDAY", "").split(",")[-1 if "BYSETPOS" in parts else 0 :]
    match (parts["FREQ"], *sorted(parts.keys() - {"FREQ", "INTERVAL", "BYSETPOS"})):
        case ("DAILY",):
            return say(language, "every day") if n == 1 else say(language, "every {n} days", n=n)
        case ("WEEKLY", "BYDAY") if days == _WORKDAYS and n == 1:
            return say(language, "Monday to Friday")
        case ("WEEKLY", "BYDAY") if set(days.split(",")) <= set(_DAYS):
            names = get_day_names("wide", locale=language)
            named = str(format_list([names[_DAYS.index(day)] for day in days.split(",")], locale=language))
            if n == 1:
                return say(language, "every {days}", days=named)
            return say(language, "every {n} weeks: {days}", n=n, days=named)
        case ("MONTHLY", "BYMONTHDAY") if day_of_month == ["-1"] and n == 1:
            return say(language, "on the last day of each month")
        case ("MONTHLY", "BYMONTHDAY") if len(day_of_month) == 1 and day_of_month[0].isdigit():
            day = day_of_month[0]
            if n == 1:
                return say(language, "each month on day {day}", day=day)
            return say(language, "every {n} months on day {day}", n=n, day=day)
        case ("YEARLY", "BYMONTH", "BYMONTHDAY") if (
            len(day_of_month) == 1 and (parts["BYMONTH"] + day_of_month[0]).isdigit()
        ):
            one = date(_LEAP_YEAR, int(parts["BYMONTH"]), int(day_of_month[0]))
            day = str(format_skeleton("MMMMd", one, locale=language))
            if n == 1:
                return say(language, "each year on {day}", day=day)
            return say(language, "every {n} years on {day}", n=n, day=day)
        case _:
            return rule
