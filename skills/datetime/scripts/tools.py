"""The tools for times, time zones, dates, business days and holidays."""

import asyncio
from calendar import monthrange
from datetime import date as Date
from datetime import datetime
from zoneinfo import ZoneInfo

from app.search.words import content, words

from .clock import moment_of
from .days import month_named, read_date
from .holiday_calendar import (
    LONGEST_SPAN,
    business_day_after,
    business_days,
    calendar_of,
    holidays_between,
    named,
    next_holidays,
)
from .own_zone import told, wanted_zone
from .person import LONGEST, day_text, fields_of, folded, full_day, sentence, than, time_parts, who_asks
from .places import HERE, OWN_ZONE, country_name, find

MOST_BUSINESS_DAYS = 2500


def current_time(place: str = "", context=None) -> dict:
    """Tells the current time and date, here or in any city, country or time zone of the world.

    Args:
        place: City, country or time zone in any language; empty for the person's own time.

    Example: qué hora es en Tokio
    Example: que horas são em Lisboa
    """
    who = who_asks(context)
    if folded(place) in HERE | OWN_ZONE:
        now = datetime.now(who.zone)
        text = who.say("now" if folded(place) in HERE else "own_zone", **told(str(who.zone), now, who))
        return {"summary": sentence(text), **fields_of(now, "")}
    found = find(place, who)
    if isinstance(found, dict):
        return found
    moments = [(spot, datetime.now(spot.zone)) for spot in found.spots]
    if len(moments) == 1:
        now = moments[0][1]
        text = who.say("there", place=found.name, than=than(now, who), **time_parts(now, who))
        return {"summary": text, **fields_of(now, found.name)}
    lines = "\n".join(who.say("line", place=spot.name, **time_parts(now, who)) for spot, now in moments)
    return {
        "summary": who.say("several", place=found.name, lines=lines),
        "place": found.name,
        "zones": [fields_of(now, spot.name) for spot, now in moments],
    }


def convert_time(time: str, from_place: str = "", to_place: str = "", context=None) -> dict:
    """Converts a time of day from one place to another, with the date there.

    Args:
        time: The time to convert, such as 15:30, 3 pm or "3 de la tarde"; or an ISO date and time.
        from_place: Where that time is meant; empty for the person's own place.
        to_place: Where to convert it to; empty for the person's own place.

    Example: si son las 3 pm en Madrid qué hora es aquí
    """
    who = who_asks(context)
    origin, target = find(from_place, who), find(to_place, who)
    for found in (origin, target):
        if isinstance(found, dict):
            return found
    moment = moment_of(time, origin.spots[0].zone)
    if moment is None:
        return who.say.failed("INVALID_TIME", text=time[:LONGEST])
    there = [(spot, moment.astimezone(spot.zone)) for spot in target.spots]
    at = time_parts(moment, who)
    fields = {
        "from": fields_of(moment, origin.spots[0].name),
        "to": [fields_of(then, spot.name) for spot, then in there],
    }
    if len(there) == 1:
        spot, then = there[0]
        parts = time_parts(then, who)
        text = who.say(
            "convert_one",
            time=at["time"],
            place=origin.spots[0].name,
            there_time=parts["time"],
            there=spot.name,
            date=parts["date"],
        )
        return {"summary": text, **fields}
    lines = "\n".join(who.say("line", place=spot.name, **time_parts(then, who)) for spot, then in there)
    text = who.say("convert", time=at["time"], place=origin.spots[0].name, date=at["date"], lines=lines)
    return {"summary": text, **fields}


async def set_time_zone(place: str, context=None) -> dict:
    """Sets the person's own time zone: for the clock, their dates and their reminders from now on.

    Args:
        place: Where they are, in their own words: a city, a country, a zone such as America/Tijuana or UTC-8,
            or "lat,lon"; "my number" to go by the country of their number again.

    Example: vivo en Tijuana
    Example: meu fuso é o de Manaus
    """
    who = who_asks(context)
    wanted = await asyncio.to_thread(wanted_zone, place, who)
    if getattr(context, "person", None) is None:
        return wanted if isinstance(wanted, dict) else who.say.failed("NO_PERSON")
    if isinstance(wanted, dict):
        await context.services.zones.misread(context)
        return wanted
    zone, stay = await context.services.zones.set(wanted, context)
    now = datetime.now(ZoneInfo(zone))
    text = who.say("zone_set" if wanted else "zone_of_number", **told(zone, now, who))
    return {"summary": "\n".join([text, *([who.say("zone_stays")] if stay else [])]), **fields_of(now, "")}


