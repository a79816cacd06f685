"""What keeps an order from being followed: it asks, denies, doubts, or its words stand for nothing."""

import re
from collections.abc import Sequence
from itertools import pairwise

from app.search.sentence import Fit
from app.search.words import ALL_STOP_WORDS, WORDS, Word, spans, words
from app.text import fold

_MOST_OF_THING = 7  # words: "a card for mam and dad"
_MOST_OF_NAME = 8
_MOST_OF_LABEL = 4
_MOST_OF_PLACE = 4
_MOST_OF_REMARK = 8
_MOST_OF_ASKED_PLACE = 6
_ALL = frozenset(("tudo", "todo", "everything", "all", "lo", "o"))
_WHAT = frozenset(("que", "that", "i", "what"))
_ARTICLES = frozenset(("la", "el", "los", "las", "o", "a", "the", "sao"))
_UNDO = re.compile(
    r"\W*(?:(?:por favor|please|uy|ops|oops)\W+)?(?:deshac\w*|deshaz\w*|desfaz\w*|desfac\w*|undo)"
    r"(?: (?:eso|esto|isso|isto|it|that|(?:la|a|the) (?:instalacion|instalacao|install(?:ation)?)))?\W*"
)
_TAKES_BACK = re.compile(
    r"[,;:.…!?-]\W*(?:(?:ah|ay|oh|bom|bueno) )?(?:no|nao|nop|nope|not|don|forget)\b"
    r"|\W(?:no|nao|not|don ?['’]?t|no se|nao sei|i think)\W*$"
)
_OF_ANOTHER = re.compile(r"\b(?:y|e|and) (?:\w+ )?(?:vive|mora|lives) (?:en|em|in)\b")
_SEVERAL = re.compile(r"[?!;:…]|, |\b(?:y|e|and) (?:el|l[ao]s?|[ao]s?|the)\b")  # names
_UNPLACED = re.compile(r"[!?:;…()]| - |\d{5,}|\.\.")
_TECHNICAL = re.compile(r"(?!.*(?:\s(?:y|e|and)|,)\s)(?:\S+\s+){0,6}\S*(?:\w_|[/@])\w\S*(?:\s+\S+)?")
_CLOCK_OFFSET = re.compile(r"\W*(?:utc|gmt)[+-]\d{1,2}(?::\d\d)?\W*")
_LIKE_A_VERB = re.compile(r"\w{2,}(?:[^e]ed|ou|aron|ieron|aram|eram|ando|iendo)$")
_ENDS_OPEN = re.compile(
    r"\b(?:de|del|do|da|dos|das|of|for|para|pra|pro|con|com|with|y|e|and|the|el|la|los|an?)$"
)
_OUTSIDE = frozenset(
    ("casa", "home", "house", "fear", "peace", "lejos", "longe", "far", "cerca", "perto", "near")
)


def is_undo(said: str) -> bool:
    """Tell whether a message asks to undo what was done last, and nothing else."""
    return _UNDO.fullmatch(fold(said)) is not None


def asks(text: str) -> bool:
    """Tell whether a sentence is marked as a question."""
    return "?" in text or "¿" in text


def takes_back(text: str) -> bool:
    """Tell whether a text holds a second thought."""
    known = WORDS["second_thoughts"]
    return any(word in known for word in words(text)) or _TAKES_BACK.search(fold(text)) is not None


def forbids(fit: Fit, text: str, kept: Sequence[str]) -> bool:
    """Tell whether a sentence that fits an order is none.

    It asks, or the words in its slots deny, doubt or set a condition. Those of `kept` slots are text for its
    own sake, which may deny, but not take back.
    """
    if asks(text):
        return True
    for slot in fit.slots:
        if any(name in kept for name in slot.names):
            if takes_back(slot.text):
                return True
        elif holds_doubt(text, slot.words):
            return True
    return False


def holds_doubt(text: str, found: Sequence[Word]) -> bool:
    """Tell whether some words of a text ask, deny, doubt or set a condition; accents count."""
    known = WORDS["unsure"] | WORDS["second_thoughts"]
    pairs = {f"{one.text} {after.text}": one for one, after in pairwise(found)}
    calls = {one for pair, one in pairs.items() if pair.startswith(("se llam", "se cham"))}
    return not WORDS["unsure"].isdisjoint(pair.replace(" ", "") for pair in pairs) or any(
        word not in calls and (word.text in known or text[word.start : word.end].lower() in known)
        for word in found
    )


