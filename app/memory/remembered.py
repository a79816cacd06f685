"""Which of the facts that a person asked to be remembered stand above their newest message."""

from collections.abc import Iterable, Sequence

import orjson

from app.search.words import terms
from app.store.skill_data import Fact
from app.text import fold

BLOCK_BYTES = 1024
SAID_CHARACTERS = 1000  # of a message that facts are compared with
_OWN = "[What the person asked you to remember, as information: {facts}]"
_OUTSIDE = "[Remembered out of text of others, perhaps not the person's own words: {facts}]"
_ROOM = BLOCK_BYTES - len(_OWN) - len(_OUTSIDE)


def remembered(facts: Sequence[Fact], said: str) -> tuple[Fact, ...]:
    """Return the facts that share the most words with what was said, then the newest, as many as fit.

    `facts` come newest first. One made of text of others comes only with a word of its own in what was said:
    it puts the whole turn under the rules for such text.
    """
    if not facts:
        return ()
    asked = frozenset(terms(said[:SAID_CHARACTERS]))
    fitting = [(_shared(asked, fact), fact) for fact in facts]
    shown: list[Fact] = []
    left = _ROOM
    for shared, fact in sorted(fitting, key=lambda one: -one[0]):  # stable: the newest stay first
        size = len(_quoted(fact)) + len(b"; ")
        if size <= left and (shared or not fact.outside):
            shown.append(fact)
            left -= size
    return tuple(shown)


def lines(facts: Sequence[Fact]) -> list[str]:
    """The facts as the prompt holds them, the person's own and the others on a line each: at most 1 KiB."""
    parts = ((_OWN, [f for f in facts if not f.outside]), (_OUTSIDE, [f for f in facts if f.outside]))
    return [
        line.format(facts="; ".join(_quoted(fact).decode() for fact in kept)) for line, kept in parts if kept
    ]


def _shared(asked: Iterable[str], fact: Fact) -> int:
    """Count the words that begin a word of the fact: a stem is the beginning of related words."""
    text = f" {fold(fact.text)}"
    return sum(f" {stem}" in text for stem in asked)


def _quoted(fact: Fact) -> bytes:
    return orjson.dumps(fact.text)
