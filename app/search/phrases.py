"""Example phrases with `{slots}`, aligned to what a person wrote despite accents, courtesies, clitics, typos.

A phrase may also give values: `{status=done}`. Three values are special: `it` (what was talked about), `same`
(the value it had in what was talked about, or none) and `*` (the whole message).
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import dropwhile, takewhile
from operator import itemgetter
from typing import NamedTuple

from app.search.words import ALL_STOP_WORDS, WORDS, Word, content, spaced, spans, stem, words

IT = "it"
SAME = "same"
ALL = "*"
MAX_WORDS = 40  # of a message that are aligned; a slot at the end still takes all the rest
_GOOD_ENOUGH = 0.7
_STOP_WEIGHT = 0.35
_SKIPPED = {"courtesy": 0.02, "stop": 0.1, "content": 0.8, "reversing": 9.0}
_LEFT_OUT = 0.1
_SLOT_WORD = 0.01
_EMPTY_SLOT = 0.5
_IMPOSSIBLE = -1e9
# So many small words together are a phrase of their own: "what did I tell you about {query}".
_ENOUGH_SMALL_WORDS = 4

_SAME_WORDS = tuple(
    spaced(group)
    for group in (
        "in en em at no na nos nas",
        "of de do da del",
        "para pra for to",
        "para pra a al ao",
        "aqui aca here ca",
    )
)
_SHORT_FORMS: Mapping[str, str] = {
    **dict.fromkeys(("q", "k", "ke", "oq"), "que"),
    **{"d": "de", "xq": "porque", "tbn": "tambien", "bno": "bueno"},
    **{"vc": "voce", "ta": "esta", "qdo": "quando", "qto": "quanto", "qts": "quantos", "qtos": "quantos"},
    **dict.fromkeys(("qnt", "qnto"), "quanto"),
    **{"qnts": "quantos", "qntos": "quantos", "qm": "quem", "vcs": "voces", "hj": "hoje", "tbm": "tambem"},
    **{"pq": "porque", "msg": "mensagem", "vdd": "verdade"},
    **{"u": "you", "whats": "what", "hows": "how", "im": "i", "til": "until", "till": "until"},
    **dict.fromkeys(("tmrw", "tmr", "tomoro"), "tomorrow"),
}
_NEGATIONS = spaced("no nao not don dont never")
_COUNTS = spaced("uno um dos")
_PLACEHOLDER = re.compile(r"\{\w*(?:=[^{}]*)?\}")
_GIVEN = re.compile(r"\s*\{\w+=[^{}]*\}")
_PART = re.compile(r"\{(\w+)(?:=([^{}]*))?\}|([^{}]+)")
_USTED = re.compile(r"(\w{2,})e((?:me|le|nos)(?:l[oa]s?)?)")
_CLITIC = re.compile(r"(?:me|te|se|nos|le|les|os)?(?:lo|la|los|las|me|te|se|nos|le|les)$")
_BEFORE_NAMES = frozenset(("em", "en", "in", "de", "do", "da", "del", "na"))
_OPENING = " \t\n:;,–—"
_CLOSING = " \t\n:;,.?!¿¡"
_PLEASE = re.compile(r"[\s,.]+(?:por ?favor|porfa|porfis|please|pls|plz|pfv?)[\s.!?]*$", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'", "‘": "’", "”": "”"}


@dataclass(frozen=True)
class Literal:
    """A word of a phrase."""

    text: str
    is_content: bool

    @property
    def weight(self) -> float:
        return 1.0 if self.is_content else _STOP_WEIGHT


@dataclass(frozen=True)
class _Slot:
    names: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """An example phrase of a tool, taken apart."""

    tool: str
    phrase: str
    parts: tuple[Literal | _Slot, ...]
    needs_colon: bool = False
    given: tuple[tuple[str, str], ...] = ()  # values that the phrase itself gives, by parameter

    @cached_property
    def weight(self) -> float:
        return sum(part.weight for part in self.parts if isinstance(part, Literal))

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """Return its words that are no stop words."""
        return tuple(part.text for part in self.parts if isinstance(part, Literal) and part.is_content)

    @property
    def last_slot(self) -> str:
        """Return the name of the single slot that ends the phrase, "" if none does."""
        last = self.parts[-1] if self.parts else None
        return last.names[0] if isinstance(last, _Slot) and len(last.names) == 1 else ""

    @property
    def closing(self) -> tuple[str, ...]:
        """Return its words after the first slot."""
        after = dropwhile(lambda part: isinstance(part, Literal), self.parts)
        return tuple(part.text for part in after if isinstance(part, Literal))

    def begins_with(self, word: str) -> bool:
        return bool(self.parts) and isinstance(self.parts[0], Literal) and self.parts[0].text == word

    @property
    def begins_in_a_slot(self) -> bool:
        return bool(self.parts) and isinstance(self.parts[0], _Slot)

    @property
    def points(self) -> bool:
        """Tell whether it is about what was talked about: "cancel it"."""
        return any(value in (IT, SAME) for _, value in self.given)

    @property
    def takes_all(self) -> bool:
        """Tell whether a value that the phrase gives is the whole message."""
        return any(value == ALL for _, value in self.given)

    def is_loose(self, text: str) -> bool:
        """Tell whether a message lacks a word that the phrase must have, or has more where it keeps the rest.

        "You never remember that" is no "{fact} remember that", "forget that my name is Al" no "my name is
        {fact}", and "forget that …" no "don't forget that {fact}".
        """
        said, told = [word.text for word in spans(text)], set(self.telling)
        opening = [part.text for part in self.parts[:2] if isinstance(part, Literal)]
        if any(word in _NEGATIONS and word not in said for word in opening):
            return True
        if self.begins_in_a_slot:
            ends = next((at for at, word in enumerate(said) if at and word in told), 0)
            return not told.issubset(said) or said[ends - 1] in WORDS["reversing"].difference(opening)
        if not self.takes_all:
            return False
        begins = {opening[0]} if opening[0] in said else told
        before = takewhile(lambda word: word not in begins, said)
        return not told.issubset(said) or not ALL_STOP_WORDS.issuperset(before)

    @property
    def is_vague(self) -> bool:
        """Tell whether its words are so few and so small that any message may hold them."""
        literals = sum(isinstance(part, Literal) for part in self.parts)
        return not self.telling and literals < _ENOUGH_SMALL_WORDS


@dataclass(frozen=True)
class Alignment:
    """A template that fits, and the text that each slot took; slots side by side share one text."""

    template: Template
    strength: float
    values: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()  # words of the message that are neither in the phrase nor in a slot


@lru_cache(maxsize=65536)
def read_template(tool: str, phrase: str) -> Template:
    """Take a phrase apart; slots side by side become one, of several names."""
    parts: list[Literal | _Slot] = []
    given: list[tuple[str, str]] = []
    for name, value, text in _PART.findall(phrase):
        if value:
            given.append((name, value))
        elif not name:
            parts += [Literal(word.text, word.text not in ALL_STOP_WORDS) for word in spans(text)]
        elif parts and isinstance(parts[-1], _Slot):
            parts[-1] = _Slot((*parts[-1].names, name))
        else:
            parts.append(_Slot((name,)))
    # What stands before a colon ("note: …", "shopping list: …") is too common to mean anything without it.
    return Template(tool, phrase, tuple(parts), bool(re.search(r":\s*\{", phrase)), tuple(given))


def align(text: str, templates: Iterable[Template]) -> list[Alignment]:
    """Return the templates that fit `text` well enough, the strongest first."""
    said = unicodedata.normalize("NFC", text)
    words = spans(said)[:MAX_WORDS]
    heard = _Heard(words)
    found = [
        alignment
        for template in templates
        if heard.may_fit(template) and (alignment := _align(said, words, template)) is not None
    ]
    return sorted(
        found, key=lambda one: (-one.strength, one.template.points, one.template.tool, one.template.phrase)
    )


def trimmed(raw: str) -> str:
    """Return a slot's text without the punctuation around it."""
    text = _PLEASE.sub("", raw.strip().lstrip(_OPENING)).rstrip()
    return text.rstrip("'’") if text[:1] not in _QUOTES else text  # "Sofía's birthday"


