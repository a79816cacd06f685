"""Places by name, in three languages, with their zones and countries."""

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from app.tools.authoring import read_words

from .person import LANGUAGES, LONGEST, folded

PLACES = Path(__file__).parent.parent / "assets" / "places.txt"

HERE = {"", *read_words(__file__)["here"].split("|")}
OWN_ZONE = {"mi zona horaria", "meu fuso", "my time zone"}
# What names no place to somebody who is asked for theirs.
NO_PLACES = HERE | {"alli", "ahi", "alla", "la", "there"}
_ARTICLE = re.compile(
    r"^(?:en|em|in|no|na|nos|nas|at|el|la|los|las|o|a|os|as|the|de|da|do|of|ciudad de|city of) "
)
_TRAILING = re.compile(
    r"(?: (?:ahora|ahorita|agora|now|right now|currently|hoy|hoje|today|por favor|porfa|please"
    r"|en este momento|neste momento|ya mismo|ayer|ontem|yesterday|recently|hace poco|ha pouco tempo"
    r"|last (?:week|month|year)|(?:la |na )?semana pas(?:ad|sad)a|(?:el |no )?(?:mes|ano) pas(?:ad|sad)o))+$"
)
_OFFSET = re.compile(r"(?:utc|gmt)\s*([+-])\s*(\d{1,2})(?::?(\d{2}))?")


@dataclass(frozen=True)
class Spot:
    name: str
    zone: tzinfo


@dataclass(frozen=True)
class Found:
    """A place: its name, a spot for each of its zones, and its country's code, "" where it has none."""

    name: str
    spots: tuple
    country: str = ""


def find(place, who):
    """Return the spots of a place, or the error that names near ones."""
    key = key_of(place)
    if key in HERE:
        return Found(who.say("here"), (Spot(who.say("here"), who.zone),), who.country)
    zone = _fixed(*offset) if (offset := offset_of(place)) is not None else None
    if zone is not None:
        return Found(str(zone), (Spot(str(zone), zone),))
    entries = entries_of(key)
    if entries:
        return _chosen(entries, who)
    names = near_names(key, who)
    hint = who.say("near", names=who.say("or").join(names)) if names else ""
    return who.say.failed("LOCATION_NOT_FOUND", hint=hint, place=place[:LONGEST].strip())


def key_of(place):
    """Return the words of a place as they are looked up."""
    return _TRAILING.sub("", folded(place[:LONGEST]))


def offset_of(place):
    """Return sign, hours and minutes of "UTC-8" or "GMT -3", None for anything else."""
    key = key_of(place).replace(" ", "").replace("\u2212", "-")
    offset = _OFFSET.fullmatch(key)
    if offset is None:
        return ("+", 0, 0) if key in {"utc", "gmt", "z"} else None
    return offset[1], int(offset[2]), int(offset[3] or 0)


def entries_of(key):
    """Return the entries of all places of that name; none where it is unknown."""
    for candidate, country in _readings(key):
        entries = _index().get(candidate, ())
        if country and entries:
            entries = [entry for entry in entries if entry[2] == country]
        if entries:
            return entries
    return ()


def near_names(key, who):
    """Return the names of known places that are spelled nearly so."""
    near = difflib.get_close_matches(key, _index(), n=3, cutoff=0.75)
    return list(dict.fromkeys(_chosen(_index()[one], who).name for one in near))


def _fixed(sign, hours, minutes):
    away = timedelta(hours=hours, minutes=minutes)
    if away > timedelta(hours=14):
        return None
    return timezone(-away if sign == "-" else away) if away else UTC


def _readings(key):
    """Return ways to read a place: whole, without articles, city and country ("cordoba argentina")."""
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
    """Choose among places of one name: that in the person's own country, else the first."""
    kind, value, country = next((entry for entry in entries if entry[2] == who.country), entries[0])
    country = country or next((entry[2] for entry in entries if entry[2]), "")  # "Portugal" is a zone too
    if kind != "=":
        shown = [entry[0] for entry in entries if entry[1] == value]  # "Múnich", "Munich"
        name = shown[-1 if who.language == "en" else 0] or city_name(value, who.language)
        return Found(name, (Spot(name, ZoneInfo(value)),), country)
    spots = {}
    for zone in zones_of(value):
        offset = datetime.now(ZoneInfo(zone)).utcoffset()
        spots.setdefault(offset, Spot(city_name(zone, who.language), ZoneInfo(zone)))
    return Found(country_name(country, who.language), tuple(spots.values()), country)


def zones_of(code):
    from babel.core import get_global

    return _table()[1].get(code) or get_global("territory_zones")[code]


def city_name(zone, language):
    from babel.dates import get_timezone_location

    try:
        return get_timezone_location(zone, locale=language, return_city=True).rsplit("/")[-1]
    except LookupError:  # what babel does not know of: "localtime", a zone of newer tables
        return zone.rsplit("/")[-1].replace("_", " ")


def country_name(code, language):
    from babel import Locale

    return Locale.parse(language).territories.get(code, code)


@lru_cache(maxsize=1)
def _table():
    """Read the file of places: names → zone, country → its zones in order, country → names."""
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
            cities += [(name.strip(), left) for name in group.split("/")]
    return cities, zones, countries


@lru_cache(maxsize=1)
def _index():
    """Return folded name → entries (shown name, zone, country), or ("=", country, country) for a country."""
    from babel import Locale
    from babel.core import get_global

    home = get_global("zone_territories")
    cities, _, countries = _table()
    index = {}

    def add(name, entry):
        entries = index.setdefault(folded(name), [])
        if entry not in entries:
            entries.append(entry)

    for name, zone in cities:
        add(name, (name, zone, home.get(zone, "")))
    for zone in sorted(available_timezones() & home.keys()):
        add(zone, ("", zone, home[zone]))
        for language in LANGUAGES:
            add(city_name(zone, language), ("", zone, home[zone]))
    for zone in sorted(available_timezones() - home.keys() - {"localtime", "Factory"}):
        add(zone, ("", zone, ""))
    for name, code in countries:
        add(name, ("=", code, code))
    for language in LANGUAGES:
        territories = Locale.parse(language).territories
        for code in get_global("territory_zones"):
            if code in territories and len(code) == 2:
                add(territories[code], ("=", code, code))
    return index
