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
from app.turns.bare_text import bare_text

Kind = Literal["amount", "date", "time", "phone", "address"]

_NUMBER = r"\d{1,3}(?:[.,  ]\d{3}){1,4}(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
_SIGN = r"[$¢-¥֏؋฿₠-⃀]"
_CODES = r"mxn|ars|clp|cop|brl|usd|eur|gbp|pen|uyu|bob|pyg|crc|gtq|hnl|nio|dop|ves"
_MONEY = rf"(?:\b(?:r|us|mx|ar|rd|c))?{_SIGN}|u\$s|\b[sb]/\.?|\b(?:{_CODES}|[bg]s\.?|q)"
_UNITS = (
    rf"{_CODES}|pesos?|pesitos|reais|real|reales|dolar(?:es)?|dollars?|bucks|euros?|soles|centavos|centimos"
    r"|cents|libras|pounds|quid|bolivianos?|bolivares|quetzales|lempiras?|colones|guaranies|cordobas?|balboas?|varos"
    r"|lucas"
)
_PER = r"(?:la|el|por|per|an?|cada|each)\ (?:hora|hour|persona|pessoa|person|uno|una|um|uma)|each|apiece"
_COUNTED = (  # what is counted is no amount and no time
    r"(?!\s?(?:dias?|days?|semanas?|weeks?|mes|meses|months?|anos?|years?|min\w*|segundos?|personas?|pessoas?"
    r"|people|veces|vezes|times|cuotas?|parcelas?|pagos?|opcion\w*|opc\w*|options?|sucursales|sedes|locales"
    r"|sesiones|sessoes|sessions|km|kg|metros|meters|gracias|obrigad\w*|thanks)\b)"
)
_ALONE = rf"(?!\d|[.,:h/-]\d|\ \d|\s?h\b){_COUNTED}"
_LARGE = r"\d{3,6}(?:[.,]\d{1,2})?|\d{1,3}(?:[.,]\d{3}){1,3}"
_COSTS = (
    r"cuest\w+|costar\w+|costs?|sale|salen|vale|valen|queda|quedaria|custa\w*|fica|ficaria|sai|saem|cobra\w*"
    r"|charges?|pagas?|pagan|pagar|pays?|(?:desde|a\ partir\ de|from|hasta|solo|apenas|only|just)(?=\ \d{3})"
)
_PRICE = (
    r"precios?|costos?|costes?|tarifas?|importe|monto|valor|total|precos?|custos?|taxas?|prices?|costs?|fees?"
)
_ABOUT = r"(?:(?:de|en|em|a|por|at|unos|uns|about|around|casi|solo|apenas|only|just|desde|from)\ )*"
_AMOUNT = re.compile(
    rf"""(?:{_MONEY})\s?({_NUMBER})(?!\d)
    | (?<![\d.,])({_NUMBER})\s?(?:{_SIGN}|%
      |(?:(?:de\ )?(?:{_UNITS})|{_PER}|por\ (?:ciento|cento|100)|percent)\b)
    | \b(?:{_COSTS})\ {_ABOUT}({_NUMBER}){_ALONE}
    | \b(?:{_PRICE})\b[^\d.!?\n]{{0,40}}?(?::|\b(?:es|son|e|is|are|sera|seria|comes\ to))\ ?
      {_ABOUT}({_NUMBER}){_ALONE}
    | (?:[a-z)]\ ?\d?(?::|\ -)\ |(?<!\d\d)(?<!\d\d\ )[–—]\ *|\|\ *)({_LARGE}){_ALONE}
    | \((?!(?:1[89]|20)\d\d\))({_LARGE})\)(?!\ ?\d)
    | (?<![\d.,/-])(?<!\d\ )(\d+00000)(?![\d/-])""",
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
_HOUR = rf"(\d{{1,2}})\b(?![.,/-]?\d|\s?%){_COUNTED}"
_BARE_HOUR = re.compile(
    rf"""\b(?:(?:a|hasta|desde|entre|sobre|hacia|tipo|de|y)\ las?|as|das|pelas|at|from|between|until|till
      |before|after|opens?|closes?)\ {_HOUR}
    | (?<![\d.,/-])(\d{{1,2}})\ ?(?:a|as|to|ate|until|till|hasta|[–—])\ ?(?:(?:las?|as)\ )?{_HOUR}""",
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
    """A claim as it was written, the form in which it is compared, and where it stands in the answer."""

    kind: Kind
    words: str
    value: str
    span: tuple[int, int]


def unsupported(answer: str, given: Iterable[str], moment: str = "") -> list[Claim]:
    """Return the claims of an answer that stand in none of the texts that were given.

    `moment` is the line that tells the date and time: an answer may repeat these, but it is no price.
    """
    told = "\n".join(given).replace("\\n", "\n")  # results are JSON
    evidence = _Evidence(bare_text(told).text, fold(moment))
    return [claim for claim in claims(answer) if not evidence.holds(claim)]


def claims(text: str) -> list[Claim]:
    """Return what a text claims, each part of it once: a phone's digits are no amount."""
    bare = bare_text(text)
    found: list[Claim] = []
    taken = bytearray(len(bare.text))
    for kind, match, value in _matches(bare.text):
        start, end = match.span()
        if any(taken[start:end]):
            continue
        taken[start:end] = b"\1" * (end - start)
        span = bare.original(start, end)
        found.append(Claim(kind, text[slice(*span)].strip(), value, span))
    return found


def without(answer: str, made_up: Sequence[Claim]) -> str:
    """Return an answer without the sentences that hold these claims of it."""
    spans = [claim.span for claim in made_up]
    kept = [
        part[0]
        for part in _SENTENCE.finditer(answer)
        if not any(part.start() < end and start < part.end() for start, end in spans)
    ]
    return "".join(kept).strip()


def _matches(text: str) -> Iterator[tuple[Kind, "re.Match[str]", str]]:
    for match in _LINK.finditer(text):
        yield "address", match, match[0].rstrip(".,;:")
    for match in _STREET.finditer(text):
        yield "address", match, f"{match[1]} {match[2]}"
    for match in _ENGLISH_STREET.finditer(text):
        yield "address", match, f"{match[2]} {match[1]}"
    for match in _AMOUNT.finditer(text):
        yield "amount", match, _value(next(filter(None, match.groups())))
    for match in _DATE.finditer(text):
        yield "date", match, _day(match)
    for match in _PHONE.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if len(digits) >= 7:
            yield "phone", match, digits
    bare_hours = {match.start(group) for match in _BARE_HOUR.finditer(text) for group in (1, 2, 3)}
    for match in _TIME.finditer(text):
        is_told = match["minute"] or match["pm"] or match["am"] or match["unit"]
        if is_told or (match.start() in bare_hours and int(match["hour"]) <= 24):
            yield "time", match, _clock(match)


class _Evidence:
    """The texts that an answer may be made of."""

    def __init__(self, text: str, moment: str) -> None:
        self._text = text
        self._numbers = {_value(one) for one in _ANY_NUMBER.findall(self._text)}
        times = list(_TIME.finditer(self._text))
        self._hours = {str(_hour(one)) for one in times}
        self._hours |= {str(_hour(one) + 12) for one in times if _hour(one) < _EARLIEST and not one["am"]}
        self._now = {_clock(one) for one in _TIME.finditer(moment) if one["minute"]}
        self._days = {_day(match) for match in _DATE.finditer(f"{self._text}\n{moment}")}
        self._digits = re.sub(r"[ ().–-]", "", self._text)

    def holds(self, claim: Claim) -> bool:
        """Return whether the claim stands in the texts."""
        match claim.kind:
            case "amount":
                return claim.value in self._numbers
            case "time":
                return claim.value in self._now or not self._hours.isdisjoint(_hours(claim.value))
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
    return f"{whole.replace('.', '').lstrip('0') or 0}.{cents.rstrip('0')}".rstrip(".")


def _hour(match: "re.Match[str]") -> int:
    """Return the hour of the day, 0 to 23, that a time names."""
    hour = int(match["hour"])
    return hour + 12 if match["pm"] and hour < 12 else hour


def _clock(match: "re.Match[str]") -> str:
    """Return a time as it is compared: hour and minutes, and "?" if it may be one after noon."""
    minutes = (match["minute"] or ":00")[1:]
    return f"{_hour(match)}:{minutes}{'' if match['am'] or match['pm'] else '?'}"


def _hours(clock: str) -> set[str]:
    """Return the hours that a time may be of."""
    hour = clock.partition(":")[0]
    return {hour, str(int(hour) + 12)} if clock.endswith("?") and int(hour) < 12 else {hour}


def _day(match: "re.Match[str]") -> str:
    """Return day and month; of two numbers the larger may be either, so both orders are one."""
    day, month, month_first, day_after, one, other, iso_month, iso_day = match.groups()
    if day or day_after:
        pair = (int(day or day_after), MONTHS[month or month_first])
    else:
        pair = (int(one or iso_day), int(other or iso_month))
    return "{}-{}".format(*sorted(pair))
