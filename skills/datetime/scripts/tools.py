"""Time here and elsewhere, days between dates, weekdays."""

import difflib
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

PLACES = Path(__file__).parent.parent / "assets" / "places.txt"
LANGUAGES = ("es", "pt", "en")
LONGEST = 100

DATE = {
    "es": "EEEE d 'de' MMMM 'de' y",
    "pt": "EEEE, d 'de' MMMM 'de' y",
    "en": "EEEE, MMMM d, y",
}
DAY = {"es": "d 'de' MMMM 'de' y", "pt": "d 'de' MMMM 'de' y", "en": "MMMM d, y"}

SAID = {
    "es": {
        "now": "{are} {time} del {date}.",
        "there": "En {place} {are} {time} del {date}{than}.",
        "several": "{place} tiene varias horas:\n{lines}",
        "line": "• {place}: {time}, {date}",
        "more": " ({hours} h más que tu hora)",
        "less": " ({hours} h menos que tu hora)",
        "same": " (la misma hora que la tuya)",
        "convert": "{time} en {place} ({date}) es:\n{lines}",
        "convert_one": "{time} en {place} = {there_time} en {there} ({date}).",
        "left": "Faltan {days} días para el {end}.",
        "left_one": "Falta 1 día para el {end}.",
        "passed": "Pasaron {days} días desde el {start}.",
        "passed_one": "Pasó 1 día desde el {start}.",
        "today": "El {end} es hoy.",
        "between": "Entre el {start} y el {end} hay {days} días.",
        "between_one": "Entre el {start} y el {end} hay 1 día.",
        "weekday": "El {date} es {weekday}.",
        "here": "tu hora",
        "no_place": "No conozco el lugar «{place}».",
        "near": "¿Quisiste decir {names}?",
        "try_place": "Prueba con el nombre de una ciudad, un país o una zona como America/Lima.",
        "no_date": "No entiendo la fecha «{text}».",
        "try_date": "Escríbela como 24 de diciembre, 24/12/2026 o 2026-12-24.",
        "no_time": "No entiendo la hora «{text}».",
        "try_time": "Escríbela como 15:30 o 3 pm.",
        "or": " o ",
    },
    "pt": {
        "now": "{are} {time} de {date}.",
        "there": "Em {place} {are} {time} de {date}{than}.",
        "several": "{place} tem vários horários:\n{lines}",
        "line": "• {place}: {time}, {date}",
        "more": " ({hours} h a mais que no seu horário)",
        "less": " ({hours} h a menos que no seu horário)",
        "same": " (o mesmo horário que o seu)",
        "convert": "{time} em {place} ({date}) é:\n{lines}",
        "convert_one": "{time} em {place} = {there_time} em {there} ({date}).",
        "left": "Faltam {days} dias para {end}.",
        "left_one": "Falta 1 dia para {end}.",
        "passed": "Passaram {days} dias desde {start}.",
        "passed_one": "Passou 1 dia desde {start}.",
        "today": "{end} é hoje.",
        "between": "Entre {start} e {end} há {days} dias.",
        "between_one": "Entre {start} e {end} há 1 dia.",
        "weekday": "{date} é {weekday}.",
        "here": "seu horário",
        "no_place": "Não conheço o lugar “{place}”.",
        "near": "Você quis dizer {names}?",
        "try_place": "Tente o nome de uma cidade, de um país ou um fuso como America/Sao_Paulo.",
        "no_date": "Não entendi a data “{text}”.",
        "try_date": "Escreva como 24 de dezembro, 24/12/2026 ou 2026-12-24.",
        "no_time": "Não entendi a hora “{text}”.",
        "try_time": "Escreva como 15:30 ou 3 da tarde.",
        "or": " ou ",
    },
    "en": {
        "now": "It is {time} on {date}.",
        "there": "In {place} it is {time} on {date}{than}.",
        "several": "{place} has several times:\n{lines}",
        "line": "• {place}: {time}, {date}",
        "more": " ({hours} h ahead of you)",
        "less": " ({hours} h behind you)",
        "same": " (the same time as yours)",
        "convert": "{time} in {place} ({date}) is:\n{lines}",
        "convert_one": "{time} in {place} = {there_time} in {there} ({date}).",
        "left": "{days} days until {end}.",
        "left_one": "1 day until {end}.",
        "passed": "{days} days since {start}.",
        "passed_one": "1 day since {start}.",
        "today": "{end} is today.",
        "between": "There are {days} days between {start} and {end}.",
        "between_one": "There is 1 day between {start} and {end}.",
        "weekday": "{date} is a {weekday}.",
        "here": "your time",
        "no_place": 'I do not know the place "{place}".',
        "near": "Did you mean {names}?",
        "try_place": "Try the name of a city, a country or a zone such as Europe/London.",
        "no_date": 'I do not understand the date "{text}".',
        "try_date": "Write it as December 24, 12/24/2026 or 2026-12-24.",
        "no_time": 'I do not understand the time "{text}".',
        "try_time": "Write it as 15:30 or 3 pm.",
        "or": " or ",
    },
}

