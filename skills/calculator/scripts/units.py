"""Quantities with units: read from words, converted exactly."""

import difflib
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from .numbers import (
    LONGEST_DECIMALS,
    NUMBER,
    Unreadable,
    approximate,
    clear_number,
    decimals,
    digits_of,
    localised,
    readable,
    small_counted,
    told_decimal,
    without_accents,
)

TABLE = Path(__file__).parent.parent / "assets" / "units.txt"
LANGUAGES = ("es", "pt", "en")
# Where a gallon is that of Great Britain.
IMPERIAL = {"GB", "IE"}
# Each country has its own; the table knows that of Brazil.
ARROBAS = {"arroba", "arrobas"}
LONGEST = 200
MOST_PARTS = 6
SIGNIFICANT = 7
ABSOLUTE_ZERO = Fraction("-273.15")

MULTIPLES = {"mil": 1000, "thousand": 1000} | dict.fromkeys(
    ("millon", "millones", "milhao", "milhoes", "million", "millions"), 10**6
)
_MARKS = str.maketrans(
    {"½": " 1/2", "¼": " 1/4", "¾": " 3/4", "º": "°", "℃": "°C", "℉": "°F", "′": "'", "″": '"', "−": "-"}
)
_POWER = re.compile(r"(?<=[a-z])[23]\b")
_FEET = re.compile(r"""(\d+) ?'(?: ?(\d+(?:[.,]\d+)?) ?(?:"|''|$))?""")
_HALF = r"(?:media|medio|meia|meio|half)"
_AND_HALF = rf"(?:y|e|and) (?:una? |uma? |an? )?{_HALF}"
_SPOKEN = [
    (re.compile(rf"^{_HALF}(?: an?)? "), "1/2 "),
    (re.compile(r"^(?:una?|uma?|an?) "), "1 "),
    (re.compile(rf"^(\d+) {_AND_HALF} (.+)$"), r"\1 1/2 \2"),
    (re.compile(rf"^(\d+) (\D+?) {_AND_HALF}$"), r"\1 1/2 \2"),
]
_BEFORE = re.compile(r"^(?:(?:de|of|do|da|d'|en|em|in|a|to|los|las|the|el|la|o|os|as) )+")
_AFTER = re.compile(r"(?: (?:y|e|and|con|com|with|por favor|porfa|please|pfv))+$")
_PART = re.compile(
    rf"(?P<number>[-+]?(?:(?:\d+ +)?\d+ ?/ ?\d+|{NUMBER.pattern}))"
    rf"(?: ?(?P<multiple>{'|'.join(MULTIPLES)})\b)?(?P<unit>[^\d+-]*)"
)


@dataclass(frozen=True)
class Unit:
    """`size` in the first unit of its kind; `zero`: where on its own scale that unit's zero lies."""

    kind: str
    symbol: str
    size: Fraction
    zero: Fraction
    names: dict

    def __hash__(self):
        return hash((self.kind, self.symbol, self.size))

    def shown(self, language, number):
        if self.symbol:
            return self.symbol
        names = self.names[language]
        return names[0] if abs(number) == 1 else names[1]


def conversion(quantity, to_unit, form, language, country):
    """Return a quantity in another unit of its kind. Raises Unreadable."""
    parts = _parts(quantity, form, country, language)
    target = unit_named(to_unit, country)
    for _, unit in parts:
        if unit.kind != target.kind:
            raise Unreadable("DIFFERENT_KINDS", f"{unit.shown(language, 2)} → {target.shown(language, 2)}")
    base = sum((_in_base(number, unit) for number, unit in parts), Fraction(0))
    if target.kind == "temperature" and base < ABSOLUTE_ZERO:
        raise Unreadable("BELOW_ZERO", quantity[:40])
    value = base / target.size + target.zero
    shown, exact = readable(value, SIGNIFICANT)
    from_text = " ".join(
        f"{localised(readable(number)[0], form)} {unit.shown(language, number)}" for number, unit in parts
    )
    unit = target.shown(language, value)
    return {
        "summary": f"{from_text} {'=' if exact else '≈'} {localised(shown, form)} {unit}",
        "result": digits_of(value) if decimals(value.denominator) <= LONGEST_DECIMALS else approximate(value),
        "unit": unit,
        "exact": exact,
    }


