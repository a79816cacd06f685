"""The three languages: telling them apart in short messages, and our sentences in each of them."""

import gettext
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from app.text import fold

Language = Literal["en", "es", "pt"]

LANGUAGES: tuple[Language, ...] = ("en", "es", "pt")


def say(language: str, message: str, /, **values: object) -> str:
    """Return a sentence in a person's language, with its {values} filled in.

    `message` is the English sentence, a literal so that it can be collected into the catalogues; it is
    returned for another language and if there is no translation. {recado} is how a shell calls this program.
    """
    return _catalogue(language).gettext(message).format(**{"recado": program(), **values})


def say_plural(language: str, singular: str, plural: str, n: int, /, **values: object) -> str:
    """Return the form of a sentence for `n` things; {n} is filled in too."""
    return _catalogue(language).ngettext(singular, plural, n).format(**{"n": n, **values})


class LazyText(str):
    """A sentence in English that can be said in another language once it is known who reads it."""

    message: str
    values: Mapping[str, object]


def lazy(message: str, /, **values: object) -> LazyText:
    """Return a sentence that `said` puts into a language; `message` is a literal as that of `say`."""
    text = LazyText(message.format(**{"recado": program(), **values}))
    text.message, text.values = message, values
    return text


def said(text: object, language: str) -> str:
    """Return a lazy sentence in a language, with those among its values; any other text as it is."""
    if not isinstance(text, LazyText):
        return str(text)
    values = {
        name: said(value, language) if isinstance(value, LazyText) else value
        for name, value in text.values.items()
    }
    return say(language, text.message, **values)


def joined(texts: Iterable[str]) -> str:
    """Return sentences as one, "" for none."""
    first, *others = list(texts) or [""]
    for other in others:
        first = lazy("{fact}; {reason}", fact=first, reason=other)
    return first


def change_values(text: str, change: Callable[[str], str]) -> str:
    """Return a lazy sentence with `change` applied to its values; apply it to any other text as a whole."""
    if not isinstance(text, LazyText):
        return change(text)
    values = {
        name: change_values(value, change) if isinstance(value, str) else value
        for name, value in text.values.items()
    }
    return lazy(text.message, **values)


def to_json(text: object) -> object:
    """Return what is kept of a lazy sentence, so that it can be said later too; any other value as it is."""
    if not isinstance(text, LazyText):
        return text
    return {"message": text.message, "values": {name: to_json(one) for name, one in text.values.items()}}


def from_json(kept: object) -> Any:
    """Return the sentence of which `to_json` was kept."""
    if not isinstance(kept, dict):
        return kept
    return lazy(kept["message"], **{name: from_json(one) for name, one in kept["values"].items()})


@cache
def program() -> str:
    """Return the command that runs this program in a shell here.

    RECADO_COMMAND says it where the shell is outside, as that of a container's host.
    """
    started = sys.argv[0].removeprefix(f"{os.getcwd()}/")
    usual = started if started == ".venv/bin/recado" else "recado"  # as `make run` starts it
    return os.environ.get("RECADO_COMMAND", usual)


def detect_language(text: str, usual: str = "") -> Language | None:
    """Return the language of a message; None if it cannot be told ("ok", "2+2", a name, an emoji).

    Another language than the person's `usual` one takes several words, two of them of no other.
    """
    text = text[:_LONGEST]
    if asks := _TRANSLATES.match(text):
        return next(language for language in LANGUAGES if asks[language])
    if usual and set(re.findall(r"[^\W\d_]+", text.casefold())) <= set(word_tables()["loans"].split()):
        return None
    scores: dict[str, int] = dict.fromkeys(LANGUAGES, 0)
    prose = _NOT_PROSE.sub(" ", unicodedata.normalize("NFC", text)).replace("’", "'")
    for word in _WORD.findall(prose):
        languages = _vocabulary().get(word.casefold(), ())
        for language in languages:
            scores[language] += 3 - len(languages)
    unnamed = _NAME.sub(" ", prose)
    for language, pattern in _signs().items():
        scores[language] += 2 * len(pattern.findall(unnamed))
    best, second = sorted(LANGUAGES, key=scores.__getitem__, reverse=True)[:2]
    if scores[best] < 2 or scores[best] <= scores[second]:
        return None
    if usual in ("", best):
        return best
    return best if " " in prose.strip() and scores[best] >= scores.get(usual, 0) + 4 else None


@cache
def _catalogue(language: str) -> gettext.NullTranslations:
    known = re.split("[-_]", language.lower())[0]
    if known not in LANGUAGES:
        return gettext.NullTranslations()
    return gettext.translation("recado", Path(__file__).parent / "locale", [known], fallback=True)


@cache
def word_tables() -> Mapping[str, Any]:
    """Return what is known of the words of the three languages, by what it is for."""
    return dict(yaml.safe_load(_FILE.read_text("utf-8")))


@cache
def _signs() -> dict[Language, re.Pattern[str]]:
    return {language: re.compile(text, re.IGNORECASE) for language, text in word_tables()["signs"].items()}


@cache
def _vocabulary() -> dict[str, frozenset[Language]]:
    """Return the known words with their languages, also without accents, which people leave out."""
    lists = {language: set(words.split()) for language, words in word_tables()["words"].items()}
    found: dict[str, set[Language]] = {}
    for language, words in lists.items():
        others: set[str] = set().union(*(lists[other] for other in LANGUAGES if other != language))
        bare = set(map(fold, words)) - others
        for word in words | bare:
            found.setdefault(word, set()).add(language)
    return {word: frozenset(languages) for word, languages in found.items()}


# What is to be translated is in another language than who asks.
_TRANSLATES = re.compile(
    r"\W*(?:(?P<es>traduc[eií]\w*|c[oó]mo se dice)|(?P<pt>traduz\w*|como se (?:diz|fala))"
    r"|(?P<en>translate|how do (?:you|i) say))\b",
    re.IGNORECASE,
)
_FILE = Path(__file__).parent / "locale" / "words.yaml"
_LONGEST = 500  # characters of a message that are looked at
_NOT_PROSE = re.compile(r"```.*?```|https?://\S+|\S+@\S+|[@#]\w+|(?<!\S)/\w+", re.DOTALL | re.IGNORECASE)
_NAME = re.compile(r"(?<=[^\W\d_] )[A-ZÁÉÍÓÚÂÊÔÃÕÑÇ][^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