HERE = {
    "",
    "aqui",
    "aca",
    "here",
    "local",
    "mi ciudad",
    "minha cidade",
    "my city",
    "mi hora",
    "ahora",
    "now",
    "agora",
}
_ARTICLE = re.compile(
    r"^(?:en|em|in|no|na|nos|nas|at|el|la|los|las|o|a|os|as|the|de|da|do|of|ciudad de|city of) "
)
_TRAILING = re.compile(
    r"(?: (?:ahora|ahorita|agora|now|right now|currently|hoy|hoje|today|por favor|porfa|please"
    r"|en este momento|neste momento|ya mismo))+$"
)
_OFFSET = re.compile(r"(?:utc|gmt)\s*([+-])\s*(\d{1,2})(?::?(\d{2}))?")

FEASTS = {
    (12, 25): "navidad|natal|christmas|dia de navidad|dia de natal|xmas|christmas day",
    (12, 24): "nochebuena|vespera de natal|christmas eve",
    (12, 31): "nochevieja|fin de ano|reveillon|new years eve|new year's eve|ano viejo|vispera de ano nuevo",
    (1, 1): "ano nuevo|ano novo|new year|new years|new years day|new year's day",
    (1, 6): "reyes|dia de reyes|dia de los reyes magos",
    (2, 14): "san valentin|valentines day|valentine's day|valentines",
    (5, 1): "dia del trabajo|dia del trabajador|dia do trabalho|dia do trabalhador",
    (6, 12): "dia dos namorados",
    (10, 31): "halloween|noche de brujas|dia das bruxas",
    (11, 2): "dia de muertos|dia de los muertos|finados|dia de finados",
}
DAYS_AWAY = {
    0: "hoy|hoje|today|ahora|agora|now",
    1: "manana|amanha|tomorrow",
    2: "pasado manana|depois de amanha|day after tomorrow|the day after tomorrow",
    -1: "ayer|ontem|yesterday",
    -2: "anteayer|antier|antes de ayer|anteontem|day before yesterday|the day before yesterday",
}
_LEADING = re.compile(
    r"^(?:el dia|o dia|dia|de|del|el|la|o|a|the|on|no|na|em|en|para|ate|hasta|until|till|fecha) "
)
_NEXT = re.compile(
    r"^(?:proximo|proxima|prox|next|este|esta|this|coming) | (?:que viene|que vem|proximo|proxima)$"
)
_NUMERIC = re.compile(r"(\d{1,2})[/.-](\d{1,2})(?:[/.-](\d{4}|\d{2}))?")

_CLOCK = re.compile(
    r"\b(\d{1,2})(?:\s*[:.h]\s*(\d{2}))?(?!\d)\s*(?:h|hs|hrs|horas|o'clock|en punto|em ponto)?\s*"
)
_AFTERNOON = re.compile(r"p\.?\s?m\b|\btarde\b|\bnoche\b|\bnoite\b|\bafternoon\b|\bevening\b|\bnight\b")
_MORNING = re.compile(r"a\.?\s?m\b|\bmanana\b|\bmanha\b|\bmadrugada\b|\bmorning\b")
_HALF = re.compile(r"\by media\b|\be meia\b|\bhalf past\b")
_QUARTER = re.compile(r"\by cuarto\b|\bquarter past\b")