def unit_named(text, country=""):
    """Return the unit that these words name. Raises Unreadable."""
    key = _BEFORE.sub("", _AFTER.sub("", _folded(text)))
    wanted = (f"imp {key}", f"imperial {key}", key) if country in IMPERIAL else (key,)
    found = next((_index()[one] for one in (*wanted, *_singular(key)) if one in _index()), None)
    if found is None or (key in ARROBAS and country not in ("", "BR")):
        raise Unreadable("UNKNOWN_UNIT", text.strip())
    return found


def near_units(text):
    """Return names of units that are spelled nearly so."""
    others = (one for one in _index() if one not in ARROBAS)
    return difflib.get_close_matches(_folded(text), others, n=3, cutoff=0.75)


def _parts(quantity, form, country, language):
    """Return numbers with their units, as in "5 ft 11 in"; all of one kind, and a temperature alone."""
    text = _written_out(quantity)
    decimal, found, end = told_decimal(text) or form.decimal, [], 0
    for match in _PART.finditer(text):
        if text[end : match.start()].strip(" ,") or len(found) == MOST_PARTS:
            raise Unreadable("NO_QUANTITY", quantity.strip())
        number = _number(match["number"], decimal, language) * MULTIPLES.get(match["multiple"] or "", 1)
        found.append((number, unit_named(match["unit"].strip(" ,.?"), country)))
        end = match.end()
    if not found or text[end:].strip(" .?"):
        raise Unreadable("NO_QUANTITY", quantity.strip())
    if len(found) > 1 and found[0][1].kind == "temperature":
        raise Unreadable("NO_QUANTITY", quantity.strip())
    return found


def _written_out(quantity):
    if len(quantity) > LONGEST:
        raise Unreadable("NO_QUANTITY", quantity[:40])
    text = _FEET.sub(_in_feet, quantity.translate(_MARKS))
    text = re.sub(r'(\d) ?"', r"\1 in", text)
    text = small_counted(_folded(text))
    for pattern, written in _SPOKEN:
        text = pattern.sub(written, text)
    return text


def _in_feet(found):
    return f"{found[1]} ft {found[2]} in" if found[2] else f"{found[1]} ft "


def _number(text, decimal, language):
    sign = -1 if text.startswith("-") else 1
    bare = text.lstrip("+-")
    if "/" not in bare:
        return sign * clear_number(bare, decimal, language)
    *whole, top, bottom = re.findall(r"\d+", bare)
    if max(map(len, (*whole, top, bottom))) > LONGEST_DECIMALS:
        raise Unreadable("TOO_BIG")
    if not int(bottom):
        raise Unreadable("DIVISION_BY_ZERO")
    return sign * (sum(map(int, whole)) + Fraction(int(top), int(bottom)))


def _in_base(number, unit):
    return (number - unit.zero) * unit.size


def _folded(text):
    """Return lower case without accents, powers as superscripts, single spaces."""
    text = without_accents(text.translate(_MARKS))
    text = re.sub(r"[\^·*\"¿!¡]", "", text.replace("⁄", "/").replace("μ", "u"))
    text = _POWER.sub(lambda found: {"2": "²", "3": "³"}[found[0]], text)
    return " ".join(text.split()).strip(" ?.,;:")


def _singular(key):
    return [
        key[: -len(ending)] for ending in ("es", "s") if key.endswith(ending) and len(key) > len(ending) + 2
    ]


@lru_cache(maxsize=1)
def _index():
    """Return folded symbol or name → unit; of two of one name the first."""
    index = {}
    units = list(_read())
    for unit in units:
        if unit.symbol:
            index.setdefault(_folded(unit.symbol), unit)
    for unit in units:
        for names in unit.names.values():
            for name in names:
                index.setdefault(_folded(name), unit)
    return index


def _read():
    kind = ""
    for line in TABLE.read_text("utf-8").splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line.strip() and not line.startswith("#"):
            symbol, size, *names = (part.strip() for part in line.split("|"))
            size, _, zero = size.partition(" from ")
            listed = [[name.strip() for name in part.split(",")] for part in names]
            by_language = dict(zip(LANGUAGES, listed, strict=True))
            symbol = symbol.removeprefix("-")
            yield Unit(kind, symbol, Fraction(size), Fraction(zero or 0), by_language)