def unquoted(text: str) -> str:
    """Return a slot's text without quotes that hold all of it."""
    if len(text) > 2 and text[0] in _QUOTES and text.rstrip(_CLOSING).endswith(_QUOTES[text[0]]):
        return text.rstrip(_CLOSING)[1:-1].strip()
    return text


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


class _Heard:
    """The words of a message, asked for the same few hundred words by thousands of phrases."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = [word.text for word in words]
        self._stems = {form for word in self._words for form in _forms(word)}
        self._known: dict[str, bool] = {}

    def may_fit(self, template: Template) -> bool:
        if not template.parts or not self._words:
            return False
        return all(map(self._holds, template.telling))

    def _holds(self, word: str) -> bool:
        if word not in self._known:
            self._known[word] = stem(word) in self._stems or any(_is_near(word, said) for said in self._words)
        return self._known[word]


def _align(said: str, words: Sequence[Word], template: Template) -> Alignment | None:
    if template.needs_colon and not re.search(r"\w\s*[:\n–—-]", said):
        return None
    if not template.weight:
        return None
    strength, slots = _Fit(words, template).best(0, 0)
    if strength / template.weight < _GOOD_ENOUGH:
        return None
    if len(template.parts) == 2 and len(template.telling) == 1:
        first = slots[0].first if slots else 0
        if first >= 2 and words[first - 2].text in WORDS["determiners"] | _BEFORE_NAMES:
            return None  # spoken of: "the note was lost" is no "note {text}", "em Salvador" no "salva {text}"
    values = {}
    for slot in slots:
        start = words[slot.first - 1].end if slot.first else 0
        end = len(said) if slot.after >= len(words) else words[slot.after].start
        values[slot.names] = trimmed(said[start:end])
    told = [part.text for part in template.parts if isinstance(part, Literal)]
    skipped = (
        word.text
        for at, word in enumerate(words)
        if not any(slot.first <= at < slot.after for slot in slots)
        and not any(_quality(word.text, literal) for literal in told)
    )
    return Alignment(template, strength, values, tuple(skipped))


class _Filled(NamedTuple):
    """A slot, its first word and the word after its last."""

    names: tuple[str, ...]
    first: int
    after: int


_Best = tuple[float, tuple[_Filled, ...]]


class _Fit:
    """The best way to fit a template to a message: which word is a literal, which fill a slot."""

    def __init__(self, words: Sequence[Word], template: Template) -> None:
        self._words = [word.text for word in words]
        self._parts = template.parts
        self._only_small_words = not template.telling
        self._known: dict[tuple[int, int], _Best] = {}

    def best(self, part: int, word: int) -> _Best:
        """Return the score of the parts from `part` on in the words from `word` on, and their slots."""
        key = (part, word)
        if key not in self._known:
            self._known[key] = max(self._ways(part, word), key=itemgetter(0), default=(_IMPOSSIBLE, ()))
        return self._known[key]

    def _ways(self, part: int, word: int) -> Iterator[_Best]:
        if part == len(self._parts):
            yield -sum(self._skipping(at, part) for at in range(word, len(self._words))), ()
        elif isinstance(current := self._parts[part], _Slot):
            is_last = part == len(self._parts) - 1
            for after in range(len(self._words) if is_last else word + 1, len(self._words) + 1):
                if after > word:
                    score, slots = self.best(part + 1, after)
                    score -= _SLOT_WORD * (after - word) + self._emptiness(word, after)
                    yield score, (_Filled(current.names, word, after), *slots)
        else:
            yield from self._literal(current, part, word)

    def _literal(self, literal: Literal, part: int, word: int) -> Iterator[_Best]:
        # without its "in", "weather in {place}" would take anything
        leads_to_slot = part + 1 < len(self._parts) and isinstance(self._parts[part + 1], _Slot)
        if not literal.is_content and not self._only_small_words and not leads_to_slot:
            yield self._less(_LEFT_OUT, part + 1, word)
        if word < len(self._words):
            if quality := _quality(self._words[word], literal.text):
                yield self._less(-literal.weight * quality, part + 1, word + 1)
            yield self._less(self._skipping(word, part), part, word + 1)

    def _less(self, cost: float, part: int, word: int) -> _Best:
        score, slots = self.best(part, word)
        return score - cost, slots

    def _emptiness(self, start: int, end: int) -> float:
        # "anota uno" means the word: "uno", "um" and "dos" are small words only within a sentence
        if start + 1 == end == len(self._words) and self._words[start] in _COUNTS:
            return 0.0
        return _EMPTY_SLOT if ALL_STOP_WORDS.issuperset(self._words[start:end]) else 0.0

    def _skipping(self, word: int, part: int) -> float:
        text = self._words[word]
        if part == 0 and text in WORDS["reversing"]:
            return _SKIPPED["reversing"]
        kind = "courtesy" if text in WORDS["courtesies"] else "stop" if text in ALL_STOP_WORDS else "content"
        return _SKIPPED[kind]


@lru_cache(maxsize=16384)
def _quality(said: str, wanted: str) -> float:
    if said == wanted:
        return 1.0
    if _as_tu(said) == wanted:
        return 0.98
    if said.endswith("s") and not wanted.endswith("s") and stem(said) == stem(wanted):
        return 0.6  # "notes are great" is no "note {text}"; a longer phrase survives the doubt
    if any(said in group and wanted in group for group in _SAME_WORDS):
        return 0.8
    if _SHORT_FORMS.get(said) == wanted:
        return 0.95
    if said in WORDS["reversing"]:
        return 0.0  # "salvo" (but for) is no "salva"
    if stem(wanted) in _forms(said) and (said in ALL_STOP_WORDS) == (wanted in ALL_STOP_WORDS):
        return 0.95  # "not" is no "note"
    return 0.85 if _is_near(said, wanted) else 0.0


@lru_cache(maxsize=16384)
def _forms(word: str) -> frozenset[str]:
    """Return the stems a word may stand for: its own, its long form's, the bare verb's (anótame → anota)."""
    bare = _CLITIC.sub("", word)
    return frozenset(
        {
            stem(word),
            stem(_as_tu(word)),
            stem(_SHORT_FORMS.get(word, word)),
            stem(bare if len(bare) >= 4 else word),
        }
    )


def _as_tu(word: str) -> str:
    """Return "recuérdeme" (to somebody called usted) as "recuérdame"; without its clitic it may be a past."""
    said = _USTED.fullmatch(word)
    if said is None:
        return word
    root = re.sub("qu$", "c", said[1])
    return f"{re.sub('gu$', 'g', root)}a{said[2]}"


def _is_near(one: str, other: str) -> bool:
    """Tell whether two longer words differ by one letter: left out, added, changed, or swapped."""
    if one[0] != other[0] or abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 6:
        return False
    if len(one) != len(other):
        return other in _with_one_left_out(one) or one in _with_one_left_out(other)
    changed = [at for at in range(len(one)) if one[at] != other[at]]
    if len(changed) == 2 and changed[1] == changed[0] + 1:
        return one[changed[0]] == other[changed[1]] and one[changed[1]] == other[changed[0]]
    return len(changed) == 1


@lru_cache(maxsize=16384)
def _with_one_left_out(word: str) -> frozenset[str]:
    return frozenset(word[:at] + word[at + 1 :] for at in range(len(word)))


def is_thing(clause: str, template: Template) -> bool:
    """Tell whether the word of an order is a thing here, as in "remove diapers, wipes from the list"."""
    first = next(iter(template.telling), "")
    said = next((word for word in words(clause) if stem(word) == stem(first)), "")
    return said.endswith("s") and not first.endswith("s") and template.begins_with(first)


def says_more(clause: str, template: Template) -> bool:
    """Tell whether a clause and a phrase without slots differ: "delete that reminder", "all reminders"."""
    known = {stem(word) for word in words(without_slots(template.phrase))}
    known |= {stem(word) for word in WORDS["courtesies"]}
    said = {(stem(word), word.endswith("s")) for word in words(clause)}
    lacks = any((stem(word), word.endswith("s")) not in said for word in template.telling)
    return lacks or any(stem(word) not in known for word in content(words(clause)))
