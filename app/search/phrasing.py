"""What somebody might write who wants a tool, made of its own texts: for tools without example phrases."""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from app.search.lexicon import FILE, rows
from app.search.words import content, stem, words

_MOST_WORDS = 4
_LONGEST_READ = 300
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s|\n")


@lru_cache(maxsize=4096)
def phrases_of(name: str, description: str) -> Mapping[str, tuple[str, ...]]:
    """A phrase a language: the words of its name, and of name and first sentence the first few that the
    lexicon has in Spanish and in Portuguese, without those that its texts hold already.

    Why these and no more: docs/decisions/0019-tool-index.md
    """
    description = description[:_LONGEST_READ].strip()
    named = words(name)
    first = [*named, *words(_SENTENCE_ENDS.split(description, maxsplit=1)[0])]
    held = {stem(word) for word in (*named, *words(description))}
    said = {
        "en": named,
        "es": _said((pair[0] for pair in _pairs(first)), held),
        "pt": _said((pair[1] for pair in _pairs(first)), held),
    }
    return {language: (" ".join(texts),) for language, texts in said.items() if texts}


def _pairs(found: Iterable[str]) -> Iterable[tuple[str, str]]:
    table = _in_spanish_and_portuguese()
    return (table[one] for one in dict.fromkeys(map(stem, content(found))) if one in table)


def _said(texts: Iterable[str], held: set[str]) -> list[str]:
    new = (text for text in texts if text and held.isdisjoint(map(stem, content(words(text)))))
    return list(dict.fromkeys(new))[:_MOST_WORDS]


@cache
def _in_spanish_and_portuguese() -> Mapping[str, tuple[str, str]]:
    """What stands first in the row of an English word, by its stem; in the row that names it soonest."""
    found: dict[str, tuple[int, str, str]] = {}
    for spanish, portuguese, english in rows(FILE.read_text("utf-8").splitlines()):
        for place, text in enumerate(english if spanish or portuguese else ()):
            said = words(text)
            term = stem(said[0])
            if len(said) == 1 and (term not in found or place < found[term][0]):
                found[term] = (place, "".join(spanish[:1]), "".join(portuguese[:1]))
    return {term: (spanish, portuguese) for term, (_, spanish, portuguese) in found.items()}
