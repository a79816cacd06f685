"""Text as words: folding, splitting, stop words and stems, for any script and language."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import yaml

from app.text import fold


class Word(NamedTuple):
    """A folded word and its place in the text."""

    text: str
    start: int
    end: int


# Vowel signs of these scripts are marks, not letters, and would tear a word apart.
_MARKS = "\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e"
_WORD = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}])*")
_ASCII_WORD = re.compile("[a-z0-9]+")
_LATIN_WORD = re.compile(r"[^\W_]+")
_BEYOND_LATIN = re.compile("[\u0300-\U0010ffff]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_SHORT = 256
_PIECE = re.compile(rf"\S{{1,{_SHORT}}}|\s+")
_LAST_VOWELS = "aeo"


def spaced(text: str) -> frozenset[str]:
    """Return the words of a list written as running text."""
    return frozenset(text.split())


# classes of words, of three languages together, by name
WORDS: Mapping[str, frozenset[str]] = {
    name: spaced(text)
    for name, text in yaml.safe_load(Path(__file__).with_name("word_classes.yaml").read_text("utf-8")).items()
}
STOP_WORDS = WORDS["stop_en"], WORDS["stop_es"], WORDS["stop_pt"]
ALL_STOP_WORDS = frozenset[str]().union(*STOP_WORDS)

_LONGEST_ENDING = max(map(len, WORDS["endings"]))
_SHORTEST_STEM = 3


def any_word(name: str) -> str:
    """Return a pattern for any word of a class, the longest first; the words may be patterns themselves."""
    return f"(?:{'|'.join(sorted(WORDS[name], key=lambda word: (-len(word), word)))})"


def spans(text: str) -> list[Word]:
    """Return the folded words of `text` with their positions."""
    folded = fold(text)
    return [Word(match.group(), match.start(), match.end()) for match in _WORD.finditer(folded)]


def words(text: str) -> list[str]:
    """Return folded words; camelCase and snake_case are split, unspaced scripts become pairs."""
    if text.isascii():
        return _ASCII_WORD.findall(_apart(text).lower())
    if not _BEYOND_LATIN.search(text):
        return [fold(part) for part in _LATIN_WORD.findall(_apart(text))]
    parts = _WORD.findall(_apart(_composed(text)))
    return [piece for part in parts for piece in _pieces(fold(part))]


def _apart(text: str) -> str:
    return text if text.islower() else _CAMEL.sub(" ", text)


def _composed(text: str) -> str:
    """Return letters and accents composed; in pieces, since a run of accents takes quadratic time."""
    pieces = [text] if text.isascii() or len(text) <= _SHORT else _PIECE.findall(text)
    return "".join(unicodedata.normalize("NFC", piece) for piece in pieces)


def _pieces(word: str) -> Iterable[str]:
    if word.isascii() or not _UNSPACED.search(word):
        return (word,)
    return (word,) if len(word) < 2 else (word[i : i + 2] for i in range(len(word) - 1))


def content(found: Iterable[str]) -> list[str]:
    """Return the words that carry meaning; all of them if none does."""
    listed = list(found)
    return [word for word in listed if word not in ALL_STOP_WORDS] or listed


def says_something(text: str) -> bool:
    """Return whether `text` holds a word that is neither a small word nor a courtesy."""
    return any(word not in ALL_STOP_WORDS for word in words(text))


def terms(text: str) -> list[str]:
    """Return the stems of the words that carry meaning."""
    return [stem(word) for word in content(words(text))]


def holds(text: str, stems: Collection[str]) -> bool:
    """Return whether each of these stems is that of a word of the text."""
    plain = fold(_composed(text))
    return all(one in plain for one in stems) and {stem(word) for word in words(text)}.issuperset(stems)


def tells_of_another(text: str, wanted: Iterable[str]) -> bool:
    """Tell whether a text has a wanted word of somebody else alone: "hija" for "hijo", "vive" for "vivo"."""
    there = set(words(text))
    others = (word for word in wanted if word not in there and len(word) > 3 and word[-1] in _LAST_VOWELS)
    return any(word[:-1] + ending in there for word in others for ending in _LAST_VOWELS)


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return a rough stem that Spanish, Portuguese and English share, so that relatives meet."""
    if len(word) <= _SHORTEST_STEM or not word.isascii() or not word.isalpha():
        return word
    shorter = _without_ending(word)
    return _without_ending(shorter) if shorter != word else word


def _without_ending(word: str) -> str:
    for size in range(min(_LONGEST_ENDING, len(word) - _SHORTEST_STEM), 0, -1):
        if word[-size:] in WORDS["endings"]:
            return _undoubled(word[:-size])
    return word


def _undoubled(word: str) -> str:
    doubled = len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


def grams_of(word: str) -> list[str]:
    """Return the character 4-grams of a padded word; they bridge typos and related languages."""
    padded = f" {word} "
    return [padded[start : start + 4] for start in range(max(len(word) - 1, 1))]


def is_english(found: Collection[str]) -> bool:
    """Tell whether more of these folded words are small ones of English than of Spanish or Portuguese."""
    english, *others = (sum(word in stop for word in found) for stop in STOP_WORDS)
    return english > max(others)
