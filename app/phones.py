"""Phone numbers: digits, national forms of the same line, masks, countries, time zones."""

import re
from collections.abc import Mapping
from pathlib import Path

import phonenumbers
import yaml
from babel.core import get_global
from phonenumbers import PhoneNumber

_NOT_DIGITS = re.compile(r"[^0-9]")
_MOBILE = {"52": "1", "54": "9"}  # what stood before mobile numbers in Mexico and Argentina
# in the Americas, without the country code; with it only small countries have so few digits
_LONGEST_NATIONAL = 10
_HOME_ZONES: Mapping[str, str] = yaml.safe_load(
    (Path(__file__).parent / "locale" / "home_zones.yaml").read_text("utf-8")
)
# a prefix with more zones than this is a whole country's
_MOST_ZONES_OF_AREA = 3


def digits(number: str) -> str:
    return _NOT_DIGITS.sub("", number)


def canonical(number: str) -> str:
    """Return the digits of a number in one form: Mexican 521… as 52…, Argentine 549… as 54….

    WhatsApp delivers the mobile prefix that both countries dropped; people write either.
    """
    number = digits(number)
    if len(number) == 13 and _MOBILE.get(number[:2]) == number[2]:
        return number[:2] + number[3:]
    return number


def other_form(number: str) -> str:
    """Return the same line in its other national form, "" if there is only one."""
    number = digits(number)
    if canonical(number) != number:
        return canonical(number)
    mobile = _MOBILE.get(number[:2]) if len(number) == 12 else None
    return number[:2] + mobile + number[2:] if mobile else ""


def mask(value: str) -> str:
    """Return a number or id as logs may show it: its first three and last two characters."""
    return f"{value[:3]}…{value[-2:]}" if len(value) > 5 else "…"


def country(number: str) -> str:
    """Return the ISO 3166 code of the number's country, "" if it is not known."""
    parsed = _parsed("+" + canonical(number), None)
    if parsed is None:
        return ""
    region = phonenumbers.region_code_for_number(parsed)
    if region is None and parsed.country_code is not None:
        region = phonenumbers.region_code_for_country_code(parsed.country_code)
    return "" if region in {None, "ZZ", "001"} else str(region)


def without_country_code(number: str, home: str) -> str:
    """Return how to write a number that lacks its country code, "" if some country may use it as it is.

    `home` is the ISO 3166 code of the country whose national number it may be, "" if that is not known.
    """
    number = canonical(number)
    written, national = _parsed("+" + number, None), _parsed(number, home)
    if written and phonenumbers.is_valid_number(written):
        return ""
    if national and phonenumbers.is_valid_number(national):
        whole = phonenumbers.format_number(national, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
        return f"put +{national.country_code} before it: {whole}"
    return "" if len(number) > _LONGEST_NATIONAL else "write it like +52 55 1234 5678"


def _parsed(number: str, region: str | None) -> PhoneNumber | None:
    try:
        return phonenumbers.parse(number, region)
    except phonenumbers.NumberParseException:
        return None


def country_of_zone(timezone: str) -> str:
    """Return the ISO 3166 code of the country of an IANA zone, "" for UTC and similar zones."""
    zone = get_global("zone_aliases").get(timezone, timezone)
    found = str(get_global("zone_territories").get(zone, ""))
    return "" if found in {"ZZ", "001"} else found


_FAR_ISLANDS = frozenset({"America/Noronha"})
"""Zones of a few thousand people who share the area code of millions: Recife's."""


def timezone_of(country_code: str, number: str = "") -> str:
    """Return the IANA zone of a number's area code, else that in which most people of its country live.

    `number` may be "" where only the country is known. "" if no zone is known for the country either.
    """
    zones = get_global("territory_zones").get(country_code, [""])
    home = str(_HOME_ZONES.get(country_code, zones[0]))
    found = [
        zone
        for zone in _zones_of_area(number)
        if zone not in _FAR_ISLANDS and country_of_zone(zone) in ("", country_code)
    ]
    return found[0] if found and home not in found else home


def _zones_of_area(number: str) -> tuple[str, ...]:
    """Return the zones of the longest known prefix of a number; none for a freephone."""
    from phonenumbers.timezone import UNKNOWN_TIMEZONE, time_zones_for_geographical_number

    parsed = _parsed("+" + canonical(number), None) if number else None
    zones = time_zones_for_geographical_number(parsed) if parsed is not None else ()
    return () if UNKNOWN_TIMEZONE in zones or len(zones) > _MOST_ZONES_OF_AREA else zones
