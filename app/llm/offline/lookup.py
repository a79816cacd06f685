"""Questions that no phrase fits: the answer may be a remembered fact, or stand in a note."""

import re
from collections.abc import Collection, Mapping, Sequence

from app.llm.offline.planner import Plan, Step
from app.llm.offline.slots import ADDRESS, Kind, Offer
from app.search.phrases import read_template
from app.search.words import ALL_STOP_WORDS, WORDS, content, holds, spans, stem, tells_of_another, words
from app.text import fold

_MOST_ASKED = 8
_MAX_BARE_WORDS = 3  # of a question without a word that asks: "the gate code?"
_LONGEST_QUESTION = 200
_DENIES = frozenset(("no", "nao", "not", "never", "nunca", "jamas", "why", "estoy", "estou", "im", "m"))
_QUESTION = re.compile(
    r"\W*(?:(?:y|e|and|oye|che|oi|hey|pf|por favor|please|dime|decime|me diz|me fala|tell me) )*"
    r"(?:(?:a|en|em|de|con|com|o|at|in) )?"
    r"(?:cual(?:es)?|quien(?:es)?|donde|qual|quais|quem|onde|what(?: is|'?s)?|whats|which|who(?:'?s)?"
    r"|where(?:'?s)?)\b"
)


def answering_facts(facts: Sequence[str], said: str) -> list[str]:
    """Return the facts about just what a question asks for: "gate code?", "when is my birthday"."""
    telling = _telling(said) if _DENIES.isdisjoint(words(said)) else []
    wanted = {stem(word) for word in telling}
    known = [fact for fact in facts if 0 < len(wanted) <= _MOST_ASKED and holds(fact, wanted)]
    return [fact for fact in known if not tells_of_another(fact, telling) and _is_about(fact, wanted)]


def _is_about(fact: str, wanted: Collection[str]) -> bool:
    """Tell whether a question names all that a fact is about, whose it is included."""
    found = words(fact)
    verb = next((at for at, word in enumerate(found) if word in WORDS["copulas"]), 0)
    subject = [word for word in found[:verb] if word not in ALL_STOP_WORDS and word not in WORDS["values"]]
    return {*map(stem, subject or content(found)[:1])} <= {*wanted, *map(stem, WORDS["values"])}


def lookup(said: str, offers: Sequence[Offer], phrases: Mapping[str, Sequence[str]]) -> Plan:
    """Search what the person has written down for what a question asks for."""
    if len(said) > _LONGEST_QUESTION or re.search(ADDRESS, said) or not _DENIES.isdisjoint(words(said)):
        return Plan()
    telling = set(_telling(said))
    kept = [said[word.start : word.end] for word in spans(said) if word.text in telling]
    is_bare = said.rstrip().endswith("?") and len(kept) <= _MAX_BARE_WORDS
    if not kept or len(kept) > _MOST_ASKED or not (is_bare or _QUESTION.match(fold(said))):
        return Plan()
    for offer in offers:
        for phrase in phrases.get(offer.name, ()):
            template = read_template(offer.name, phrase)
            parameter = offer.parameter(template.last_slot)
            if template.is_vague and parameter is not None and parameter.kind is Kind.WORDS:
                return Plan((Step(offer.name, {parameter.name: " ".join(kept)}, is_guess=True),))
    return Plan()


def _telling(said: str) -> list[str]:
    found = [word for word in content(words(said)) if word not in WORDS["questions"] | ALL_STOP_WORDS]
    return [word for word in found if word not in WORDS["values"]] or found