def current_time(place: str = "", context=None) -> dict:
    """Tells the current time and date, here or in any city, country or time zone of the world.

    Args:
        place: City, country or time zone in any language; empty for the person's own time.

    Example: qué hora es en Tokio
    Example: que horas são em Lisboa
    """
    who = _who(context)
    said = SAID[who.language]
    if _folded(place) in HERE:
        now = datetime.now(who.zone)
        return {"summary": _sentence(said["now"].format(**_parts(now, who))), **_fields(now, "")}
    found = _find(place, who)
    if isinstance(found, dict):
        return found
    moments = [(spot, datetime.now(spot.zone)) for spot in found.spots]
    if len(moments) == 1:
        now = moments[0][1]
        text = said["there"].format(place=found.name, than=_than(now, who), **_parts(now, who))
        return {"summary": text, **_fields(now, found.name)}
    lines = "\n".join(said["line"].format(place=spot.name, **_parts(now, who)) for spot, now in moments)
    return {
        "summary": said["several"].format(place=found.name, lines=lines),
        "place": found.name,
        "zones": [_fields(now, spot.name) for spot, now in moments],
    }


def convert_time(time: str, from_place: str = "", to_place: str = "", context=None) -> dict:
    """Converts a time of day from one place to another, with the date there.

    Args:
        time: The time to convert, such as 15:30, 3 pm or "3 de la tarde"; or an ISO date and time.
        from_place: Where that time is meant; empty for the person's own place.
        to_place: Where to convert it to; empty for the person's own place.

    Example: si son las 3 pm en Madrid qué hora es aquí
    """
    who = _who(context)
    said = SAID[who.language]
    origin, target = _find(from_place, who), _find(to_place, who)
    for found in (origin, target):
        if isinstance(found, dict):
            return found
    moment = _moment(time, origin.spots[0].zone)
    if moment is None:
        return _error("INVALID_TIME", said["no_time"].format(text=time[:LONGEST]), said["try_time"])
    there = [(spot, moment.astimezone(spot.zone)) for spot in target.spots]
    at = _parts(moment, who)
    fields = {
        "from": _fields(moment, origin.spots[0].name),
        "to": [_fields(then, spot.name) for spot, then in there],
    }
    if len(there) == 1:
        spot, then = there[0]
        parts = _parts(then, who)
        text = said["convert_one"].format(
            time=at["time"],
            place=origin.spots[0].name,
            there_time=parts["time"],
            there=spot.name,
            date=parts["date"],
        )
        return {"summary": text, **fields}
    lines = "\n".join(said["line"].format(place=spot.name, **_parts(then, who)) for spot, then in there)
    text = said["convert"].format(time=at["time"], place=origin.spots[0].name, date=at["date"], lines=lines)
    return {"summary": text, **fields}


def days_between(start: str = "", end: str = "", context=None) -> dict:
    """Counts the days from one date to another: how long until a date, or since one.

    Args:
        start: The first date in the person's words ("3 de marzo", "2026-03-03"); empty for today.
        end: The last date, such as "navidad" or "25/12/2026"; empty for today.

    Example: cuántos días faltan para navidad
    Example: quantos dias faltam para o natal
    """
    who = _who(context)
    said = SAID[who.language]
    today = datetime.now(who.zone).date()
    first = _date(start, today, who, past=not end.strip())
    last = _date(end, today, who)
    for text, value in ((start, first), (end, last)):
        if value is None:
            return _error("INVALID_DATE", said["no_date"].format(text=text[:LONGEST]), said["try_date"])
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
    text = said[key].format(days=abs(days), start=_day(first, who), end=_day(last, who))
    return {
        "summary": _sentence(text),
        "days": days,
        "weeks": abs(days) // 7,
        "start": first.isoformat(),
        "end": last.isoformat(),
    }


