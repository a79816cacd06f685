"""Example phrases with `{slots}`, aligned to what a person wrote despite accents, courtesies, clitics."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from app.search.words import ALL_STOP_WORDS, Word, spaced, spans, stem

IT = "it"
"""What a phrase such as "cancel it" gives for what was talked about."""
SAME = "same"
"""What a phrase such as "add {items}" gives that means something only where its kind was talked about: the
same as there, or nothing."""
ALL = "*"
"""What a phrase such as "my name is …" gives where all that was said is meant."""
GOOD_ENOUGH = 0.7
MOST_WORDS = 40
"""Only so many words of a message are aligned; a slot at the end still takes all the rest."""

COURTESIES = spaced(
    """
    decir decirme dizer diz dizes podrias favorcito
    hola oye che hey hi hello oi ola please pls plz pfv porfa porfavor favor por can could would you me
    puedes puede podes podrias podria pode poderia dime decime deci diga tell quiero quisiera
    necesito quero preciso gostaria want need like know saber sabes sabe to i the a el la o um una
    un uma ahora ahorita agora now right currently bueno buenas buenos dias tardes noches bom dia
    boa tarde noite gracias thanks thank obrigado obrigada mismo mesmo ya ja just also tambien
    tambem entonces so ok vale pues y e and espera espere esperate wait pera perai digo perdon oops ops uy
    """
)
_SAME = tuple(
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
    **{"qnts": "quantos", "qntos": "quantos", "qm": "quem", "vcs": "voces", "oq": "que"},
    **{"hj": "hoje", "tbm": "tambem", "pq": "porque", "msg": "mensagem"},
    **{"u": "you", "whats": "what", "hows": "how", "im": "i", "til": "until", "till": "until"},
    **dict.fromkeys(("tmrw", "tmr", "tomoro"), "tomorrow"),
}
_STOP_WEIGHT = 0.35
_SKIPPED = {"courtesy": 0.02, "stop": 0.1, "content": 0.8}
_ARTICLES = spaced("the a an my el la los las un una mi tu o os as um uma minha meu esa ese this that")
_COUNTS = spaced("uno um dos")
_ENOUGH_SMALL_WORDS = 4
"""So many small words together are a phrase of their own: "what did I tell you about {query}"."""
_LEFT_OUT = 0.1
_SLOT_WORD = 0.01
_EMPTY_SLOT = 0.5
_IMPOSSIBLE = -1e9

_PART = re.compile(r"\{(\w+)(?:=([^{}]*))?\}|([^{}]+)")
_CLITIC = re.compile(r"(?:me|te|se|nos|le|les|os)?(?:lo|la|los|las|me|te|se|nos|le|les)$")
_OPENING = " \t\n:;,–—"
_CLOSING = " \t\n:;,.?!¿¡"
_PLEASE = re.compile(r"[\s,.]+(?:por ?favor|porfa|please|pls|plz|pfv?)[\s.!?]*$", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'", "‘": "’", "”": "”"}


@dataclass(frozen=True, slots=True)
class _Literal:
    text: str
    content: bool

    @property
    def weight(self) -> float:
        return 1.0 if self.content else _STOP_WEIGHT


@dataclass(frozen=True, slots=True)
class _Slot:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """One example phrase of a tool, taken apart."""

    tool: str
    phrase: str
    parts: tuple[_Literal | _Slot, ...]
    needs_colon: bool = False
    given: tuple[tuple[str, str], ...] = ()
    """Values that the phrase itself stands for, by parameter: `{status=done}`."""
    telling: tuple[str, ...] = ()
    """Its words that are no small ones."""

    @property
    def weight(self) -> float:
        return sum(part.weight for part in self.parts if isinstance(part, _Literal))

    @property
    def last_slot(self) -> str:
        """The name of the single slot that ends the phrase; "" where none does."""
        last = self.parts[-1] if self.parts else None
        return last.names[0] if isinstance(last, _Slot) and len(last.names) == 1 else ""

    @property
    def points(self) -> bool:
        """Whether it is about what was talked about: "cancel it"."""
        return any(value in (IT, SAME) for _, value in self.given)

    @property
    def contents(self) -> int:
        return sum(part.content for part in self.parts if isinstance(part, _Literal))

    @property
    def is_vague(self) -> bool:
        """Whether its words are so few and so small that any message may hold them."""
        literals = sum(isinstance(part, _Literal) for part in self.parts)
        return self.contents == 0 and literals < _ENOUGH_SMALL_WORDS


@dataclass(frozen=True, slots=True)
class Alignment:
    """How well a template fits, and the text each slot took (as written, not yet typed).

    Slots side by side share one text.
    """

    template: Template
    score: float
    strength: float
    values: Mapping[tuple[str, ...], str] = field(default_factory=dict)


@lru_cache(maxsize=65536)
def read_template(tool: str, phrase: str) -> Template:
    """Takes a phrase apart; slots side by side are one, of several names."""
    parts: list[_Literal | _Slot] = []
    given: list[tuple[str, str]] = []
    for name, value, text in _PART.findall(phrase):
        if value:
            given.append((name, value))
        elif not name:
            parts += [_literal(word.text) for word in spans(text)]
        elif parts and isinstance(parts[-1], _Slot):
            parts[-1] = _Slot((*parts[-1].names, name))
        else:
            parts.append(_Slot((name,)))
    literals = [part for part in parts if isinstance(part, _Literal)]
    # A single word before a colon ("note: …") is too common a word to mean anything without the colon.
    needs_colon = len(literals) == 1 and bool(re.search(r":\s*\{", phrase))
    telling = tuple(part.text for part in literals if part.content)
    return Template(tool, phrase, tuple(parts), needs_colon, tuple(given), telling)


@lru_cache(maxsize=16384)
def _literal(word: str) -> _Literal:
    """One for all phrases that hold the word: thousands hold a few hundred."""
    return _Literal(word, word not in ALL_STOP_WORDS)


def align(text: str, templates: Iterable[Template]) -> list[Alignment]:
    """The templates that fit `text` well enough, the strongest first."""
    said = unicodedata.normalize("NFC", text)
    words = spans(said)[:MOST_WORDS]
    heard = _Heard(words)
    found = [
        alignment
        for template in templates
        if _may_fit(template, heard) and (alignment := _align(said, words, template)) is not None
    ]
    return sorted(found, key=lambda one: (-one.strength, one.template.tool, one.template.phrase))


class _Heard(dict[str, bool]):
    """Whether a message holds a word or one like it; thousands of phrases ask for the same few hundred."""

    def __init__(self, words: Sequence[Word]) -> None:
        super().__init__()
        self.words = [word.text for word in words]
        self._stems = {form for word in self.words for form in _forms(word)}
        self._by_letter: dict[str, list[str]] = {}
        for word in self.words:
            self._by_letter.setdefault(word[0], []).append(word)

    def __missing__(self, word: str) -> bool:
        near = self._by_letter.get(word[0], ())  # one that begins otherwise is not near
        self[word] = stem(word) in self._stems or any(_near(word, said) for said in near)
        return self[word]


def _may_fit(template: Template, heard: _Heard) -> bool:
    if not template.parts or not heard.words:
        return False
    may_lack = int(len(template.telling) >= 3)
    for word in template.telling:
        if not heard[word]:
            if not may_lack:
                return False
            may_lack -= 1
    return True


def _align(said: str, words: Sequence[Word], template: Template) -> Alignment | None:
    if template.needs_colon and not re.search(r"\w\s*[:\n–—-]", said):
        return None
    if not template.weight:
        return None
    path = _Path(words, template)
    strength = path.best(0, 0)
    score = strength / template.weight
    if score < GOOD_ENOUGH:
        return None
    if len(template.parts) == 2 and template.contents == 1 and _is_named(words, path):
        return None
    return Alignment(template, score, strength, _values(said, words, template, path))


def _is_named(words: Sequence[Word], path: "_Path") -> bool:
    """Whether an article makes the one literal a thing spoken of: "the note was lost" is no "note {text}"."""
    first = next((first for _, first, _ in path.filled()), 0)
    return first >= 2 and words[first - 2].text in _ARTICLES


class _Path:
    """The best way through a template and a message: which word is which literal, which words fill a slot."""

    def __init__(self, words: Sequence[Word], template: Template) -> None:
        self._words = words
        self._parts = template.parts
        self._may_lose_one = template.contents >= 3
        self._only_small_words = template.contents == 0
        self._known: dict[tuple[int, int], tuple[float, int]] = {}

    def best(self, part: int, word: int) -> float:
        return self._step(part, word)[0]

    def filled(self) -> list[tuple[tuple[str, ...], int, int]]:
        """(slot names, first word, word after the last) along the best way."""
        part = word = 0
        slots = []
        while part < len(self._parts):
            after = self._step(part, word)[1]
            current = self._parts[part]
            if after < 0:
                word += 1
                continue
            if isinstance(current, _Slot):
                slots.append((current.names, word, after))
            part, word = part + 1, after
        return slots

    def _step(self, part: int, word: int) -> tuple[float, int]:
        """(score, the word to go on with after this part; -1: skip this word first)."""
        key = (part, word)
        if key not in self._known:
            self._known[key] = self._compute(part, word)
        return self._known[key]

    def _compute(self, part: int, word: int) -> tuple[float, int]:
        if part == len(self._parts):
            return -sum(self._skipping(at) for at in range(word, len(self._words))), word
        current = self._parts[part]
        options = (
            self._slot_options(part, word)
            if isinstance(current, _Slot)
            else self._literal_options(current, part, word)
        )
        return max(options, default=(_IMPOSSIBLE, word), key=lambda option: option[0])

    def _slot_options(self, part: int, word: int) -> list[tuple[float, int]]:
        last = part == len(self._parts) - 1
        ends = range(word + 1, len(self._words) + 1) if not last else [len(self._words)]
        options = []
        for end in ends:
            if end <= word:
                continue
            empty = self._says_nothing(word, end)
            cost = _SLOT_WORD * (end - word) + (_EMPTY_SLOT if empty else 0.0)
            options.append((self.best(part + 1, end) - cost, end))
        return options

    def _says_nothing(self, start: int, end: int) -> bool:
        # "anota uno" means the word: "uno", "um" and "dos" are small words only within a sentence.
        if start + 1 == end == len(self._words) and self._words[start].text in _COUNTS:
            return False
        return all(word.text in ALL_STOP_WORDS for word in self._words[start:end])

    def _literal_options(self, literal: _Literal, part: int, word: int) -> list[tuple[float, int]]:
        options = []
        if not literal.content and not self._only_small_words and not self._leads_to_slot(part):
            options.append((self.best(part + 1, word) - _LEFT_OUT, word))
        elif literal.content and self._may_lose_one and part:  # never the first: "my last note" deletes none
            options.append((self.best(part + 1, word) - literal.weight / 2, word))
        if word < len(self._words):
            quality = _quality(self._words[word].text, literal.text)
            if quality:
                options.append((literal.weight * quality + self.best(part + 1, word + 1), word + 1))
            options.append((self.best(part, word + 1) - self._skipping(word), -1))
        return options

    def _leads_to_slot(self, part: int) -> bool:
        """Whether a slot follows: without its "in", "weather in {place}" would take anything."""
        return part + 1 < len(self._parts) and isinstance(self._parts[part + 1], _Slot)

    def _skipping(self, word: int) -> float:
        text = self._words[word].text
        kind = "courtesy" if text in COURTESIES else "stop" if text in ALL_STOP_WORDS else "content"
        return _SKIPPED[kind]


def _values(said: str, words: Sequence[Word], template: Template, path: _Path) -> dict[tuple[str, ...], str]:
    values = {}
    for names, first, after in path.filled():
        start = words[first - 1].end if first else 0
        at_end = after >= len(words)
        end = len(said) if at_end else words[after].start
        values[names] = trimmed(said[start:end])
    return values


def trimmed(raw: str) -> str:
    """A slot's text without the punctuation around it and without quotes that hold all of it."""
    text = _PLEASE.sub("", raw.strip().lstrip(_OPENING)).rstrip()
    if len(text) > 2 and text[0] in _QUOTES and text.rstrip(_CLOSING).endswith(_QUOTES[text[0]]):
        return text.rstrip(_CLOSING)[1:-1].strip()
    return text.rstrip("'’") if text[:1] not in _QUOTES else text  # "Sofía's birthday"


