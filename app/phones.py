"""Phone numbers: digits, the national forms that mean the same line, masks, countries."""

import re

_NOT_DIGITS = re.compile(r"[^0-9]")


def digits(number: str) -> str:
    return _NOT_DIGITS.sub("", number)


def canonical(number: str) -> str:
    """The digits of a number in one form: Mexican 521… as 52…, Argentine 549… as 54….

    WhatsApp delivers the mobile prefix that both countries dropped; people write either.
    """
    number = digits(number)
    if len(number) == 13 and number.startswith(("521", "549")):
        return number[:2] + number[3:]
    return number


def other_form(number: str) -> str:
    """The same line in its other national form, "" where there is only one."""
    number = digits(number)
    if canonical(number) != number:
        return canonical(number)
    if len(number) == 12 and number.startswith("52"):
        return "521" + number[2:]
    if len(number) == 12 and number.startswith("54"):
        return "549" + number[2:]
    return ""


def mask(value: str) -> str:
    """A number or id as logs may show it: its first three and last two characters."""
    return f"{value[:3]}…{value[-2:]}" if len(value) > 5 else "…"


def country(number: str) -> str:
    """The ISO 3166 code of the number's country, "" where it cannot be told."""
    import phonenumbers  # late: 24 ms, and only a person's first message needs it

    try:
        parsed = phonenumbers.parse("+" + canonical(number))
    except phonenumbers.NumberParseException:
        return ""
    region = phonenumbers.region_code_for_number(parsed)
    if region is None and parsed.country_code is not None:
        region = phonenumbers.region_code_for_country_code(parsed.country_code)
    return "" if region in {None, "ZZ", "001"} else str(region)


def timezone_of(country_code: str) -> str:
    """The IANA zone of a country that has just one, else ""."""
    from babel.core import get_global

    zones = get_global("territory_zones").get(country_code, [])
    return zones[0] if len(zones) == 1 else ""
