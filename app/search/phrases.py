"""Example phrases with `{slots}`, taken apart.

A phrase may also give values: `{status=done}`. Three values are special: `it` (what was talked about), `same`
(the value it had in what was talked about, or none; `all` is no such value) and `*` (the whole message).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from app.search.words import ALL_STOP_WORDS, WORDS, Word, spans

IT = "it"
SAME = "same"
ALL = "*"
EVERYTHING = "all"
_ENOUGH_SMALL_WORDS = 4  # to be a phrase of their own: "what did I tell you about {query}"
_APART: Mapping[str, tuple[str, ...]] = {
    **{"whats": ("what", "s"), "hows": ("how", "s"), "wheres": ("where", "s"), "whos": ("who", "s")},
    **{"im": ("i", "m"), "dont": ("don", "t"), "oq": ("o", "que"), "thats": ("that", "s")},
}
_PAST = ("é", "ó")  # "borré", "canceló" tell of what was done
_PLACEHOLDER = re.compile(r"\{\w*(?:=[^{}]*)?\}")
_GIVEN = re.compile(r"\s*\{\w+=[^{}]*\}")
_PART = re.compile(r"\{(\w+)(?:=([^{}]*))?\}|([^{}]+)")


@dataclass(frozen=True)
class Literal:
    """A word of a phrase; `tells_past`: it is written with the accent of a past tense."""

    text: str
    tells_past: bool = False


@dataclass(frozen=True)
class Slot:
    """A gap of a phrase; slots side by side are one, of several names."""

    names: tuple[str, ...]
    needs_colon: bool = False


@dataclass(frozen=True)
class Template:
    """An example phrase of a tool, taken apart."""

    tool: str
    phrase: str
    parts: tuple[Literal | Slot, ...]
    given: tuple[tuple[str, str], ...] = ()  # values that the phrase itself gives, by parameter

    @cached_property
    def literals(self) -> tuple[str, ...]:
        return tuple(part.text for part in self.parts if isinstance(part, Literal))

    @cached_property
    def telling(self) -> frozenset[str]:
        """Return its words that are no stop words."""
        return frozenset(self.literals) - ALL_STOP_WORDS

    @cached_property
    def needed(self) -> frozenset[str]:
        """Return the words without which no sentence fits it."""
        return frozenset(self.literals) - WORDS["little"]

    @property
    def begins_in_slot(self) -> bool:
        return isinstance(self.parts[0], Slot)

    @property
    def last_slot(self) -> str:
        """Return the name of the single slot that ends the phrase, "" if none does."""
        last = self.parts[-1] if self.parts else None
        return last.names[0] if isinstance(last, Slot) and len(last.names) == 1 else ""

    @property
    def points(self) -> bool:
        """Tell whether it is about what was talked about: "cancel it"."""
        return any(value in (IT, SAME) for _, value in self.given)

    @property
    def takes_all(self) -> bool:
        """Tell whether a value that the phrase gives is the whole message."""
        return any(value == ALL for _, value in self.given)

    @property
    def is_vague(self) -> bool:
        """Tell whether its words are so few and so small that any message may hold them."""
        return not self.telling and len(self.literals) < _ENOUGH_SMALL_WORDS


@lru_cache(maxsize=65536)
def read_template(tool: str, phrase: str) -> Template:
    """Take a phrase apart."""
    parts: list[Literal | Slot] = []
    given: list[tuple[str, str]] = []
    gap = ""  # between a slot and the part before
    for name, value, text in _PART.findall(phrase):
        if value:
            given.append((name, value))
        elif not name:
            parts += [Literal(one.text, tells_past(text, one)) for one in said_words(text)]
            gap = text
        elif parts and isinstance(parts[-1], Slot) and not gap.strip():
            parts[-1] = Slot((*parts[-1].names, name), parts[-1].needs_colon)
        else:
            parts.append(Slot((name,), gap.rstrip().endswith(":")))
            gap = ""
    return Template(tool, phrase, tuple(parts), tuple(given))


def said_words(text: str) -> list[Word]:
    """Return the words of a text, those written as one apart: "what", "s" of "whats"."""
    apart = (
        [Word(part, word.start, word.end) for part in _APART.get(word.text, (word.text,))]
        for word in spans(text)
    )
    return list(chain.from_iterable(apart))


def tells_past(text: str, word: Word) -> bool:
    return word.end - word.start > 2 and text[word.end - 1].lower() in _PAST


def tells_deed(text: str) -> bool:
    """Tell whether a text begins with what was done, by the accent: "hablé con Ana", "Juan llegó"."""
    found = spans(text)[:3]
    verb = next((one for one in found if one.text not in ALL_STOP_WORDS), None)
    past = (one for one in found if tells_past(text, one) and one.text != "cafe")
    return any(one is verb or text[one.end - 1] == "ó" for one in past)


def run_on(before: Template | None, after: Template | None) -> bool:
    """Tell whether one ends and the other begins in a slot: an "and" between them may part nothing."""
    ends = before is not None and isinstance(before.parts[-1], Slot)
    return ends and after is not None and after.begins_in_slot


def can_fill(phrases: Iterable[str], required: Iterable[str]) -> bool:
    """Tell whether a tool's phrases say all that it requires; True for a tool without phrases."""
    listed = list(phrases)
    named = {name for phrase in listed for name, _, _ in _PART.findall(phrase)}
    return not listed or named.issuperset(required)


def without_slots(phrase: str) -> str:
    """Return an example phrase without its `{slots}`."""
    return _PLACEHOLDER.sub(" ", phrase) if "{" in phrase else phrase


def without_given(phrase: str) -> str:
    """Return an example phrase without the values (`{status=done}`) that its words stand for."""
    return _GIVEN.sub("", phrase)
