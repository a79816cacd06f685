"""Whether what came back is what was recorded: word for word but for dates, times and numbers."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from app.messages import JSON

FEWEST_LETTERS: Final = 3
_LANGUAGES = ("es", "pt", "en")
_BEFORE_TIME = re.compile(r"\b(son las|es la|são|é) (?=\{time\})", re.IGNORECASE)
_SPANISH_VERB, _PORTUGUESE_VERB = "\uf8f0", "\uf8f1"
_PLACEHOLDER = re.compile(r"\{(time|date|number)\}")


class Expectations:
    """Compares texts in which `{time}`, `{date}` and `{number}` stand for such a value and nothing else."""

    def __init__(self) -> None:
        self._grammar = {
            "time": r"\d{1,2}(?:[:h]\d{2}){1,2}(?:\s?(?:[ap]\.\s?m\.|[ap]m\b))?",
            "date": _date_grammar(),
            "number": r"-?\d(?:[\d.,]*\d)?",
        }
        self._moving = re.compile(
            f"(?P<time>(?<![\\w:]){self._grammar['time']}(?!\\w))"
            f"|(?P<date>(?<!\\w){self._grammar['date']}(?!\\w))",
            re.IGNORECASE,
        )

    def generalize(self, value: JSON) -> JSON:
        """The value with its clock times and dates as placeholders."""
        if isinstance(value, str):
            return self._moving.sub(lambda found: f"{{{found.lastgroup}}}", value)
        if isinstance(value, list):
            return [self.generalize(one) for one in value]
        if isinstance(value, dict):
            return {key: self.generalize(one) for key, one in value.items()}
        return value

    def are_met(self, expected: JSON, actual: JSON) -> bool:
        """Whether both have the same form and every text fits; what is not a text is equal."""
        if isinstance(expected, str) and isinstance(actual, str):
            return bool(self._pattern(expected).fullmatch(actual))
        if isinstance(expected, list) and isinstance(actual, list):
            pairs = zip(expected, actual, strict=False)
            return len(expected) == len(actual) and all(self.are_met(one, two) for one, two in pairs)
        if isinstance(expected, dict) and isinstance(actual, dict):
            return expected.keys() == actual.keys() and all(
                self.are_met(one, actual[key]) for key, one in expected.items()
            )
        return bool(expected == actual)

    def _pattern(self, text: str) -> re.Pattern[str]:
        parts = _PLACEHOLDER.split(_BEFORE_TIME.sub(_at_any_hour, text))
        pieces = (self._grammar[part] if n % 2 else _literal(part) for n, part in enumerate(parts))
        return re.compile("".join(f"(?:{piece})" for piece in pieces), re.IGNORECASE)


def _at_any_hour(found: re.Match[str]) -> str:
    """The verb before a time, which is another one at one o'clock, as a mark."""
    return _SPANISH_VERB if found[1].casefold() in ("son las", "es la") else _PORTUGUESE_VERB


def _literal(text: str) -> str:
    escaped = re.escape(text).replace(_SPANISH_VERB, "(?:son las|es la) ")
    return escaped.replace(_PORTUGUESE_VERB, "(?:são|é) ")


def says_something(expected: JSON) -> bool:
    """Whether there are letters left beside the placeholders, so that not just any answer fits."""
    letters = sum(sum(map(str.isalnum, _PLACEHOLDER.sub("", text))) for text in _texts(expected))
    return letters >= FEWEST_LETTERS


def _texts(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _date_grammar() -> str:
    """Dates as es, pt and en write them, and as ISO 8601 and slashes do."""
    from babel import Locale  # late: only a transcript needs it

    locales = [Locale.parse(language) for language in _LANGUAGES]
    month = _one_of(name for one in locales for name in _names(one.months))
    day = _one_of(name for one in locales for name in _names(one.days))
    number, year = r"\d{1,2}(?:º|st|nd|rd|th)?", r"\d{4}"
    words = (
        rf"(?:(?:{day}),? (?:the )?)?(?:{number}(?: de)? (?:{month})|(?:{month}) {number})"
        rf"(?:(?: de|,)? {year})?"
    )
    return rf"(?:{words}|\d{{4}}-\d\d-\d\d|\d{{1,2}}/\d{{1,2}}/\d{{2,4}})"


def _names(calendar: Mapping[str, JSON]) -> Iterator[str]:
    for form in ("wide", "abbreviated"):
        yield from calendar["format"][form].values()


def _one_of(names: Iterator[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(set(names), key=len, reverse=True))