async def _named_by_the_person(args, context):
    """Refuse a zone that the person did not name where text of others is in the conversation."""
    if not context.sources:
        return None
    said = {word for text in context.own_words for word in words(text)}
    if said.isdisjoint(content(words(str(args["place"])))):
        return who_asks(context).say.failed("not_their_words", code="DENIED")
    return None


set_time_zone.guard = _named_by_the_person
set_time_zone.changes_person = True


def days_between(start: str = "", end: str = "", context=None) -> dict:
    """Counts the days from one date to another: how long until a date, or since one.

    Args:
        start: The first date in the person's words ("3 de marzo", "2026-03-03"); empty for today.
        end: The last date, such as "navidad" or "25/12/2026"; empty for today.

    Example: cuántos días faltan para navidad
    Example: quantos dias faltam para o natal
    """
    who = who_asks(context)
    today = datetime.now(who.zone).date()
    first, last, failure = _both(start, end, today, who)
    if failure:
        return failure
    days = (last - first).days
    one = "_one" if abs(days) == 1 else ""
    if first == today == last:
        key = "today"
    elif first == today and days > 0:
        key = "left" + one
    elif days > 0 and last == today:
        key = "passed" + one
    elif first == today:
        key, first, last = "passed" + one, last, first
    elif last == today:
        key, first, last = "left" + one, last, first
    else:
        key = "between" + one
    text = who.say(key, days=abs(days), start=day_text(first, who), end=day_text(last, who))
    return {
        "summary": sentence(text),
        "days": days,
        "weeks": abs(days) // 7,
        "start": first.isoformat(),
        "end": last.isoformat(),
    }


def weekday_of(date: str, context=None) -> dict:
    """Tells the full date and the weekday of a day in words: "next Friday", "in 3 weeks", "24 de diciembre".

    Args:
        date: A date in the person's words, such as "24 de diciembre", "12/10/1990" or "next Friday".

    Example: qué día cae el 24 de diciembre
    Example: que data é a próxima sexta
    """
    from babel.dates import format_date

    who = who_asks(context)
    day = read_date(date, datetime.now(who.zone).date(), who) if date.strip() else None
    if day is None:
        return who.say.failed("INVALID_DATE", text=date[:LONGEST])
    weekday = format_date(day, "EEEE", locale=who.locale)
    text = who.say("weekday", date=day_text(day, who), weekday=weekday)
    return {"summary": sentence(text), "date": day.isoformat(), "weekday": weekday}


def business_days_between(start: str = "", end: str = "", place: str = "", context=None) -> dict:
    """Counts the business days from one date to another: no weekends, no national holidays.

    Args:
        start: The first date in the person's words, which is not counted; empty for today.
        end: The last date, which is counted; empty for today.
        place: The country, or a place in it; empty for the person's own.

    Example: cuántos días hábiles faltan para el 24 de diciembre
    Example: quantos dias úteis há entre 1/12 e 31/12
    """
    who = who_asks(context)
    first, last, failure = _both(start, end, datetime.now(who.zone).date(), who)
    if failure:
        return failure
    calendar, country = _calendar_of(place, who)
    if not country:
        return calendar
    first, last = min(first, last), max(first, last)
    if (last - first).days > LONGEST_SPAN:
        return who.say.failed("TOO_FAR", hint=who.say("hint_INVALID_DATE"))
    count, free = business_days(first, last, calendar)
    text = who.say(
        "business_one" if count == 1 else "business",
        days=count,
        start=day_text(first, who),
        end=day_text(last, who),
        country=country_name(country, who.language),
    )
    listed = [f"• {full_day(day, who)}: {calendar[day]}" for day in free[:10]]
    return {
        "summary": "\n".join([text, *([who.say("without"), *listed] if free else [])]),
        "business_days": count,
        "start": first.isoformat(),
        "end": last.isoformat(),
        "holidays": [day.isoformat() for day in free],
    }


