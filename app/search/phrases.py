"""Example phrases with `{slots}`, taken apart, and the ways in which a person's sentence fits them.

A phrase may also give values: `{status=done}`. Three values are special: `it` (what was talked about), `same`
(the value it had in what was talked about, or none; `all` is no such value) and `*` (the whole message).
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice

from app.search.words import ALL_STOP_WORDS, WORDS, Word, any_word, spaced, spans, stem
from app.text import fold

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

_MOST_WAYS = 8  # in which one template fits
_LONGEST_LOOSE = 40  # words of a sentence in which small words may be skipped
_ALIKE = tuple(words for name, words in WORDS.items() if name.startswith("alike_"))
_MEANT: Mapping[str, str] = {
    word: name.removeprefix("means_")
    for name, words in WORDS.items()
    if name.startswith("means_")
    for word in words
}
_MAY_BE_SKIPPED = (  # in a question
    (ALL_STOP_WORDS | WORDS["leading"]) - WORDS["unsure"] - WORDS["pointing_small"]
) | spaced("what which qual cual quais cuales")
_USTED = re.compile(r"(\w{2,})e((?:me|le|nos)(?:l[oa]s?)?)")
_CLITIC = re.compile(r"(\w{3,})(?:me|nos|les?)")
_COLON = re.compile(r"[:\n–—-]")
_OPENING = " \t\n:;,–—"
_CLOSING = " \t\n:;,.?!¿¡"
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'", "‘": "’", "”": "”"}
_AT_THE_END = re.compile(
    rf"(?:[\s,.;!]+{any_word('closing')}\b[\s.!]*|\s*,\s*{any_word('closing_apart')}\b[\s.!]*)+$",
    re.IGNORECASE,
)
_ENDS_OPEN = re.compile(rf"(?<![.\w]){any_word('open_end')}$")


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


@dataclass(frozen=True)
class Filled:
    """A slot, the text that it took, and the words of it."""

    names: tuple[str, ...]
    text: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Fit:
    """A way in which a sentence fits a template; `loose`: how many small words only one of them has."""

    template: Template
    slots: tuple[Filled, ...]
    literals: int
    loose: int


_Way = tuple[tuple[Filled, ...], int, int]  # the slots, the literals, the small words of a rest


class Sentence:
    """A person's sentence as words; tells in which ways all of it fits a template."""

    def __init__(self, text: str) -> None:
        self.text = unicodedata.normalize("NFC", text)
        self.words = said_words(self.text)
        self.forms = [forms(word.text) for word in self.words]
        self._known = frozenset[str]().union(*self.forms)
        self._stems = frozenset(map(stem, self._known))

    def fits(self, template: Template, *, loosely: bool) -> list[Fit]:
        """Return the ways in which all of it fits a template.

        `loosely`: small words may be skipped, and other forms of a word are as good.
        """
        loosely = loosely and len(self.words) <= _LONGEST_LOOSE
        if loosely:
            may = all(stem(word) in self._stems for word in template.telling)
        else:
            may = self._known.issuperset(template.needed)
        if not may or not template.literals or not self.words:
            return []
        ways = islice(_Fitting(self, template, loosely).ways(), _MOST_WAYS)
        return list({tuple(slot.text for slot in way.slots): way for way in reversed(list(ways))}.values())

    def piece(self, first: int, after: int) -> str:
        """Return the text of some words."""
        start = self.words[first - 1].end if first else 0
        end = len(self.text) if after >= len(self.words) else self.words[after].start
        text = self.text[start:end]
        return trimmed(text if end == len(self.text) else text.rstrip(_OPENING))


