"""The lexicon (lexicon.txt): everyday words of three languages as descriptions of tools say them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from app.search.words import ALL_STOP_WORDS, WORDS, content, is_english, stem, words

Meaning = tuple[str, ...]  # one way to say it in English, word by word
Meanings = tuple[Meaning, ...]

FILE = Path(__file__).with_name("lexicon.txt")
_COLUMNS = 3
_LONGEST_PHRASE = 4
_MOST_WORDS = 4  # of a phrase made of a tool's own texts
_LONGEST_READ = 300
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s|\n")
_CLITICS = re.compile(r"(?:me|te|se|nos|les?|l[oa]s?|lhes?){1,2}$")
_BROKEN_VOWEL = re.compile("ie|ue")
_WHOLE_VOWEL = {"ie": "e", "ue": "o"}
_SINGULAR = {"oes": "ao", "ais": "al", "eis": "el", "ns": "m", "es": "", "s": ""}


@cache
def lexicon() -> "Lexicon":
    """Return the lexicon of the release, read when it is first asked for."""
    return Lexicon(FILE.read_text("utf-8").splitlines())


def rows(lines: Iterable[str]) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Yield the columns of each row `Spanish | Portuguese | English`, one meaning a row.

    Raises ValueError, with the number of the line, for a row of other columns.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = line.split("|")
        if len(columns) != _COLUMNS:
            raise ValueError(f"line {number}: a row is Spanish | Portuguese | English, not {line.strip()!r}")
        spanish, portuguese, english = (
            [text for said in column.split(",") if (text := said.strip())] for column in columns
        )
        yield spanish, portuguese, english


class Lexicon:
    """The English meanings of words, from lines that `rows` reads."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._foreign = _Vocabulary()
        self._english = _Vocabulary()
        self._word = lru_cache(maxsize=8192)(_word)
        for spanish, portuguese, english in rows(lines):
            foreign = [*spanish, *portuguese]
            side = self._foreign if foreign else self._english
            meanings = tuple(dict.fromkeys(tuple(words(text)) for text in english))
            for text in foreign or english:
                side.add(text, meanings)

    def meanings(self, said: Sequence[str]) -> dict[int, Meanings]:
        """Return what folded words of a message may mean, by the place of the word.

        Several words with one meaning have the place of the first that carries meaning.
        """
        sides = (self._english,) if is_english(said) else (self._foreign, self._english)
        places = [place for place, word in enumerate(said) if word not in WORDS["passed_over"]]
        stems = [stem(said[place]) for place in places]
        found: dict[int, Meanings] = {}
        at = 0
        while at < len(places):
            next_stems = stems[at : at + _LONGEST_PHRASE]
            length, meanings = max((side.phrase(next_stems) for side in sides), key=lambda found: found[0])
            meanings = meanings or self._word(sides, said[places[at]])
            if meanings:
                taken = places[at : at + length]
                telling = (place for place in taken if said[place] not in ALL_STOP_WORDS)
                found[next(telling, taken[0])] = meanings
            at += length
        return found


class _Vocabulary:
    """Words and phrases of one language with their meanings; an exact word wins over its relatives."""

    def __init__(self) -> None:
        self._forms: dict[str, Meanings] = {}
        self._by_stems: dict[str, Meanings] = {}
        self._heads: set[str] = set()

    def add(self, text: str, meanings: Meanings) -> None:
        listed = [word for word in words(text) if word not in WORDS["passed_over"]] or words(text)
        if not listed:
            return
        stems = [stem(word) for word in listed]
        if len(listed) > 1:
            self._heads.add(stems[0])
        else:
            _put(self._forms, listed[0], meanings)
        _put(self._by_stems, " ".join(stems), meanings)

    def phrase(self, stems: Sequence[str]) -> tuple[int, Meanings]:
        """Return the length of the longest phrase that begins with these words, and its meanings."""
        if stems[0] in self._heads:
            for length in range(len(stems), 1, -1):
                if found := self._by_stems.get(" ".join(stems[:length])):
                    return length, found
        return 1, ()

    def word(self, word: str) -> Meanings:
        """Return the meanings of a word or of its other forms."""
        if word in self._forms or word in ALL_STOP_WORDS:
            return self._forms.get(word, ())
        for form in _forms(word):
            if found := self._forms.get(form) or self._by_stems.get(stem(form)):
                return found
        return ()


def _put(table: dict[str, Meanings], key: str, meanings: Meanings) -> None:
    table[key] = tuple(dict.fromkeys((*table[key], *meanings))) if key in table else meanings


def _word(sides: Sequence[_Vocabulary], word: str) -> Meanings:
    return next(filter(None, (side.word(word) for side in sides)), ())


def _forms(word: str) -> Iterator[str]:
    """Yield a word, and its forms without what Spanish and Portuguese add to it or change in it."""
    whole = _BROKEN_VOWEL.sub(lambda found: _WHOLE_VOWEL[found[0]], word)
    yield word
    if whole != word:
        yield whole
    yield from (word[: -len(end)] + one for end, one in _SINGULAR.items() if word[2:].endswith(end))
    for form in dict.fromkeys((word, whole)):
        bare = _CLITICS.sub("", form)
        if len(bare) > 2 and bare != form:
            yield bare


@lru_cache(maxsize=4096)
def phrases_of(name: str, description: str) -> Mapping[str, tuple[str, ...]]:
    """Return example phrases for a tool that has none, made of its own texts, one for each language.

    In English the words of its name; in Spanish and Portuguese the first few words of name and first sentence
    that the lexicon has, without those that its texts hold already.
    """
    description = description[:_LONGEST_READ].strip()
    named = words(name)
    first = [*named, *words(_SENTENCE_ENDS.split(description, maxsplit=1)[0])]
    held = {stem(word) for word in (*named, *words(description))}
    table = _in_spanish_and_portuguese()
    known = [table[one] for one in dict.fromkeys(map(stem, content(first))) if one in table]
    said = {
        "en": named,
        "es": _phrase_of((spanish for spanish, _ in known), held),
        "pt": _phrase_of((portuguese for _, portuguese in known), held),
    }
    return {language: (" ".join(texts),) for language, texts in said.items() if texts}


def _phrase_of(texts: Iterable[str], held: set[str]) -> list[str]:
    new = (text for text in texts if text and held.isdisjoint(map(stem, content(words(text)))))
    return list(dict.fromkeys(new))[:_MOST_WORDS]


@cache
def _in_spanish_and_portuguese() -> Mapping[str, tuple[str, str]]:
    """Return the first Spanish and Portuguese word for an English stem, of the row that names it soonest."""
    found: dict[str, tuple[int, str, str]] = {}
    for spanish, portuguese, english in rows(FILE.read_text("utf-8").splitlines()):
        for place, text in enumerate(english if spanish or portuguese else ()):
            said = words(text)
            term = stem(said[0])
            if len(said) == 1 and (term not in found or place < found[term][0]):
                found[term] = (place, "".join(spanish[:1]), "".join(portuguese[:1]))
    return {term: (spanish, portuguese) for term, (_, spanish, portuguese) in found.items()}
