"""Which time zone a person means who says where they are."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from app.calendar.rules import shown_zone

from .person import LONGEST, sentence, time_parts
from .places import NO_PLACES, city_name, country_name, entries_of, key_of, near_names, offset_of, zones_of

MOST_OFFERED = 8
_OF_NUMBER = {"number", "phone", "numero", "telefono", "telefone", "celular"}


def wanted_zone(place, who):
    """Return an IANA name, "" for the zone of their number; else the question or failure to tell."""
    key = key_of(place)
    if not _OF_NUMBER.isdisjoint(key.split()):
        return ""
    if key in NO_PLACES:
        return _asked(who.say("ask_zone"), [])
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


def told(zone, now, who):
    """Return a zone's name and the time there, for the receipt."""
    return {"zone": shown_zone(zone), **time_parts(now, who)}


def _of_offset(sign, hours, minutes):
    """Return the zone of a whole-hour offset, whose name has the opposite sign."""
    if minutes or hours > (14 if sign == "+" else 12):
        return ""
    return f"Etc/GMT{'-' if sign == '+' else '+'}{hours}" if hours else "UTC"


def _meant(place, key, who):
    """Name → zone of all that the words may mean, one for each clock: of the whole, else of a part between
    commas ("Los Angeles, California"), of which one with a single zone counts."""
    parts = [key, *(key_of(part) for part in place[:LONGEST].split(",") if key_of(part) not in NO_PLACES)]
    found = [meant for part in parts if (meant := _clocks(entries_of(part), who))]
    return next((one for one in found if len(one) == 1), found[0] if found else {})


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