def weekday_of(date: str, context=None) -> dict:
    """Tells which day of the week a date falls on.

    Args:
        date: A date in the person's words, such as "24 de diciembre", "12/10/1990" or "tomorrow".

    Example: qué día cae el 24 de diciembre
    """
    from babel.dates import format_date

    who = _who(context)
    said = SAID[who.language]
    day = _date(date, datetime.now(who.zone).date(), who) if date.strip() else None
    if day is None:
        return _error("INVALID_DATE", said["no_date"].format(text=date[:LONGEST]), said["try_date"])
    weekday = format_date(day, "EEEE", locale=who.locale)
    text = said["weekday"].format(date=_day(day, who), weekday=weekday)
    return {"summary": _sentence(text), "date": day.isoformat(), "weekday": weekday}


@dataclass(frozen=True)
class _Who:
    language: str
    locale: str
    country: str
    zone: tzinfo


@dataclass(frozen=True)
class _Spot:
    name: str
    zone: tzinfo


@dataclass(frozen=True)
class _Found:
    name: str
    spots: tuple


def _who(context):
    """Language, locale, country and zone of the person; plain English and UTC where there is none."""
    person = getattr(context, "person", None)
    language = getattr(person, "language", "") or "en"
    language = language if language in LANGUAGES else "en"
    country = (getattr(person, "country", "") or "").upper()
    return _Who(language, _locale(language, country), country, _zone(getattr(person, "timezone", "")))


def _zone(name):
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")


@lru_cache(maxsize=512)
def _locale(language, country):
    from babel import Locale, UnknownLocaleError

    for name in (f"{language}_{country}" if country else "", language):
        try:
            return str(Locale.parse(name)) if name else str(Locale.parse({"pt": "pt_BR"}[language]))
        except (KeyError, ValueError, UnknownLocaleError):
            continue
    return "en"


def _parts(moment, who):
    from babel.dates import format_date, format_time

    time = format_time(moment, "short", locale=who.locale)
    time = time.replace("\u202f", " ").replace("\u00a0", " ")  # phones show these as they like
    one = moment.hour == 1 or (moment.hour == 13 and time.startswith("1:"))
    are = {"es": ("son las", "es la"), "pt": ("são", "é"), "en": ("", "")}[who.language][one]
    return {"time": time, "date": format_date(moment, DATE[who.language], locale=who.language), "are": are}


def _sentence(text):
    return text[:1].upper() + text[1:]


def _day(day, who):
    from babel.dates import format_date

    return format_date(day, DAY[who.language], locale=who.language)


def _fields(moment, place):
    minutes = round(moment.utcoffset().total_seconds() / 60)
    return {
        "place": place,
        "time": moment.strftime("%H:%M"),
        "date": moment.date().isoformat(),
        "iso": moment.isoformat(timespec="seconds"),
        "timezone": str(moment.tzinfo),
        "utc_offset": f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}",
    }


def _than(moment, who):
    seconds = (moment.utcoffset() - moment.astimezone(who.zone).utcoffset()).total_seconds()
    said = SAID[who.language]
    if not seconds:
        return said["same"]
    hours = f"{abs(seconds) / 3600:.2f}".rstrip("0").rstrip(".")
    hours = hours if who.language == "en" else hours.replace(".", ",")
    return said["more" if seconds > 0 else "less"].format(hours=hours)


def _error(code, message, hint):
    return {"ok": False, "error": {"code": code, "message": message, "hint": hint}}


def _folded(text):
    """Lower case without accents, and single spaces for everything that parts words."""
    plain = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    return " ".join(re.sub(r"[_./,;?!¿¡()\"«»]+", " ", plain).split())


