"""A message taken apart into the things it asks for."""

import re
from collections.abc import Iterator
from itertools import islice

from app.search.words import any_word
from app.text import fold

MAX_FRAGMENTS = 12
_MAX_JOINTS = 8
_BULLET = re.compile(r"^\s*(?:[-*•·]|\d{1,2}[.)])\s+")
_SENTENCE_END = re.compile(
    r"(?<=[?!;])\s+(?=\S)|(?<=[.…])\s+(?=[^\W\d_]|[¿¡])|(?<=[?!])(?=[¿¡])|(?<=\s)(?=[¿¡])"
)
_THEN = any_word("then")
_JOINT = re.compile(rf"(?:\s*,\s*|\s+)(?:(?:y|e|and)(?: {_THEN})?|{_THEN})\s+|\s*,\s+", re.IGNORECASE)
_HOURS = re.compile(r"\b(?:hours?|horas?|hrs?|h|minutes?|minutos?|min)$", re.IGNORECASE)
_AND_MINUTES = re.compile(
    r"(?:\d+|[a-zñ]+) ?(?:minutes?|minutos?|mins?|seconds|segundos|secs|segs?)\b", re.IGNORECASE
)
_ENDS_IN_NUMBER = re.compile(rf"\b{any_word('numerals')}$")
_BEGINS_WITH_NUMBER = re.compile(rf"\d|{any_word('numerals')}\b")
_WHETHER = re.compile(r"\W*(?:is|are|was|were|am i|does|did|has|have (?:i|we)|esta[ns]?|estao)\b")
_OF_STATE = re.compile(
    rf"\W*(?:{any_word('asks_state_en')}\b(?! (?:about|if)\b)|{any_word('asks_state')}\b(?! tal\b))"
)


def lines(said: str) -> list[str]:
    """Return the lines of a message; the items of a list stay with the line before them."""
    found: list[str] = []
    for line in said.splitlines():
        if not line.strip():
            continue
        if found and _BULLET.match(line):
            found[-1] += "\n" + line.rstrip()
        else:
            found.append(line.strip())
    return found


def sentences(line: str) -> list[str]:
    """Return the sentences of a line; a dot inside a number, a name or an address ends none."""
    return [part.strip() for part in _SENTENCE_END.split(line) if part.strip()]


def splits(clause: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to take a clause apart at words such as "and", but for "1 hour and 30 minutes"."""
    for joint in list(_JOINT.finditer(clause))[:_MAX_JOINTS]:
        left, right = clause[: joint.start()].strip(), clause[joint.end() :].strip()
        if (
            left
            and right
            and not (_HOURS.search(left) and _AND_MINUTES.match(right))
            and not (_ENDS_IN_NUMBER.search(fold(left)) and _BEGINS_WITH_NUMBER.match(fold(right)))
        ):
            yield left, right


def clauses_of(said: str) -> list[str]:
    """Return the clauses of a message, taken apart at its ends of sentences and at words such as "and"."""
    return list(dict.fromkeys(part for part in _parts(said) if len(part.split()) > 1))[:MAX_FRAGMENTS]


def asks_for_several(said: str) -> bool:
    """Tell whether a message has several parts, of one word or more."""
    return len(list(islice(_parts(said), 2))) > 1


def _parts(said: str) -> Iterator[str]:
    return (part for line in lines(said) for one in sentences(line) for part in _JOINT.split(one) if part)


def asks_of_state(said: str) -> bool:
    """Tell whether a message asks how something is, rather than for something to be done."""
    return _OF_STATE.match(fold(said)) is not None


def asks_whether(said: str) -> bool:
    """Tell whether a message asks for a yes or no about how something is: "is the light on?"."""
    return _WHETHER.match(fold(said)) is not None


def tells_event(forgotten: str) -> bool:
    """Tell whether what somebody forgot is an event or an errand, which asks for nothing: "… to buy milk"."""
    pattern = r"(?:de )?(?:q|que|that|to|\w+[aei]r(?:l[aeo]s?|me|[ts]e)?)\b"
    return re.match(pattern, fold(forgotten)) is not None
