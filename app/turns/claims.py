"""Find the claims of an answer to a guest: amounts, dates, times, phones and addresses that stand nowhere.

A small model fills in a price where it has none. What it says is compared with what it was given: passages,
results of tools, and what the person wrote.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.calendar.grammar import MONTHS
from app.text import fold

Kind = Literal["amount", "date", "time", "phone", "address"]

_NUMBER = r"\d{1,3}(?:[.,  ]\d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
_MONEY = r"r\$|us\$|u\$s|mx\$|ar\$|s/\.?|\$|€|£"
_UNITS = (
    r"pesos?|reais|real|dolar(?:es)?|dollars?|euros?|soles|centavos|cents|mxn|ars|clp|cop|brl|usd|eur|pen"
)
_COSTS = r"cuest[ae]n?|sale|vale|custam?|fica em|sai por|costs?|price is|precio es|preco e"
_AMOUNT = re.compile(
    rf"""(?:{_MONEY})\s?({_NUMBER})(?!\d)
    | (?<![\d.,])({_NUMBER})\s?(?:(?:{_UNITS})\b|%|por\ ciento|por\ cento|percent)
    | \b(?:{_COSTS})\ (?:de\ |unos\ |uns\ |about\ )?({_NUMBER})(?![\d:h/])""",
    re.VERBOSE,
)
_ANY_NUMBER = re.compile(rf"(?<![\d.,])({_NUMBER})(?![\d])")
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DATE = re.compile(
    rf"""\b(\d{{1,2}})(?:st|nd|rd|th|o|º|°)?\ (?:de\ |of\ )?({_MONTH})\b
    | \b({_MONTH})\ (\d{{1,2}})(?:st|nd|rd|th)?\b
    | \b(\d{{1,2}})[/-](\d{{1,2}})(?:[/-]\d{{2,4}})?\b
    | \b\d{{4}}-(\d{{2}})-(\d{{2}})\b""",
    re.VERBOSE,
)
_TIME = re.compile(
    r"""(?<![\d:,.])(?P<hour>\d{1,2})(?!\d)(?P<minute>[:.h]\d{2}\b)?
    (?:\s?(?P<pm>p\.?m\b\.?|de\ la\ (?:tarde|noche)|da\ (?:tarde|noite)|in\ the\ (?:afternoon|evening))
      |\s?(?P<am>a\.?m\b\.?|de\ la\ (?:ma|madr)\w+|da\ (?:ma|madr)\w+|in\ the\ morning))?
    (?P<unit>\s?(?:hs?|hrs|horas)\b)?""",
    re.VERBOSE,
)
_EARLIEST = 8  # an hour before it, of which nothing more is said, may be one of the afternoon
_PHONE = re.compile(r"(?<![\w$/-])\+?\(?\d[\d ().–-]{5,18}\d(?!\w)")
_STREET = re.compile(
    r"""\b(?:calle|avenida|av\.?|bulevar|blvd\.?|boulevard|carrera|cra\.?|jiron|pasaje|plaza|paseo|rua|r\.
      |travessa|praca|alameda|rodovia|largo)\s+(?:de\ |del\ |da\ |do\ |las?\ |los?\ |dos\ |das\ )*
    ([\w'’]+(?:\ [\w'’]+){0,3}?),?\s*(?:no?\.?\ ?|n[º°]\ ?|numero\ |\#)?(\d{1,5})\b""",
    re.VERBOSE,
)
_ENGLISH_STREET = re.compile(
    r"\b(\d{1,5}) ([\w'’]+(?: [\w'’]+){0,2}) (?:street|st\.?|avenue|ave\.?|road|rd\.?|lane|drive|square)\b"
)
_LINK = re.compile(r"\bhttps?://[^\s)>\]]+|\bwww\.[^\s)>\]]+|\b[\w.+-]{1,64}@[\w-]{1,255}\.[\w.]+\b")
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?\n*")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as it was written, and in the form in which it is compared."""

    kind: Kind
    words: str
    value: str