def _find(place, who):
    """The spots of a place, or the error that names near ones."""
    said = SAID[who.language]
    key = _TRAILING.sub("", _folded(place[:LONGEST]))
    if key in HERE:
        return _Found(said["here"], (_Spot(said["here"], who.zone),))
    offset = _OFFSET.fullmatch(key.replace(" ", ""))
    if offset or key in {"utc", "gmt", "z"}:
        zone = _fixed(*offset.groups()) if offset else UTC
        if zone is not None:
            return _Found(str(zone), (_Spot(str(zone), zone),))
    for candidate, country in _readings(key):
        entries = _index().get(candidate, ())
        if country and entries:
            entries = [entry for entry in entries if entry[2] == country] or entries
        if entries:
            return _chosen(entries, who)
    near = difflib.get_close_matches(key, _index(), n=3, cutoff=0.75)
    names = list(dict.fromkeys(_chosen(_index()[one], who).name for one in near))
    hint = said["near"].format(names=said["or"].join(names)) if names else said["try_place"]
    return _error("LOCATION_NOT_FOUND", said["no_place"].format(place=place[:LONGEST].strip()), hint)


def _fixed(sign, hours, minutes):
    away = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if away > timedelta(hours=14):
        return None
    return timezone(-away if sign == "-" else away)


def _readings(key):
    """Ways to read the words of a place: whole, without articles, city and country ("cordoba argentina")."""
    yield key, ""
    bare = key
    while _ARTICLE.match(bare):
        bare = _ARTICLE.sub("", bare, count=1)
        yield bare, ""
    words = bare.split()
    for cut in range(len(words) - 1, 0, -1):
        country = next((code for kind, code, _ in _index().get(" ".join(words[cut:]), ()) if kind == "="), "")
        if country:
            yield " ".join(words[:cut]), country


def _chosen(entries, who):
    """Of several places of one name, that in the person's own country, else the first."""
    kind, value, country = next((entry for entry in entries if entry[2] == who.country), entries[0])
    if kind != "=":
        name = kind or _city(value, who.language)
        return _Found(name, (_Spot(name, ZoneInfo(value)),))
    spots = {}
    for zone in _zones_of(value):
        offset = datetime.now(ZoneInfo(zone)).utcoffset()
        spots.setdefault(offset, _Spot(_city(zone, who.language), ZoneInfo(zone)))
    return _Found(_country(country, who.language), tuple(spots.values()))


def _zones_of(code):
    from babel.core import get_global

    return _table()[1].get(code) or get_global("territory_zones")[code]


def _city(zone, language):
    from babel.dates import get_timezone_location

    return get_timezone_location(zone, locale=language, return_city=True).rsplit("/")[-1]


def _country(code, language):
    from babel import Locale

    return Locale.parse(language).territories.get(code, code)


@lru_cache(maxsize=1)
def _table():
    """The file of places: names → (shown, zone), country → its zones in order, country → other names."""
    cities, zones, countries = [], {}, []
    for line in PLACES.read_text("utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        left, _, right = line.partition(": ")
        code, equal, names = left.partition(" = ")
        if equal:
            zones[code] = right.split()
            countries += [(name.strip(), code) for name in names.split(",")]
            continue
        for group in right.split(","):
            spellings = [name.strip() for name in group.split("/")]
            cities += [(spelling, spellings[0], left) for spelling in spellings]
    return cities, zones, countries


@lru_cache(maxsize=1)
def _index():
    """Folded name → entries (shown name, zone, country), or ("=", country, country) for a country."""
    from babel import Locale
    from babel.core import get_global

    home = get_global("zone_territories")
    cities, _, countries = _table()
    index = {}

    def add(name, entry):
        entries = index.setdefault(_folded(name), [])
        if entry not in entries:
            entries.append(entry)

    for spelling, shown, zone in cities:
        add(spelling, (shown, zone, home.get(zone, "")))
    for zone in sorted(available_timezones() & home.keys()):
        add(zone, ("", zone, home[zone]))
        for language in LANGUAGES:
            add(_city(zone, language), ("", zone, home[zone]))
    for zone in sorted(available_timezones() - home.keys()):
        add(zone, ("", zone, ""))
    for name, code in countries:
        add(name, ("=", code, code))
    for language in LANGUAGES:
        territories = Locale.parse(language).territories
        for code in get_global("territory_zones"):
            if code in territories and len(code) == 2:
                add(territories[code], ("=", code, code))
    return index


def _moment(text, zone):
    """A time in words as a moment of today (or of its own date, in ISO form) in that zone, or None."""
    text = text.strip()[:LONGEST]
    try:
        moment = datetime.fromisoformat(text) if re.match(r"\d{4}-\d{2}-\d{2}[T ]\d", text) else None
    except ValueError:
        return None
    if moment is not None:
        return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)
    clock = _clock(text)
    if clock is None:
        return None
    hour, minute = clock
    return datetime.now(zone).replace(hour=hour, minute=minute, second=0, microsecond=0)


