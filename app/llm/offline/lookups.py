"""A question that no tool's phrase fits: the answer may be a fact that is remembered, or stand in a note."""

import json
import re
from collections.abc import Mapping, Sequence

from app.llm.offline.again import may_add
from app.llm.offline.offers import Kind, Offer
from app.llm.offline.slots import ADDRESS
from app.llm.offline.steps import Plan, Step
from app.llm.offline.templates import read_template
from app.search.words import ALL_STOP_WORDS, content, fold, holds, spaced, spans, stem, words

_MOST_WORDS = 8
_LONGEST = 200
_QUESTION = re.compile(
    r"\W*(?:(?:y|e|and|oye|che|oi|hey|pf|por favor|please|dime|decime|me diz|me fala|tell me) )*"
    r"(?:(?:a|en|em|de|con|com|o|at|in) )?"
    r"(?:cual(?:es)?|quien(?:es)?|donde|qual|quais|quem|onde|what(?: is|'?s)|whats|which|who(?:'?s)?"
    r"|where(?:'?s)?)\b"
)
_MOST_BARE = 3
"""Words of a question that has no word that asks: "the gate code?"."""
_ASKING = spaced(
    "que cual cuales quien quienes cuando donde como cuanto cuantos sabes sabe sabia era son es eran dime"
    " decime o oq qual quais quem quando onde quanto quantos sei vc voce sobre falei disse me diz"
    " mesmo meu minha what which who when where how whose tell know about again was is s whats whos wheres"
    " whens hora horas time esta estaba fica ficava deje deixei"
)
"""Words that ask, and say nothing of what is asked for."""
_VALUES = spaced("clave contrasena codigo numero nip pin senha password passcode code number")
"""What notes leave out: "wifi: Gato1234"."""


def answering(facts: Sequence[str], said: str, queries: Sequence[str] = ()) -> list[str]:
    """The facts that hold every word that says what is asked for: "gate code?", "when is my birthday"."""
    wanted = [{stem(word) for word in _telling(text)} for text in (said, *queries)]
    return [fact for fact in facts if any(0 < len(one) <= _MOST_WORDS and holds(fact, one) for one in wanted)]


def lookup(said: str, offers: Sequence[Offer], phrases: Mapping[str, Sequence[str]]) -> Plan:
    """Looks for what a question asks for in what the person has written down; no steps for what is none."""
    if len(said) > _LONGEST or re.search(ADDRESS, said):  # it is the page that is meant
        return Plan()
    asks = _QUESTION.match(fold(said)) is not None
    telling = set(_telling(said))
    kept = [said[word.start : word.end] for word in spans(said) if word.text in telling]
    is_bare = said.rstrip().endswith("?") and len(kept) <= _MOST_BARE and not may_add(said)
    fits = len(kept) <= _MOST_WORDS and (asks or is_bare)
    return _looking_for(" ".join(kept), offers, phrases) if fits else Plan()


def elsewhere(plan: Plan, offers: Sequence[Offer], phrases: Mapping[str, Sequence[str]]) -> Plan:
    """The plan whose one step found nothing, and where else the same may be found."""
    queries = queries_of(plan)
    more = _looking_for(queries[0], offers, phrases) if len(plan.steps) == len(queries) == 1 else Plan()
    return Plan((*plan.steps, *(step for step in more.steps if step.tool != plan.steps[0].tool)))


def queries_of(plan: Plan) -> list[str]:
    """What the steps look for that take one text."""
    texts = [[value for value in step.arguments.values() if isinstance(value, str)] for step in plan.steps]
    return [found[0] for found in texts if len(found) == 1]


def found_nothing(result: str) -> bool:
    """Whether a tool looked and there was nothing."""
    try:
        value = json.loads(result)
    except ValueError:
        return False
    data = value.get("data") if isinstance(value, dict) and value.get("ok") is True else None
    return isinstance(data, dict) and data.get("count") == 0


def _looking_for(query: str, offers: Sequence[Offer], phrases: Mapping[str, Sequence[str]]) -> Plan:
    found = [
        (offer.name, name)
        for offer in offers
        if (name := _open_query(offer, phrases.get(offer.name, ()))) and words(query)
    ]
    return Plan(tuple(Step(tool, {name: query}, guessed=True) for tool, name in found[:1]))


def _open_query(offer: Offer, listed: Sequence[str]) -> str:
    """The parameter of which a phrase says that anything may be asked for: "what is {query}"; "" without."""
    for phrase in listed:
        template = read_template(offer.name, phrase)
        parameter = offer.parameter(template.last_slot)
        if template.is_vague and parameter is not None and parameter.kind is Kind.WORDS:
            return parameter.name
    return ""


def _telling(said: str) -> list[str]:
    found = [word for word in content(words(said)) if word not in _ASKING and word not in ALL_STOP_WORDS]
    return [word for word in found if word not in _VALUES] or found
