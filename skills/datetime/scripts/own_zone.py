"""Which time zone a person means who says where they are."""

import math
import re
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

from app.calendar.rules import shown_zone

from .person import LONGEST, sentence, time_parts
from .places import NO_PLACES, city_name, country_name, entries_of, key_of, near_names, offset_of, zones_of

MOST_OFFERED = 8
_COORDINATES = re.compile(r"\(?(-?\d{1,2}(?:\.\d+)?)\s*,\s*(-?\d{1,3}(?:\.\d+)?)\)?")  # of a location sent
_PLACE = re.compile(r"([+-]\d{4}|[+-]\d{6})([+-]\d{5}|[+-]\d{7})")
_OF_NUMBER = {"number", "phone", "numero", "telefono", "telefone", "celular"}


def wanted_zone(place, who):
    """Return an IANA name, "" for the zone of their number; else the question or failure to tell."""
    key = key_of(place)
    if not _OF_NUMBER.isdisjoint(key.split()):
        return ""
    if key in NO_PLACES:
        return _asked(who.say("ask_zone"), [])
    if at := _COORDINATES.fullmatch(place.strip()):
        return _nearest_zone(float(at[1]), float(at[2]))
    if (offset := offset_of(place)) is not None:
        return _of_offset(*offset) or _asked(who.say("ask_half_offset", place=place[:LONGEST].strip()), [])
    found = _meant(place, key, who)
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        return _which(place, dict(list(found.items())[:MOST_OFFERED]), who)
    names = near_names(key, who)
    hint = who.say("near", names=who.say("or").join(names)) if names else who.say("hint_zone")
    return who.say.failed("LOCATION_NOT_FOUND", hint=hint, place=place[:LONGEST].strip())


def _nearest_zone(latitude, longitude):
    """Return the zone whose main city is nearest to a location, by the table of the tz database."""
    at = (math.radians(latitude), math.radians(longitude))
    return min(_main_cities(), key=lambda city: _distance(at, city[1]))[0]


@cache
def _main_cities():
    """Return each zone with its main city's latitude and longitude in radians."""
    table = resources.files("tzdata").joinpath("zoneinfo", "zone1970.tab").read_text()
    rows = [line.split("\t") for line in table.splitlines() if not line.startswith("#")]
    return [(row[2], tuple(map(_radians, _PLACE.fullmatch(row[1]).groups()))) for row in rows]


def _radians(written):
    """Read degrees and minutes, perhaps with seconds: "+1926" or "-0990900"."""
    digits = written[1:]
    whole = 3 if len(digits) in (5, 7) else 2
    parts = [int(digits[:whole]), int(digits[whole : whole + 2]), int(digits[whole + 2 :] or 0)]
    degrees = parts[0] + parts[1] / 60 + parts[2] / 3600
    return math.radians(-degrees if written[0] == "-" else degrees)


def _distance(one, other):
    """Return the angle between two places on the globe (the haversine formula)."""
    across = math.sin((other[0] - one[0]) / 2) ** 2
    around = math.cos(one[0]) * math.cos(other[0]) * math.sin((other[1] - one[1]) / 2) ** 2
    return 2 * math.asin(math.sqrt(min(1.0, across + around)))


def told(zone, now, who):
    """Return the city that a zone is called after and the time there, for the receipt."""
    name = city_name(zone, who.language) if "/" in zone and not zone.startswith("Etc/") else shown_zone(zone)
    return {"zone": name, **time_parts(now, who)}


def _of_offset(sign, hours, minutes):
    """Return the zone of a whole-hour offset, whose name has the opposite sign."""
    if minutes or hours > (14 if sign == "+" else 12):
        return ""
    return f"Etc/GMT{'-' if sign == '+' else '+'}{hours}" if hours else "UTC"


def _meant(place, key, who):
    """Name → zone of all that the words may mean, one for each clock.

    What stands behind a comma has to agree, as a country or as a region known to have that clock.
    """
    parts = [one for part in place[:LONGEST].split(",") if (one := key_of(part)) not in NO_PLACES]
    entries = list(entries_of(key))
    for at, name in enumerate(parts if not entries else ()):
        around = [entries_of(part) for part in (*parts[:at], *parts[at + 1 :])]
        entries += [
            one
            for one in entries_of(name)
            if one[0] != "=" and all(any(_agree(one, other) for other in within) for within in around)
        ]
    return _clocks(entries, who)


def _agree(one, other):
    return one[2] == other[2] and (other[0] == "=" or _clock(one[1]) == _clock(other[1]))


def _clocks(entries, who):
    """Return name → zone for each clock; the person's own country comes alone."""
    entries = [entry for entry in entries if entry[2]] or entries
    entries = [entry for entry in entries if entry[2] == who.country] or entries
    several = len({country for _, _, country in entries}) > 1
    found, clocks = {}, set()
    for kind, value, country in entries:
        for zone in zones_of(value) if kind == "=" else [value]:
            if _clock(zone) in clocks:
                continue
            clocks.add(_clock(zone))
            name = city_name(zone, who.language) if kind in ("", "=") else kind
            found[f"{name} ({country_name(country, who.language)})" if several else name] = zone
    return found


def _clock(zone):
    """Return the offsets of a zone in January and July: a country may have several names for one clock."""
    year = datetime.now(UTC).year
    return tuple(datetime(year, month, 1, tzinfo=ZoneInfo(zone)).utcoffset() for month in (1, 7))


def _which(place, found, who):
    lines = "\n".join(
        who.say("line", place=name, **time_parts(datetime.now(ZoneInfo(zone)), who))
        for name, zone in found.items()
    )
    text = who.say("ask_which_zone", place=sentence(place[:LONGEST].strip()), lines=lines)
    return _asked(text, list(found))


def _asked(text, options):
    return {"summary": text, "question": text, "options": options}
