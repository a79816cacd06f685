"""Messages that ask for nothing: greetings, thanks, a nod, an excuse, questions about the assistant."""

import re
from collections.abc import Sequence
from enum import StrEnum

from app.search.words import WORDS, spaced, words


class Talk(StrEnum):
    """A kind of small talk."""

    GREETING = "greeting"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    NIGHT = "night"
    NOD = "nod"
    ANSWER = "answer"
    ABOUT = "about"
    NEVER_MIND = "never mind"
    SORRY = "sorry"
    WARMTH = "warmth"


_ASK_NOTHING = frozenset(Talk) - {Talk.ABOUT}
_ABOUT = (
    "que puedes hacer", "que podes hacer", "que sabes hacer", "que haces", "quien eres", "quien sos",
    "que eres", "como funcionas", "como te llamas", "ayuda", "ayudame", "necesito ayuda",
    "para que sirves", "que mas puedes hacer", "what can you do", "who are you", "what are you", "help",
    "help me", "i need help", "what do you do", "how do you work", "what is your name",
    "what s your name", "are you a bot", "are you an ai", "eres un bot", "o que voce faz",
    "o que voce pode fazer", "o que voce sabe fazer", "quem e voce", "ajuda", "me ajuda",
    "preciso de ajuda", "qual e o seu nome", "quem es tu", "como voce funciona",
    "are you a real person", "are you real", "are you human", "are you a human", "eres una persona real",
    "sos una persona real", "eres real", "que cosas sabes hacer", "que cosas haces",
    "que puedes hacer por mi", "en que me puedes ayudar",
    "en que puedes ayudarme", "en que me ayudas", "con quien hablo", "quien es", "quien habla",
    "com quem eu falo", "com quem estou falando", "quem esta falando", "quem e", "o que voce consegue fazer",
    "em que voce pode me ajudar", "qual seu nome", "qual o seu nome", "who am i talking to", "who is this",
    "what can you help me with", "what else can you do", "what can i ask you", "what can i do with you",
    "voce e uma pessoa real", "voce e real", "que cosas puedes hacer",
)  # fmt: skip
_HOW_ARE_YOU = (
    "que tal", "como estas", "como esta", "como va", "como vas", "como andas", "como te va", "how are you",
    "how is it going", "how s it going", "what s up", "whats up", "tudo bem", "como vai", "como voce esta",
    "que onda", "q tal", "sup", "nice to meet you", "mucho gusto",
)  # fmt: skip
_NEVER_MIND = (
    "nvm", "never mind", "nevermind", "forget it", "forget about it", "leave it", "olvidalo", "olvidate",
    "deja", "dejalo", "dejalo asi", "no importa", "da igual", "deixa", "deixa pra la", "deixa para la",
    "deixa quieto", "esquece", "esquece isso", "nao importa", "esquece o que eu disse",
    "esquece o que eu falei", "olvida lo que dije", "olvida lo que te dije", "forget what i said",
    "nada", "nada nao", "nothing",
)  # fmt: skip
_SORRY = (
    "sorry", "my bad", "perdon", "perdona", "disculpa", "disculpas", "desculpa", "desculpe", "foi mal",
)  # fmt: skip
_WARMTH = (
    "tmj", "tamo junto", "bjs", "bj", "beijo", "beijos", "um beijo", "abs", "abraco", "abracos", "um abraco",
    "eres un sol", "eres lo maximo", "eres el mejor", "eres la mejor", "eres genial", "sos un genio",
    "voce e top", "voce e demais", "vc e top", "vc e demais", "vc e top demais", "voce e top demais",
    "vc e 10", "you rock", "you re the best", "you are the best", "you re awesome", "you are awesome",
    "beso", "besos", "un beso", "abrazo", "abrazos", "un abrazo", "hugs", "xoxo",
    "que pena", "que lastima", "que triste", "what a pity", "what a shame", "too bad", "que mal", "puxa",
    "oh well",
)  # fmt: skip
_DONE = (
    "pronto", "ta pronto", "ya esta", "no problem", "no worries", "no hay problema", "sem problema",
    "de nada", "por nada", "no hay de que", "you re welcome", "imagina",
)  # fmt: skip
_SWITCHES = tuple(
    f"{opening}{language}"
    for language in ("en espanol", "em portugues", "in english", "espanol", "portugues", "english")
    for opening in (
        "",
        "ahora ",
        "agora ",
        "now ",
        "habla ",
        "hablame ",
        "fala ",
        "fale ",
        "speak ",
        "switch to ",
    )
)
_WHOLE = {
    **dict.fromkeys(("buenas noches", "boa noite", "good night", "goodnight", "gn"), Talk.NIGHT),
    **dict.fromkeys(("k", "kk", "bom", "ta bom", "esta bom", "que bom", "muito bom", *_DONE), Talk.NOD),
    **dict.fromkeys(_NEVER_MIND, Talk.NEVER_MIND),
    **dict.fromkeys(_SORRY, Talk.SORRY),
    **dict.fromkeys(_WARMTH, Talk.WARMTH),
    **dict.fromkeys(_SWITCHES, Talk.NOD),
}
"""Talk that only the whole message is."""
_SHORT_FORMS = {"q": "que", "k": "que", "qm": "quem", "oq": "o que", "vc": "voce", "u": "you", "r": "are"}
_DRAWN_OUT = re.compile(r"([a-z])\1+$")
_LAUGHTER = re.compile(r"(?:(?:ja|je|ha|he|rs)+[jh]?|k{2,})")
_HEADS = (
    (Talk.THANKS, WORDS["thanks"]),
    (Talk.GREETING, WORDS["greetings"]),
    (Talk.GOODBYE, WORDS["goodbyes"]),
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
_KNOWN = _SMALL_WORDS.union(_GREETED_WITH, _SHORT_FORMS.values(), *map(spaced, _ABOUT))
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
    if any(" ".join(found[at:]) in _ABOUT for at in range(_led_in(found) + 1)) or asked in _ABOUT:
        return Talk.ABOUT
    if not all(word in _SMALL_WORDS or word in _GREETED_WITH for word in found):
        return None
    joined = f" {' '.join(found)} "
    if any(f" {phrase} " in joined for phrase in _HOW_ARE_YOU):
        return Talk.GREETING
    talk = next((talk for talk, heads in _HEADS if any(word in heads for word in found)), None)
    if talk is Talk.NOD and not all(word in _WITH_NODS or word in _GREETED_WITH for word in found):
        return None  # "no, tomorrow" is no nod
    return talk


def _led_in(found: Sequence[str]) -> int:
    """Count the words that only lead in: "oye", "y"."""
    return next((at for at, word in enumerate(found) if word not in _GREETED_WITH), len(found))


def _whole(written: Sequence[str]) -> Talk | None:
    polite = [word for word in written if word not in _POLITE]
    return _WHOLE.get(" ".join(written)) or _WHOLE.get(" ".join(polite))


def asks_nothing(said: str) -> bool:
    """Return True if a message is a greeting, thanks, a farewell or a nod, and nothing more."""
    return small_talk(said) in _ASK_NOTHING


def _usual(word: str) -> str:
    """A word as it is usually written: "q" is "que", "holaaa" is "hola"."""
    if word in _SHORT_FORMS:
        return _SHORT_FORMS[word]
    shorter = word if word in _SMALL_WORDS else _DRAWN_OUT.sub(r"\1", word)
    return shorter if shorter in _SMALL_WORDS else word