@lru_cache(maxsize=16384)
def _quality(said: str, wanted: str) -> float:
    if said == wanted:
        return 1.0
    if said.endswith("s") and not wanted.endswith("s") and stem(said) == stem(wanted):
        # "notes are great" is no "note {text}"; a longer phrase survives the doubt.
        return 0.6
    if any(said in group and wanted in group for group in _SAME):
        return 0.8
    if _SHORT_FORMS.get(said) == wanted:
        return 0.95
    if stem(wanted) in _forms(said) and (said in ALL_STOP_WORDS) == (wanted in ALL_STOP_WORDS):
        return 0.95  # "not" is no "note"
    return 0.85 if _near(said, wanted) else 0.0


@lru_cache(maxsize=16384)
def _forms(word: str) -> frozenset[str]:
    """The stems a word may stand for: its own, its long form's, the bare verb's (anótame → anota)."""
    bare = _CLITIC.sub("", word)
    return frozenset({stem(word), stem(_SHORT_FORMS.get(word, word)), stem(bare if len(bare) >= 4 else word)})


def _near(one: str, other: str) -> bool:
    """Whether two longer words differ by one letter: left out, added, changed, or swapped with the next."""
    if one[0] != other[0] or abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 5:
        return False  # nearly always: not worth a place in memory
    return _one_letter_apart(one, other)


@lru_cache(maxsize=4096)
def _one_letter_apart(one: str, other: str) -> bool:
    at = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    if len(one) == len(other):
        swapped = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
        return one[at + 1 :] == other[at + 1 :] or swapped
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[at + 1 :] == shorter[at:]
