"""Taking a message apart into the things it asks for."""

import re
from collections.abc import Iterator

from app.search.words import fold, spaced

_BULLET = re.compile(r"^\s*(?:[-*•·]|\d{1,2}[.)])\s+")
_SENTENCE_END = re.compile(
    r"(?<=[?!;])\s+(?=\S)|(?<=[.…])\s+(?=[^\W\d_]|[¿¡])|(?<=[?!])(?=[¿¡])|(?<=\s)(?=[¿¡])"
)
_THEN = (
    "también|tambien|además|ademas|luego|também|tambem|além disso|also|then"
    r"|(?:después|despues|depois)(?! d[aeo]s?\b| del\b)"
)
_JOINT = re.compile(rf"(?:\s*,\s*|\s+)(?:(?:y|e|and)(?: (?:{_THEN}))?|{_THEN})\s+|\s*,\s+", re.IGNORECASE)
_MOST_JOINTS = 8
_HOURS = re.compile(r"\b(?:hours?|horas?|hrs?|h|minutes?|minutos?|min)$", re.IGNORECASE)
_AND_MINUTES = re.compile(
    r"(?:\d+|[a-zñ]+) ?(?:minutes?|minutos?|mins?|seconds|segundos|secs|segs?)\b", re.IGNORECASE
)
_LIST_JOINT = re.compile(r"\s*,\s*|\s+(?:y|e|and|&)\s+", re.IGNORECASE)
_AND = re.compile(r"\s(?:y|e|and|&)\s", re.IGNORECASE)
_LEADING_SMALL = re.compile(r"^(?:en|em|in|at|no|na|de|for|para)\s+", re.IGNORECASE)
_PAIRED_NAMES = spaced(
    "tobago herzegovina barbuda granadinas grenadines nevis nieves principe miquelon caicos futuna mayen"
)
_MOST_PLACES = 4


def lines(said: str) -> list[str]:
    """The lines of a message; the items of a list stay with the line before them."""
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
    """The sentences of a line; a dot inside a number, a name or an address ends none."""
    return [part.strip() for part in _SENTENCE_END.split(line) if part.strip()]


def splits(clause: str) -> Iterator[tuple[str, str]]:
    """The ways to take a clause apart in two at words such as "and", but for "1 hour and 30 minutes"."""
    for joint in list(_JOINT.finditer(clause))[:_MOST_JOINTS]:
        left, right = clause[: joint.start()].strip(), clause[joint.end() :].strip()
        if left and right and not (_HOURS.search(left) and _AND_MINUTES.match(right)):
            yield left, right


def places(value: str) -> list[str]:
    """ "Tokio y en Lima" → two places; "Córdoba, España" and countries whose name holds an "and" stay one."""
    parts: list[str] = []
    for part in _LIST_JOINT.split(value):
        bare = _LEADING_SMALL.sub("", part.strip())
        if parts and fold(bare).split(" ")[-1] in _PAIRED_NAMES:
            return [value]
        if bare:
            parts.append(bare)
    is_within = len(parts) == 2 and not _AND.search(value)
    return [value] if is_within or len(parts) > _MOST_PLACES else parts
