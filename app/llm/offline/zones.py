"""Time zones by the names of cities, in our languages."""

from collections.abc import Mapping
from functools import cache
from zoneinfo import available_timezones

from app.i18n import LANGUAGES
from app.search.words import fold


def zone_of(place: str) -> str | None:
    """The IANA name of a zone, as "Asia/Tokyo", for such a name in any case or one of its cities, whatever
    stands before it."""
    wanted = fold(place).replace("_", " ").partition(",")[0].split()
    ends = (" ".join(wanted[start:]) for start in range(len(wanted)))
    return next((zone for end in ends if (zone := _zones().get(end))), None)


@cache
def _zones() -> Mapping[str, str]:
    from babel import Locale

    zones = [zone for zone in sorted(available_timezones()) if "/" in zone and not zone.startswith("Etc/")]
    found = {fold(zone).replace("_", " "): zone for zone in zones}
    for zone in zones:
        found.setdefault(fold(zone.rpartition("/")[2]).replace("_", " "), zone)
    for language in LANGUAGES:
        for zone, names in Locale.parse(language).time_zones.items():
            if city := names.get("city"):
                found[fold(city)] = zone
    return found
