"""The weather now and for seven days, at a place or at the person's own."""

from dataclasses import asdict
from datetime import date, timedelta
from typing import Any, Literal

from app.tools.authoring import Sentences, read_said

from .places import Place, find, folded, options
from .report import Report
from .service import ServiceError, places_named, weather_at

SAID = read_said(__file__)
USUAL = "usual"
# Holds the usual place in the person's words, while the service was away that knows where it is.
ASKED = "asked"
LONGEST = 100
HERE = {"aqui", "aca", "here", "casa", "mi casa", "home", "mi ciudad", "minha cidade", "my city", "local"}
# Countries by https://en.wikipedia.org/wiki/Fahrenheit#Usage
FAHRENHEIT = {"US", "PR", "GU", "VI", "AS", "MP", "BS", "KY", "LR", "PW", "FM", "MH"}
SATURDAY = 5


def get_weather(
    place: str = "",
    when: Literal["now", "today", "tomorrow", "weekend", "week"] = "now",
    day: date | None = None,
    units: Literal["auto", "metric", "imperial"] = "auto",
    context=None,
) -> dict:
    """Tells the weather now or in the next seven days: temperature, rain, wind.

    Args:
        place: City or town in the person's words, with region or country if said, or "lat,lon" of a place
            they sent; empty: their usual one.
        when: What is asked for; week is the next seven days.
        day: One day among them, in place of `when`.
        units: auto follows the person's country.

    Example: will it rain in Bogotá tomorrow
    Ejemplo: qué clima hace en Rosario
    """
    say = Sentences(SAID, context)
    try:
        at, question = _at(place, context, say)
        if at is None:
            return question
        weather = weather_at(at.latitude, at.longitude, context)
    except ServiceError as error:
        return _away(error, say)
    imperial = units == "imperial" or (units == "auto" and _country(context) in FAHRENHEIT)
    report = Report(at, weather, say, imperial=imperial)
    if not report.days:
        return _away(ServiceError("open-meteo.com"), say)
    days = [one for one in ([day] if day else _days(when, report.today)) if one in report.days]
    if not days:
        last = report.name(max(report.days))
        return say.failed("BAD_DAY", last=last if say.language == "en" else last.lower())
    summary = report.now() if when == "now" and not day else report.of(days)
    return {"summary": summary, **report.figures(days)}


def set_usual_place(place: str, context=None) -> dict:
    """Keeps the person's own place for the weather, for when they name none.

    Args:
        place: City or town, in the person's words.

    Example: my city is Boston
    Ejemplo: mi ciudad es Rosario
    """
    say = Sentences(SAID, context)
    try:
        at, question = _at(place, context, say)
    except ServiceError:  # it is found when the weather is asked for
        context.store.put(USUAL, {ASKED: " ".join(place.split())[:LONGEST]})
        return {"summary": say("set", place=place), "place": place}
    if at is None:
        return question
    context.store.put(USUAL, asdict(at))
    return {"summary": say("set", place=at.label), "place": at.label}


def _at(asked: str, context: Any, say: Sentences) -> tuple[Place | None, dict]:
    """Return the place that is meant, or what to ask the person. Raises ServiceError."""
    asked = " ".join(asked.split())[:LONGEST]
    if not asked or folded(asked) in HERE:
        kept = context.store.get(USUAL) if context and context.store else None
        if kept and ASKED in kept:
            return _at(kept[ASKED], context, say)
        return (Place(**kept), {}) if kept else (None, _question(say("ask_place")))
    found = find(asked, _country(context), lambda name: places_named(name, say.language, context))
    if found.country:
        return None, _question(say("ask_city", country=found.country))
    if not found.places:
        return None, say.failed("LOCATION_NOT_FOUND", place=asked)
    if len(found.places) == 1:
        return found.places[0], {}
    labels = options(found.places)
    name = found.places[0].name
    told = [say("option", name=name, label=label) for label in labels]
    listed = say("or").join(filter(None, (", ".join(told[:-1]), told[-1])))
    asking = say("ask_which", name=name, options=listed)
    return None, _question(f"{asking}\n{say('like', name=name, label=labels[0])}", labels)


def _question(text: str, labels: list[str] | None = None) -> dict:
    return {"summary": text, "question": text, "options": labels or []}


def _days(when: str, today: date) -> list[date]:
    if when == "tomorrow":
        return [today + timedelta(days=1)]
    if when == "weekend":
        saturday = today + timedelta(days=max(SATURDAY - today.weekday(), 0))
        return [one for one in (saturday, saturday + timedelta(days=1)) if one.weekday() >= SATURDAY]
    return [today + timedelta(days=number) for number in range(7 if when == "week" else 1)]


def _away(error: ServiceError, say: Sentences) -> dict:
    answer = say.failed("UPSTREAM_RATE_LIMIT" if error.busy else "UPSTREAM_ERROR", host=error.host)
    return {**answer, "meta": {"retry_after": error.retry_after}} if error.retry_after else answer


def _country(context: Any) -> str:
    return context.person.country if context and context.person else ""
