"""Messages that ask for nothing: greetings, thanks, a nod, a goodbye, questions about the assistant."""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import yaml

from app.search.words import WORDS, spaced, words


class Talk(StrEnum):
    """A kind of small talk."""

    GREETING = "greeting"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    NOD = "nod"
    ANSWER = "answer"
    ABOUT = "about"
    NEVER_MIND = "never mind"


_ASK_NOTHING = frozenset(Talk) - {Talk.ABOUT}
_SAID = {
    name: text.split(", ")
    for name, text in yaml.safe_load(Path(__file__).with_name("small_talk.yaml").read_text("utf-8")).items()
}
_WHOLE = {
    said: talk for talk in (Talk.GOODBYE, Talk.NOD, Talk.NEVER_MIND) for said in _SAID[talk.name.lower()]
}
"""Talk that only the whole message is."""
_SWITCHES_LANGUAGE = re.compile(
    "(?:(?:ahora|agora|now|habla|hablame|fala|fale|speak|switch to) )?"
    "(?:en espanol|em portugues|in english|espanol|portugues|english)"
)
_SHORT_FORMS = {"q": "que", "k": "que", "qm": "quem", "oq": "o que", "vc": "voce", "u": "you", "r": "are"}
_DRAWN_OUT = re.compile(r"([a-z])\1+$")
_LAUGHTER = re.compile(r"(?:(?:ja)+j?|(?:je)+j?|(?:ha)+h?|(?:he)+h?|(?:rs)+|k{2,})")
_HEADS = (
    (Talk.THANKS, WORDS["thanks"]),
    (Talk.GOODBYE, WORDS["goodbyes"]),
    (Talk.GREETING, WORDS["greetings"]),
    (Talk.NOD, WORDS["nods"]),
)
_SMALL_WORDS = frozenset[str]().union(
    WORDS["with_greetings"],
    WORDS["with_thanks"],
    WORDS["with_goodbyes"],
    WORDS["with_nods"],
    *(heads for _, heads in _HEADS),
)
_WITH_NODS = WORDS["nods"] | WORDS["with_nods"] | WORDS["yes_and_no"] | WORDS["thanks"]
_LONGEST = 10
_POLITE = spaced(
    "por favor porfa please pf pfv ok bueno ay ah oh uy che no nao y e and gracias thanks obrigado obrigada"
    " mejor melhor"
)
_COURTESIES = spaced("hola hello hi hey oi ola por favor please buenas")
_GREETED_WITH = _COURTESIES | spaced("oye y e and so eae ei blz beleza mira entonces entao ok")
_KNOWN = _SMALL_WORDS.union(_GREETED_WITH, _SHORT_FORMS.values(), *map(spaced, _SAID["about"]))
"""The words of all small talk, beside laughter."""


def small_talk(said: str) -> Talk | None:
    """The kind of small talk `said` wholly is; None for everything else, and for a message without words."""
    written = words(said)
    if len(written) > _LONGEST:
        return None
    if (whole := _whole(written)) is not None:
        return whole
    found = list[str]()
    for word in map(_usual, written):
        if word not in _KNOWN and not _LAUGHTER.fullmatch(word):
            return None
        found += word.split()
    if not found or len(found) > _LONGEST:
        return None
    if all(_LAUGHTER.fullmatch(word) for word in found):
        return Talk.NOD
    if all(word in WORDS["yes_and_no"] for word in found):
        return Talk.ANSWER
    if (whole := _whole(found)) is not None:
        return whole
    asked = " ".join(word for word in found if word not in _COURTESIES)
    # what only leads in: "oye", "y"
    led_in = next((at for at, word in enumerate(found) if word not in _GREETED_WITH), len(found))
    if any(text in _SAID["about"] for text in (asked, *(" ".join(found[at:]) for at in range(led_in + 1)))):
        return Talk.ABOUT
    if not all(word in _SMALL_WORDS or word in _GREETED_WITH for word in found):
        return None
    joined = f" {' '.join(found)} "
    if any(f" {phrase} " in joined for phrase in _SAID["how_are_you"]):
        return Talk.GREETING
    talk = next((talk for talk, heads in _HEADS if any(word in heads for word in found)), None)
    if talk is Talk.NOD and not all(word in _WITH_NODS or word in _GREETED_WITH for word in found):
        return None  # "no, tomorrow" is no nod
    return talk


def _whole(written: Sequence[str]) -> Talk | None:
    polite = [word for word in written if word not in _POLITE]
    texts = (" ".join(written), " ".join(polite))
    if any(map(_SWITCHES_LANGUAGE.fullmatch, texts)):
        return Talk.NOD
    return next((_WHOLE[text] for text in texts if text in _WHOLE), None)


def asks_nothing(said: str) -> bool:
    """Return True if a message is a greeting, thanks, a farewell or a nod, and nothing more."""
    return small_talk(said) in _ASK_NOTHING


def _usual(word: str) -> str:
    """A word as it is usually written: "q" is "que", "holaaa" is "hola"."""
    if word in _SHORT_FORMS:
        return _SHORT_FORMS[word]
    shorter = word if word in _SMALL_WORDS else _DRAWN_OUT.sub(r"\1", word)
    return shorter if shorter in _SMALL_WORDS else word