class _Fitting:
    """The ways to read a sentence as a template: which word is a literal, which fill a slot."""

    def __init__(self, said: Sentence, template: Template, loosely: bool) -> None:
        self._said = said
        self._template = template
        self._parts = template.parts
        self._loosely = loosely
        self._end = len(said.words)
        self._dead: set[tuple[int, int]] = set()  # parts and words from where nothing fits

    def ways(self) -> Iterator[Fit]:
        for start in range(self._end):
            for slots, literals, loose in self._from(0, start):
                yield Fit(self._template, slots, literals, loose)
            if self._said.words[start].text not in WORDS["leading"] or self._template.begins_in_slot:
                return

    def _from(self, part: int, word: int, *, loose: int = 0) -> Iterator[_Way]:
        if (part, word) in self._dead:
            return
        found = False
        for slots, literals, more in self._steps(part, word):
            found = True
            yield slots, literals, loose + more
        if not found:
            self._dead.add((part, word))

    def _steps(self, part: int, word: int) -> Iterator[_Way]:
        current = self._parts[part] if part < len(self._parts) else None
        if isinstance(current, Slot):
            yield from self._filled(current, part, word)
        elif current is None and word == self._end:
            yield (), 0, 0
        elif word < self._end:
            unlike = self._unlike(word, current) if current is not None else None
            if unlike is not None:
                for slots, literals, loose in self._from(part + 1, word + 1, loose=unlike):
                    yield slots, literals + 1, loose
            if self._may_skip(part, word):
                yield from self._from(part, word + 1, loose=1)
        if isinstance(current, Literal) and self._may_lack(part, current):
            yield from self._from(part + 1, word, loose=1)

    def _filled(self, slot: Slot, part: int, word: int) -> Iterator[_Way]:
        is_last = part + 1 == len(self._parts)
        for after in range(max(self._end, word + 1) if is_last else word + 1, self._end + 1):
            if self._is_apart(after) and self._has_colon(slot, word):
                for slots, literals, loose in self._from(part + 1, after):
                    taken = tuple(self._said.words[word:after])
                    filled = Filled(slot.names, self._said.piece(word, after), taken)
                    yield (filled, *slots), literals + slot.needs_colon, loose

    def _unlike(self, word: int, literal: Literal) -> int | None:
        """Return 0 for the literal's word, 1 for one that does as well, None for another."""
        said = self._said.words[word]
        if literal.text in self._said.forms[word]:
            is_past = tells_past(self._said.text, said) and not literal.tells_past
            return None if is_past and not self._loosely else 0
        are_little = {said.text, literal.text} <= WORDS["little"] - WORDS["possessives"]
        is_small = said.text in ALL_STOP_WORDS or literal.text in ALL_STOP_WORDS
        may_vary = self._loosely and not is_small and said.text not in WORDS["reminding"]
        is_form = may_vary and stem(said.text) == stem(literal.text)  # "recuerda" is no "recuerdas"
        return 1 if are_little or is_form else None

    def _may_skip(self, part: int, word: int) -> bool:
        text = self._said.words[word].text
        is_after_slot = part > 0 and isinstance(self._parts[part - 1], Slot)
        if self._loosely:
            return text in (WORDS["leading"] if is_after_slot else _MAY_BE_SKIPPED)
        if part == 0 or part >= len(self._parts) or is_after_slot or text not in WORDS["little"]:
            return False
        after = self._parts[part]  # "note what she said" is no "note that …"
        return not (isinstance(after, Literal) and after.text in WORDS["what"])

    def _may_lack(self, part: int, literal: Literal) -> bool:
        if self._loosely:
            leads_to_slot = part + 1 < len(self._parts) and isinstance(self._parts[part + 1], Slot)
            is_needed = part == 0 or leads_to_slot or literal.text in WORDS["asking"]
            return literal.text in ALL_STOP_WORDS and bool(self._template.telling) and not is_needed
        return part > 0 and literal.text in WORDS["little"] - WORDS["possessives"]

    def _is_apart(self, word: int) -> bool:
        """Tell whether a word is not the inner part of a longer one, such as "github-mcp-server"."""
        return word == self._end or self._said.text[self._said.words[word].start - 1] not in "-/._@"

    def _has_colon(self, slot: Slot, word: int) -> bool:
        words = self._said.words
        between = self._said.text[words[word - 1].end if word else 0 : words[word].start]
        return not slot.needs_colon or _COLON.search(between) is not None


@lru_cache(maxsize=16384)
def forms(word: str) -> frozenset[str]:
    """Return the words that a person may mean: "q" is "que", "bórreme" is "borra", "do" is "de"."""
    found = {word, _MEANT.get(word, word)}
    if said := _USTED.fullmatch(word):  # to somebody called usted
        root = re.sub("gu$", "g", re.sub("qu$", "c", said[1]))
        found.add(f"{root}a{said[2]}")
    bare = {match[1] for one in found if (match := _CLITIC.fullmatch(one))}
    found |= bare - WORDS["reminding"]  # "recuérdame" is not "recuerda"
    return frozenset(found).union(*(group for group in _ALIKE if not found.isdisjoint(group)))


def trimmed(raw: str) -> str:
    """Return a slot's text without the punctuation around it."""
    text = raw.strip().lstrip(_OPENING).rstrip()
    return text.rstrip("'’") if text[:1] not in _QUOTES else text  # "Sofía's birthday"


def unquoted(text: str) -> str:
    """Return a slot's text without quotes that hold all of it."""
    bare = text.rstrip(_CLOSING)
    mark = _QUOTES.get(text[:1]) if len(text) > 2 else None
    return bare[1:-1].strip() if mark and bare.find(mark, 1) == len(bare) - 1 else text


def without_courtesies(text: str) -> str:
    """Return a message without the courtesies at its end, unless they belong to it: "call the dude"."""
    bare = _AT_THE_END.sub("", text)
    return text if _ENDS_OPEN.search(fold(bare)) else bare
