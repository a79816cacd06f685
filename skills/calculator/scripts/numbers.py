"""Numbers as people write them: their country's marks, words, and digits back from exact fractions."""

import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from app.tools.authoring import read_words

MAX_DIGITS = 4000
MAX_BITS = int(MAX_DIGITS * math.log2(10)) + 1
LONGEST_DECIMALS = 20
SIGNIFICANT = 12
# Of a result that nobody wants to read more of.
PLAIN_DECIMALS = 10
GROUPED_DIGITS = 15
PRECISE = Context(prec=50, Emax=2 * MAX_DIGITS, Emin=-2 * MAX_DIGITS)

_WORDS = read_words(__file__)
COUNTED, COMPOUND, THOUSANDS = _WORDS["counted"], _WORDS["compound"], _WORDS["thousands"]

NUMBER = re.compile(
    r"(?:\d{1,3}(?:[ \u00a0\u202f']\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*|[.,]\d+)(?:e[+-]?\d+(?![\w.]))?"
)


class Unreadable(Exception):
    """An input that cannot be calculated: `code` names the sentence about it, `what` the piece of it."""

    def __init__(self, code: str, what: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.what = what


@dataclass(frozen=True)
class Form:
    """The way numbers are written; `known` is False where the person's country is not known."""

    decimal: str
    group: str
    known: bool


@lru_cache(maxsize=300)
def form_of(country, language):
    """Return the decimal and grouping marks of a country; a bare form where it is not known."""
    from babel import Locale
    from babel.core import get_global

    subtags = get_global("likely_subtags")
    likely = subtags.get(f"und_{country}", "") if country else ""
    if country and subtags["und"].endswith(f"_{country}"):  # the one country that has no entry of its own
        likely = subtags["und"]
    if not likely:
        return Form("," if language == "pt" else ".", "", False)
    symbols = Locale.parse(f"{likely.split('_')[0]}_{country}").number_symbols
    marks = symbols.get("latn") or symbols
    group = marks.get("group", "")
    return Form(marks.get("decimal", "."), "." if not group else " " if group.isspace() else group, True)


def read_number(text, decimal):
    """Return the value of a number as written, and whether it depends on the country (1.234, 1,234)."""
    mantissa, _, exponent = text.partition("e")
    mantissa = re.sub(r"[ \u00a0\u202f']", "", mantissa)
    marks = [char for char in mantissa if char in ".,"]
    unsure = False
    if len(set(marks)) == 2:
        point = marks[-1]
        if marks.count(point) > 1 or not _grouped(mantissa.split(point)[0]):
            raise Unreadable("BAD_NUMBER", text)
        mantissa = mantissa.replace("," if point == "." else ".", "").replace(point, ".")
    elif len(marks) > 1:
        if not _grouped(mantissa):
            raise Unreadable("BAD_NUMBER", text)
        mantissa = mantissa.replace(marks[0], "")
    elif marks:
        unsure = mantissa == text and re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", mantissa) is not None
        as_group = unsure and marks[0] != decimal
        mantissa = mantissa.replace(marks[0], "" if as_group else ".")
    if len(mantissa) > MAX_DIGITS or abs(int(exponent or 0)) > MAX_DIGITS:
        raise Unreadable("TOO_BIG")
    return Fraction(
        f"{'0' if mantissa.startswith('.') else ''}{mantissa}{f'e{exponent}' if exponent else ''}"
    ), unsure


def told_decimal(text):
    """Return the decimal mark that one number tells for all ("1.500.000 - 480.000"), "" if none does."""
    for found in re.findall(NUMBER.pattern, text):
        marks = re.findall("[.,]", found)
        if len(set(marks)) < len(marks) and len(set(marks)) == 1:
            return "," if marks[0] == "." else "."
        if marks and not re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", found):
            return marks[-1]
    return ""


def clear_number(text, decimal, language):
    """Return the value of a number; raise Unreadable for 1.450 where many write so what is 1,450."""
    value, unsure = read_number(text, decimal)
    if unsure and language != "en" and decimal == "." and "." in text:
        raise Unreadable("DOUBTFUL", text)
    return value


def _grouped(text):
    """Tell whether the marks group thousands (1.234.567, and 1,00,000 as in India)."""
    return re.fullmatch(r"\d{1,3}(?:[.,]\d{2,3})*[.,]\d{3}", text) is not None


@lru_cache(maxsize=1)
def _counting():
    return {word: number for number, words in COUNTED.items() for word in words.split()}


def counted(text):
    """Replace number words by digits: "treinta y cinco" → 35, "3 mil" → 3 × 1000."""
    text = re.sub(r"\b(?:an?|uma?|una?) (?=(?:hundred|thousand|milh|mill))", "one ", text)
    text = _spelled().sub(lambda found: _in_digits(found[0]), text)
    for factor, names in THOUSANDS.items():
        choice = names.replace(" ", "|")
        text = re.sub(rf"({NUMBER.pattern})\s*(?:{choice})\b", rf"(\1*{factor})", text)
    return text


@lru_cache(maxsize=1)
def _spelled():
    """Return a run of number words, which digits may begin: "2 mil quinientos"."""
    thousands = "|".join(word for names in THOUSANDS.values() for word in names.split() if word != "k")
    word = rf"(?:{'|'.join(sorted(_spoken(), key=len, reverse=True))}|{thousands})\b"
    start = rf"(?<![\d.,])\d{{1,3}} (?=(?:{thousands})\b)|(?<!\d )\b(?={word})"
    # "1 milhão e 200 mil", "2 mil e 500"
    joint, units = r"(?: y | e | and | )", r"\d{1,3}(?![\d.,])"
    after_millions = "|".join(rf"(?<={word})" for word in THOUSANDS[1000000].split())
    more = rf"(?:{joint}|-){word}|(?:{after_millions}){joint}{units}(?= (?:mil|thousand)\b)"
    last = rf"(?:(?<=mil)|(?<=thousand)){joint}{units}(?! ?%| (?:{thousands})\b)"
    return re.compile(rf"(?:{start}){word}(?:{more})*(?:{last})?")


@lru_cache(maxsize=1)
def _spoken():
    counted = {**COUNTED, **COMPOUND}
    return {word: number for number, words in counted.items() for word in words.split()}


def _in_digits(run):
    """Return the numbers of a run; several where a word does not continue the one before ("dos tres")."""
    factors = {word: factor for factor, names in THOUSANDS.items() for word in names.split()}
    written, number, joint = [], _Spelled(), ""
    for word in re.split(r"(?<=\w)[ -](?=\w)", run):
        if word in {"y", "e", "and"}:
            joint = word
            continue
        value = int(word) if word.isdigit() else _spoken().get(word, 0)
        if not number.take(value, factors.get(word, 0), is_hundred=word == "hundred"):
            written += [str(number.value), joint]
            number = _Spelled()
            number.take(value, factors.get(word, 0), is_hundred=word == "hundred")
        joint = ""
    return " ".join(part for part in (*written, str(number.value), joint) if part)


class _Spelled:
    """A number that its words make up, each smaller than the one before leaves room for."""

    def __init__(self):
        self.whole = self.group = 0
        self.room = 1000
        self.least_factor = 10**9

    @property
    def value(self):
        return self.whole + self.group

    def take(self, value, factor, is_hundred):
        """Take a word that belongs to the number; False where it does not."""
        if factor:
            if factor >= self.least_factor:
                return False
            self.whole += (self.group or 1) * factor
            self.group, self.room, self.least_factor = 0, 1000, factor
        elif is_hundred and 0 < self.group < 10:
            self.group, self.room = self.group * 100, 100
        elif value < self.room and (value or not self.value):
            self.group += value
            self.room = (
                100 if value >= 100 and not value % 100 else 10 if value >= 20 and not value % 10 else 0
            )
        else:
            return False
        return True


def small_counted(text):
    """Return number words up to a hundred as digits."""
    words = _counting()
    tens = "|".join(word for word, number in words.items() if 20 <= number < 100)
    units = "|".join(word for word, number in words.items() if 0 < number < 10)
    text = re.sub(
        rf"\b({tens})(?: y | e |-| )({units})\b", lambda found: str(words[found[1]] + words[found[2]]), text
    )
    return re.sub(rf"\b(?:{'|'.join(words)})\b", lambda found: str(words[found[0]]), text)


def precise(number):
    return PRECISE.copy().divide(Decimal(number.numerator), Decimal(number.denominator))


def decimals(denominator):
    """Return decimals that a fraction of this denominator needs; more than any limit where it never ends."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else LONGEST_DECIMALS + 1


def digits_of(number):
    """Return all digits of a fraction whose decimals end."""
    places = decimals(number.denominator)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    whole, rest = digits[: len(digits) - places], digits[len(digits) - places :]
    return f"{'-' if number < 0 else ''}{whole}{f'.{rest}' if rest else ''}"


def approximate(number, significant=SIGNIFICANT):
    rounded = Context(prec=significant).divide(Decimal(number.numerator), Decimal(number.denominator))
    if -7 <= rounded.adjusted() <= GROUPED_DIGITS:
        text = f"{rounded:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    digits, _, exponent = f"{rounded:e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def readable(number, significant=SIGNIFICANT):
    """Return the significant digits of a fraction, and whether they are all."""
    exact = decimals(number.denominator) <= PLAIN_DECIMALS
    return (digits_of(number) if exact else approximate(number, significant)), exact


def localised(text, form):
    """Return digits with the country's marks; long integers stay ungrouped, to be copied."""
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, rest = mantissa.lstrip("-").partition(".")
    if form.group and 4 <= len(whole) <= GROUPED_DIGITS:
        whole = f"{int(whole):,}".replace(",", form.group)
    written = f"{sign}{whole}{f'{form.decimal}{rest}' if rest else ''}"
    return f"{written} × 10^{exponent}" if exponent else written


def without_accents(text):
    """Return the text in lower case, with ½ and the like as digits and signs."""
    plain = unicodedata.normalize("NFKD", text.lower())
    return "".join(char for char in plain if not unicodedata.combining(char))