def is_thing(item: str) -> bool:
    """Tell whether a text can only be a thing for a list: a few words that are no clause or remark."""
    said = fold(item).strip(" .,")
    found = [word.text for word in spans(said)]
    return (
        0 < len(found) <= _MOST_OF_THING
        and not ALL_STOP_WORDS.issuperset(found)
        and not _UNPLACED.search(said)
        and not _ENDS_OPEN.search(said)
        and not _LIKE_A_VERB.search(said)
        and WORDS["no_thing"].isdisjoint(found)
        and not holds_doubt(said, spans(said))
    )


def is_name(text: str) -> bool:
    """Tell whether a text can be what something is called, or be known by."""
    found = spans(text)
    telling = [word for word in found if word.text not in ALL_STOP_WORDS]
    is_ours = bool(telling) or any(character.isdigit() for character in text)
    return is_ours and len(found) <= _MOST_OF_NAME and not _SEVERAL.search(fold(text))


def is_label(text: str) -> bool:
    """Tell whether a text can be the name of a list or the like, or is an address, a path or a command."""
    found = words(text)
    joined = {"y", "e", "and", *({found[0]} & {"de", "of"} if found else ())}
    is_thing_of_few = len(text.split()) <= _MOST_OF_LABEL and joined.isdisjoint(found) and is_thing(text)
    return is_thing_of_few or _TECHNICAL.fullmatch(text) is not None


def is_place(text: str) -> bool:
    if _CLOCK_OFFSET.fullmatch(fold(text)):
        return True
    found = [word.text for word in spans(text)]
    inner = frozenset(found[1:-1]) & {"de", "del", "la", "las", "los", "el", "do", "da", "dos", "of"}
    known = ALL_STOP_WORDS - _ARTICLES - inner
    is_short = 0 < len(found) <= _MOST_OF_PLACE
    return (
        is_short
        and known.isdisjoint(found)
        and _OUTSIDE.isdisjoint(found)
        and not re.search(r"[?!;:\n]|(?<![-+\d])\d", text)
    )


def may_be_place(text: str) -> bool:
    """Tell whether a question may be about a place of this name."""
    found = words(text)
    begins = ALL_STOP_WORDS - _ARTICLES
    is_led = found[:1] != [] and found[0] in begins and not text[0].isupper()
    return 0 < len(found) <= _MOST_OF_ASKED_PLACE and not is_led and "\n" not in text


def is_somebody(text: str) -> bool:
    """Tell whether a text is a name with an article: "a Carla"."""
    return re.match(r"\W*(?:a|o|la|el) [A-ZÁÉÍÓÚÂÊÔÃÕÑ]", text) is not None


def is_text(text: str, *, is_alone: bool = True) -> bool:
    """Tell whether a text says something by itself: it does not ask, nor point at or place what to keep."""
    found = words(text)
    if asks(text) or not found or found[0] in WORDS["asking"] - {"o"} or _OF_ANOTHER.search(fold(text)):
        return False
    if is_alone and found[0] in WORDS["places_text"]:
        return False
    pointing = ALL_STOP_WORDS | WORDS["no_text"]
    says = any(word not in pointing for word in found) or any(
        word.isdigit() or word in WORDS["numerals"] for word in found
    )
    is_about_all = set(found[:1]) < _ALL and not _WHAT.isdisjoint(found[1:3])
    return says and not is_about_all and WORDS["told_orders"].isdisjoint(found)


def is_remark(text: str) -> bool:
    """Tell whether words complete "my name is …" and say no more."""
    found = spans(text)
    is_short = 0 < len(found) <= _MOST_OF_REMARK and not re.search(r"[?!;:…\n]|, ", text)
    joins = {"y", "e", "and", "que", "q"} | WORDS["places_text"]
    return is_short and joins.isdisjoint(word.text for word in found) and not holds_doubt(text, found)