def _clock(text):
    plain = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    if re.search(r"\b(?:mediodia|medio dia|meio[ -]dia|noon|midday)\b", plain):
        return 12, 0
    if re.search(r"\b(?:medianoche|media noche|meia[ -]noite|midnight)\b", plain):
        return 0, 0
    found = _CLOCK.search(plain)
    if found is None:
        return None
    hour, minute = int(found.group(1)), int(found.group(2) or 0)
    if not found.group(2):
        minute = 30 if _HALF.search(plain) else 15 if _QUARTER.search(plain) else 0
    if hour < 12 and _AFTERNOON.search(plain):
        hour += 12
    elif hour == 12 and _MORNING.search(plain):
        hour = 0
    return (hour, minute) if hour < 24 and minute < 60 else None


def _date(text, today, who, past=False):
    """A date in words; empty is today. Without a year it is the next one, or the last where `past`."""
    key = _folded(text.replace("/", "-")).replace("-", "/") if _NUMERIC.search(text) else _folded(text)
    if not key or len(text) > LONGEST:
        return None if key else today
    iso = re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip())
    if iso:
        return _iso(text.strip())
    while True:
        for days, words in DAYS_AWAY.items():
            if key in words.split("|"):
                return today + timedelta(days=days)
        for (month, day), words in FEASTS.items():
            if key in words.split("|"):
                return _of_year(day, month, today, past)
        if not _LEADING.match(key):
            break
        key = _LEADING.sub("", key, count=1)
    weekday = _weekdays().get(_NEXT.sub("", key))
    if weekday is not None:
        return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)
    numeric = _NUMERIC.fullmatch(key)
    if numeric:
        return _from_numbers(*numeric.groups(), today, who, past)
    return _with_dateparser(key, today, who, past)


def _iso(text):
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _of_year(day, month, today, past):
    """The nearest such day of the wanted side; a 29 February waits for its year."""
    years = range(today.year, today.year - 9, -1) if past else range(today.year, today.year + 9)
    for year in years:
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if (found <= today) if past else (found >= today):
            return found
    return None


@lru_cache(maxsize=1)
def _weekdays():
    from babel import Locale

    names = {}
    for language in LANGUAGES:
        for number, name in Locale.parse(language).days["format"]["wide"].items():
            names[_folded(name)] = number
            names[_folded(name).removesuffix("-feira")] = number
    return names


def _from_numbers(first, second, year, today, who, past):
    month_first = who.country == "US" or (who.language == "en" and not who.country)
    day, month = (int(second), int(first)) if month_first else (int(first), int(second))
    if month > 12 >= day:
        day, month = month, day
    if not year:
        return _of_year(day, month, today, past)
    number = int(year)
    if len(year) == 2:
        number += 2000 if number < 70 else 1900
    try:
        return date(number, month, day)
    except ValueError:
        return None


def _with_dateparser(key, today, who, past):
    import dateparser

    others = [language for language in LANGUAGES if language != who.language]
    found = dateparser.parse(
        key,
        languages=[who.language, *others],
        settings={
            "PREFER_DATES_FROM": "past" if past else "future",
            "DATE_ORDER": "MDY" if who.country == "US" else "DMY",
            "RELATIVE_BASE": datetime(today.year, today.month, today.day),
            "REQUIRE_PARTS": ["day", "month"],
            "RETURN_AS_TIMEZONE_AWARE": False,
        },
    )
    return None if found is None else found.date()