def add_business_days(days: int, start: str = "", place: str = "", context=None) -> dict:
    """Tells the date that is so many business days after another one, or before it.

    Args:
        days: How many business days; negative for before.
        start: The date to count from in the person's words; empty for today.
        place: The country, or a place in it; empty for the person's own.

    Example: qué fecha es en 10 días hábiles
    """
    who = who_asks(context)
    first = read_date(start, datetime.now(who.zone).date(), who)
    if first is None:
        return who.say.failed("INVALID_DATE", text=start[:LONGEST])
    calendar, country = _calendar_of(place, who)
    if not country:
        return calendar
    if not 0 < abs(days) <= MOST_BUSINESS_DAYS:
        return who.say.failed("TOO_FAR", most=MOST_BUSINESS_DAYS)
    try:
        day = business_day_after(first, days, calendar)
    except OverflowError:
        return who.say.failed("INVALID_DATE", text=start[:LONGEST])
    key = "business_before" if days < 0 else "business_after"
    text = who.say(
        key if abs(days) > 1 else f"{key}_one",
        days=abs(days),
        start=day_text(first, who),
        date=full_day(day, who),
        country=country_name(country, who.language),
    )
    return {"summary": sentence(text), "date": day.isoformat(), "start": first.isoformat()}


def holidays(when: str = "", place: str = "", context=None) -> dict:
    """Tells national holidays: the next ones, whether a day is one, those of a month or a year, when one is.

    Args:
        when: Empty for the next ones; a day, a month or a year in the person's words; or a holiday's name.
        place: The country, or a place in it; empty for the person's own.

    Example: cuándo es el próximo feriado
    Example: quais são os feriados de 2027 em Portugal
    """
    who = who_asks(context)
    today = datetime.now(who.zone).date()
    calendar, country = _calendar_of(place, who)
    if not country:
        return calendar
    shown = country_name(country, who.language)
    period = _period(when, today)
    if not when.strip():
        days = next_holidays(today, calendar)
        key = "next_holidays"
    elif period is not None:
        days = holidays_between(*period, calendar)
        key = "holidays" if days else "no_holidays"
    else:
        day = read_date(when, today, who)
        day = named(when, today, calendar) if day is None else day
        if day is None:
            return who.say.failed("INVALID_DATE", text=when[:LONGEST])
        days = [day] if day in calendar else []
        key = "is_holiday" if days else "is_none"
    lines = "\n".join(f"• {full_day(day, who)}: {calendar[day]}" for day in days)
    values = {"country": shown, "lines": lines, "when": when.strip()}
    if period is None and when.strip():
        values |= {"date": full_day(day, who), "name": calendar.get(day, "")}
    return {
        "summary": sentence(who.say(key, **values)),
        "country": country,
        "holidays": [{"date": day.isoformat(), "name": calendar[day]} for day in days],
    }


def _both(start, end, today, who):
    """Return the two dates, and the failure of the first that is none; an empty one where both are."""
    last = read_date(end, today, who)
    first = read_date(start, today, who, past=last is not None and last <= today)
    unread = [text for text, day in ((start, first), (end, last)) if day is None]
    return first, last, who.say.failed("INVALID_DATE", text=unread[0][:LONGEST]) if unread else {}


def _calendar_of(place, who):
    """Return the holidays of a place's country and its code; or a failure and ""."""
    from babel.core import get_global

    found = find(place, who)
    if isinstance(found, dict):
        return found, ""
    country = found.country
    if folded(place) in HERE:  # where they said that they live, rather than where their phone is from
        country = get_global("zone_territories").get(str(who.zone), country)
    if not country:
        return who.say.failed("NO_COUNTRY"), ""
    calendar = calendar_of(country, who.language)
    if calendar is None:
        return who.say.failed("NO_CALENDAR", hint=who.say("hint_NO_COUNTRY"), place=found.name), ""
    return calendar, country


def _period(when, today):
    """Return first and last day of a year or month in words; None for anything else."""
    found = month_named(when, today)
    if found is None:
        return None
    year, month = found
    if not month:
        return Date(year, 1, 1), Date(year, 12, 31)
    return Date(year, month, 1), Date(year, month, monthrange(year, month)[1])
