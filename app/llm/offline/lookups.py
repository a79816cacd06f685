"""Questions that no tool's phrase fits: the answer may be a remembered fact, or stand in a note."""

import json
import re
from collections.abc import Mapping, Sequence

from app.llm.offline.followups import may_vary
from app.llm.offline.parameters import Kind, Offer
from app.llm.offline.planner import Plan, Step
from app.llm.offline.slots import ADDRESS
from app.llm.offline.templates import opens_with_reversal, read_template
from app.search.words import ALL_STOP_WORDS, content, fold, holds, spaced, spans, stem, words

_MAX_WORDS = 8
_MAX_BARE_WORDS = 3  # of a question without a word that asks: "the gate code?"
_LONGEST = 200
_QUESTION = re.compile(
    r"\W*(?:(?:y|e|and|oye|che|oi|hey|pf|por favor|please|dime|decime|me diz|me fala|tell me) )*"
    r"(?:(?:a|en|em|de|con|com|o|at|in) )?"
    r"(?:cual(?:es)?|quien(?:es)?|donde|qual|quais|quem|onde|what(?: is|'?s)?|whats|which|who(?:'?s)?"
    r"|where(?:'?s)?)\b"
)
_ASKING = spaced(
    "que cual cuales quien quienes cuando donde como cuanto cuantos sabes sabe sabia era son es eran dime"
    " decime o oq qual quais quem quando onde quanto quantos sei vc voce sobre falei disse me diz"
    " mesmo meu minha what which who when where how whose tell know about again was is s whats whos wheres"
    " whens hora horas time esta estaba fica ficava deje deixei"
)
# words that people leave out when they note something: "wifi: Gato1234"
_VALUES = spaced("clave contrasena codigo numero nip pin senha password passcode code number")


def answering_facts(facts: Sequence[str], said: str) -> list[str]:
    """Return the facts that hold every telling word of a question: "gate code?", "when is my birthday"."""
    wanted = {stem(word) for word in _telling(said)}
    return [fact for fact in facts if 0 < len(wanted) <= _MAX_WORDS and holds(fact, wanted)]


def lookup(said: str, offers: Sequence[Offer], phrases: Mapping[str, Sequence[str]]) -> Plan:
    """Search what the person has written down for what a question asks for."""
    if len(said) > _LONGEST or re.search(ADDRESS, said) or opens_with_reversal(said) or may_vary(said):
        return Plan()
    telling = set(_telling(said))
    kept = [said[word.start : word.end] for word in spans(said) if word.text in telling]
    is_bare = said.rstrip().endswith("?") and len(kept) <= _MAX_BARE_WORDS
    if not kept or len(kept) > _MAX_WORDS or not (is_bare or _QUESTION.match(fold(said))):
        return Plan()
    for offer in offers:
        if name := _open_query(offer, phrases.get(offer.name, ())):
            return Plan((Step(offer.name, {name: " ".join(kept)}, guessed=True),))
    return Plan()


def found_nothing(result: str) -> bool:
    """Tell whether a tool searched and found nothing."""
    try:
        value = json.loads(result)
    except ValueError:
        return False
    data = value.get("data") if isinstance(value, dict) and value.get("ok") is True else None
    return isinstance(data, dict) and data.get("count") == 0


def _open_query(offer: Offer, listed: Sequence[str]) -> str:
    """Return the parameter of which a phrase says that anything may be asked for: "what is {query}"."""
    for phrase in listed:
        template = read_template(offer.name, phrase)
        parameter = offer.parameter(template.last_slot)
        if template.is_vague and parameter is not None and parameter.kind is Kind.WORDS:
            return parameter.name
    return ""


def _telling(said: str) -> list[str]:
    found = [word for word in content(words(said)) if word not in _ASKING and word not in ALL_STOP_WORDS]
    return [word for word in found if word not in _VALUES] or found