def unsupported(answer: str, given: Iterable[str]) -> list[Claim]:
    """Return the claims of an answer that stand in none of the texts that were given."""
    evidence = _Evidence("\n".join(given).replace("\\n", "\n"))  # results are JSON
    return [claim for claim in claims(answer) if not evidence.holds(claim)]


def claims(text: str) -> list[Claim]:
    """Return what a text claims, each part of it once: a phone's digits are no amount."""
    folded = fold(text)
    found: list[Claim] = []
    taken: list[tuple[int, int]] = []
    for kind, match, value in _matches(folded):
        start, end = match.span()
        if any(start < last and first < end for first, last in taken):
            continue
        taken.append((start, end))
        found.append(Claim(kind, text[start:end].strip(), value))
    return found


def without(answer: str, made_up: Sequence[Claim]) -> str:
    """Return an answer without the sentences that hold these claims."""
    kept = [part for part in _SENTENCE.findall(answer) if not any(claim.words in part for claim in made_up)]
    return "".join(kept).strip()


def _matches(text: str) -> Iterator[tuple[Kind, "re.Match[str]", str]]:
    for match in _LINK.finditer(text):
        yield "address", match, match[0].rstrip(".,;:")
    for match in _STREET.finditer(text):
        yield "address", match, f"{match[1]} {match[2]}"
    for match in _ENGLISH_STREET.finditer(text):
        yield "address", match, f"{match[2]} {match[1]}"
    for match in _AMOUNT.finditer(text):
        yield "amount", match, _value(match[1] or match[2] or match[3])
    for match in _DATE.finditer(text):
        yield "date", match, _day(match)
    for match in _PHONE.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if len(digits) >= 7:
            yield "phone", match, digits
    for match in _TIME.finditer(text):
        if match["minute"] or match["pm"] or match["am"] or match["unit"]:
            yield "time", match, str(_hour(match))


class _Evidence:
    """The texts that an answer may be made of."""

    def __init__(self, text: str) -> None:
        self._text = fold(text)
        self._numbers = {_value(one) for one in _ANY_NUMBER.findall(self._text)}
        times = list(_TIME.finditer(self._text))
        self._hours = {str(_hour(one)) for one in times}
        self._hours |= {str(_hour(one) + 12) for one in times if _hour(one) < _EARLIEST and not one["am"]}
        self._days = {_day(match) for match in _DATE.finditer(self._text)}
        self._digits = re.sub(r"[ ().–-]", "", self._text)

    def holds(self, claim: Claim) -> bool:
        """Return whether the claim stands in the texts."""
        match claim.kind:
            case "amount":
                return claim.value in self._numbers
            case "time":
                return claim.value in self._hours
            case "date":
                return claim.value in self._days
            case "phone":
                return claim.value[-7:] in self._digits
        return all(word in self._text for word in claim.value.split())


def _value(number: str) -> str:
    """Return a number in one form: "1.250,00", "1,250" and "1250" are the same."""
    bare = re.sub(r"[  ]", "", number)
    whole, _, cents = bare.replace(",", ".").rpartition(".")
    if whole and len(cents) == 3:
        whole, cents = whole + cents, ""
    elif not whole:
        whole, cents = cents, ""
    return f"{int(whole.replace('.', '') or 0)}.{cents.rstrip('0')}".rstrip(".")


def _hour(match: "re.Match[str]") -> int:
    """Return the hour of the day, 0 to 23, that a time names."""
    hour = int(match["hour"])
    return hour + 12 if match["pm"] and hour < 12 else hour


def _day(match: "re.Match[str]") -> str:
    """Return day and month; of two numbers the larger may be either, so both orders are one."""
    day, month, month_first, day_after, one, other, iso_month, iso_day = match.groups()
    if day or day_after:
        pair = (int(day or day_after), MONTHS[month or month_first])
    else:
        pair = (int(one or iso_day), int(other or iso_month))
    return "{}-{}".format(*sorted(pair))
