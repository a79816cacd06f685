"""Tells sums, in digits, signs and words, from other numbers."""

import re

from app.search.words import WORDS, any_word
from app.text import fold

_MARKS = frozenset("+-*/^%×÷·√²³½")
_DIGITS = re.compile(r"\d[\d.,']*(?:e[+-]?\d+)?|[½²³]", re.IGNORECASE)
_CURRENCY = re.compile(r"\b(?:r|us|mx|ar|a|c)?\$")
_PHONE_DATE_OR_TIME = re.compile(r"\+[\d\s().-]+|[\d]+[/.-]\d+[/.-]\d+|\d{1,2}:\d{2}.*")
_TELLS_HOUR = re.compile(r"\W*(?:que|which|that) (?:es|e|is|son|sao) (?:a las?|as?|at)\b")
_QUESTION = re.compile(
    r"^[\s¿¡]*(?:(?:y|e|and)\s+)?"
    r"(?:(?:(?:cu[aá]nto|quanto|how much|what)\s+(?:es|é|e|is|son|da|dá)|what[’']?s)\s+)?"
    r"(?:el\s+(?=\d))?",
    re.IGNORECASE,
)

_NUMERAL = any_word("numerals")
_NUMBER = re.compile(
    rf"(?:\d[\d.,]*\d|\d|{_NUMERAL}(?=\W|$)|[^\W\d]+)(?:\s*(?:%|k\b)|(?:\s+(?:(?:[ye]|and)\s+)?{_NUMERAL}\b)*)"
)
CALCULATED_ON = re.compile(
    r"(?:(?:y|e|and|ahora|agora|now|eso|isso|that)\s+)*"
    r"((?:dividid[oa]|divided?|divida|split(?: (?:it|that|the bill))?|reparte(?:lo)?|rachad[oa])"
    r"\s+(?:entre|por|by|between|para|pra)|entre|menos|minus|mas|mais|plus|por|vezes|times|[-+*/×÷])\s*(?=\S)"
)
_ARTICLE = re.compile(r"^(?:el|un|o|um|the)\s+(?=\d)", re.IGNORECASE)
_SIGNS = {
    **dict.fromkeys(("mas", "mais", "plus", "+"), "+"),
    **dict.fromkeys(("menos", "minus", "-"), "-"),
    **dict.fromkeys(("por", "vezes", "times", "*", "×"), "*"),
}
# which needs what it is added to, or is a share of that
_SHARE = r"[\d.,]+\s?(?:%|per ?cent|por ?ci?ento)"
_ONE_MORE = re.compile(
    rf"\W*(?:add|plus|sum[ae]|soma)\s+(?:[\d.,]+\W*|{_SHARE}.*)|\W*(?:[ye] |and )?(?:el |o )?{_SHARE}\W*"
)
# a further number or sum, or words that multiply in some place only
_MORE = re.compile(rf".*(?:[\d+*/×÷^]|\b{_NUMERAL}\b)|\W*(?:lucas?|palos?|mi|mill|milhar|grand)\b")


def is_arithmetic(text: str) -> bool:
    """Tell whether all of `text` is a number or a calculation, in digits, signs and words."""
    found, has_number = _words_beside_numbers(text)
    known = WORDS["operators"] | WORDS["numerals"] | WORDS["beside_numbers"]
    return has_number and known.issuperset(found)


def is_calculation(text: str) -> bool:
    """Tell whether `text` is arithmetic with something to work out: no bare number, phone, date or time."""
    is_hour = _PHONE_DATE_OR_TIME.fullmatch(text.strip()) or _TELLS_HOUR.match(fold(text))
    if is_hour or not is_arithmetic(text) or _ONE_MORE.fullmatch(fold(text)):
        return False
    signed = any(sign in text for sign in _MARKS) or re.search(r"\d!", text) is not None
    return signed or any(word in WORDS["operators"] for word in _words_beside_numbers(text)[0])


def single_number(text: str) -> str:
    """Return the number that a text begins with, such as "200 mil"; "" if there is none, or more than one."""
    folded = fold(text)
    told = _NUMBER.match(folded)
    more = _MORE.match(folded[told.end() :]) if told is not None else None
    return text[: told.end()] if told is not None and more is None and is_arithmetic(told.group()) else ""


def calculated_on(had: str, said: str) -> str | None:
    """Return the calculation before, calculated on: "entre 3"."""
    match = CALCULATED_ON.match(fold(said))
    told = single_number(_ARTICLE.sub("", said[match.end() :].strip(" ?!."))) if match is not None else ""
    return f"({had}) {_SIGNS.get(match[1].split(' ')[0], '/')} {told}" if match is not None and told else None


def asked_calculation(text: str) -> str:
    """Return what a message asks to work out; a factorial's "!" stays, one of excitement goes."""
    bare = text.strip()
    ends = " ¿?=.;," if re.search(r"^[\d.,]+!$|\d!\s*[-+*/^]", bare) else " ¿?=!.;,"
    return _QUESTION.sub("", bare.strip(ends).rstrip(ends))


def _words_beside_numbers(text: str) -> tuple[list[str], bool]:
    """Return the words beside the numbers, and whether there is a number in digits or words."""
    folded = fold(text)
    found = re.findall(r"[^\W\d_]+", _DIGITS.sub(" ", _CURRENCY.sub(" ", folded)))
    return found, bool(re.search(r"[\d½]", folded)) or any(word in WORDS["numerals"] for word in found)
