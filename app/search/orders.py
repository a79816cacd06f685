"""Tells orders from questions, conditions, negations, memories, and from what is taken back or put off."""

import re

from app.search.phrases import Literal, Template
from app.search.words import WORDS, fold, spans

_NEGATIONS = frozenset(["no", "nao", "nunca", "jamas", "never", "dont", "do", "don", "you", "i", "ya", "ja"])
_NEGATES = re.compile(
    r"\W*(?:(?:please|por favor|oye|oi|hey),? )?(?:no|n[aã]o|nunca|jam[aá]s|never|don['’]?t|do not"
    r"|you (?:don['’]?t|do not)|i (?:don['’]?t|do not) want you)\b",
    re.IGNORECASE,
)
# With their accents: "borre" is an order, "borré" tells what was done. So do "cancelaron" and "canceló".
_RECOUNTS = re.compile(
    r"\W*(?:(?:ya|ayer|hoy|j[aá]|ontem|hoje|yesterday|[eé]l|ell[ao]s?|el[ea]s?|yo|eu|t[uú]|vos|voc[eê]|vc"
    r"|[mtsl]e|l[oa]s?),? )*"
    r"(?:borré|cancelé|quité|vacié|anoté|apunté|guardé"
    r"|agregué|añadí|eliminé|saqué|recordé|recuerdo|me acuerdo|apaguei|cancelei|tirei|limpei|anotei|guardei"
    r"|(?!falt|estou)\w{2,}(?:aron|ieron|aram|eram|iram|ou|ó|aste|iste)"
    r"|adicionei|coloquei|deletei|lembrei|(?:me )?(?:lembro|esqueci|olvidé)|acabei"
    r"|faltan?m? (?:muy |bem |s[oó] )?(?:poc[oa]s?|pouc[oa]s?|much[oa]s?|muit[oa]s?)"
    r"|you (?:just |already |never )?(?:\w{2,}ed|told|said|put|wrote|forgot|did)"
    r"|i (?:just )?(?:deleted|cancell?ed|removed|noted|added|cleared|wrote|remember(?:ed)?)"
    r"|(?:te )?(?:remember|recuerdas|acordas|acuerdas|lembra)s? (?:de )?(?:when|how|that time"
    r"|the (?:time|day)|cuando|quando|aquel\w*|daquel\w*)"
    r"|(?:they|he|she|we|some(?:one|body)|(?:my|the) \w+) (?:have |has |had |just |already )?\w{2,}ed"
    r"|i (?:would|could|should|might|wish|was)|(?!pod|gust|gost)\w{2,}[aei]r[ií]a(?:mos)?)\b",
    re.IGNORECASE,
)
# All over folded text. At the end of a message: "take off the milk, no wait, leave it".
_TAKEN_BACK = re.compile(
    r"\W*\w.*\W(?:no,? (?:wait|espera\w*|pera\w*|deja\w*|mejor no|leave it)|wait,? no"
    r"|(?:mejor|melhor) (?:ya )?(?:no|nao)|scratch that|never ?mind|deixa (?:pra|para) la|deixa quieto"
    r"|(?:[,.…;!?-]+ ?|(?:ah|ay|oh|eh|ai|no|nao|pera|espera|wait|(?:ja)+|(?:ha)+|k+|lol) )"
    r"(?:(?:actually|na verdade|en realidad),? )?"
    r"(?:(?:leave|forget) (?:it|that)|deja(?:lo|la)?(?: asi)?|olvidal[oa]|olvidate|deixa|esquece(?: isso)?"
    r"|don ?[’']?t|no|nao|just kidding|jk|es broma|brincadeira))\W*"
    r"|.*\b(?:(?:what|cual|qual|which|como) (?:was|is|era|es|e)(?: it| el| la| o| a| isso| eso)?"
    r"|sera|nem sei|nao sei|no se|not sure|idk|dunno)\W*",
    re.DOTALL,
)
_PUT_OFF = re.compile(
    r"\b(?:cuando|quando|hasta que|ate que|ate|when|until|once|si|se|if) (?:yo |eu |i )?(?:te |le |lhe )?"
    r"(?:diga|digo|avise|aviso|pida|ordene|confirme|mande|disser|falar|avisar|pedir|mandar|say|tell|ask)\b"
)
_LEAVES_OUT = re.compile(
    r"\b(?:tod[oa]s?|tudo|everything|all|lista|list|every|cada|daily)\b.* (?:menos|salvo|excepto|except"
    r"|exceto|but (?:not|the)|a nao ser|tirando|aparte de)\b"
)
_CONDITION = re.compile(r"\w (?:si|se|if|unless|cuando|quando|when|caso) \w|\w nao\s*(?:[,.;!]|$)")
_NOT_NEEDED = re.compile(
    r"(?<!\bya )(?<!\bja )\b(?:nem|nao|no|ni) (?:precisa|hace falta|necesita[sn]?|es necesario|tienes que)\b"
)
_ASKS_AFTERWARDS = re.compile(
    r"\?\s*(?:(?:can|could|would|will|do) (?:you|u)|puede[sn]?|podes|podrias?|sabes|se puede|pode|consegue"
    r"|da pra)\b"
)


def is_withdrawn(said: str) -> bool:
    """Tell whether a message takes back what it says, puts it off until the person says so, leaves something
    out of a whole ("all but the milk"), says that something need not be done, or asks whether we can."""
    folded = fold(said)
    return _TAKEN_BACK.fullmatch(folded) is not None or any(
        pattern.search(folded) for pattern in (_PUT_OFF, _LEAVES_OUT, _NOT_NEEDED, _ASKS_AFTERWARDS)
    )


def opens_with_reversal(text: str) -> bool:
    """Tell whether a message begins with a negation, a doubt or a question about what was or would be."""
    found = [word.text for word in spans(text)[:4]]
    return any(word in WORDS["reversing"] for word in found) or "por que" in " ".join(found)


def is_no_order(text: str, template: Template, *, names_things: bool = False) -> bool:
    """Return True for a question, a condition, a negation or what was done or is remembered.

    A question word or a negation with which the template itself begins is none. `names_things`: the order
    takes no free text, so that a condition may stand anywhere: "put gloves there, if I have none".
    """
    if names_things and _CONDITION.search(fold(text)):
        return True
    if _RECOUNTS.match(text):
        return True
    begins = template.parts[0]
    if _NEGATES.match(text) and not (isinstance(begins, Literal) and begins.text in _NEGATIONS):
        return True
    if text.rstrip(" .!").endswith("?") or text.lstrip().startswith("¿"):
        return True
    passed_over = WORDS["courtesies"] - {"i"}
    first = next((word.text for word in spans(text) if word.text not in passed_over), "")
    return first in WORDS["asking"] and not (isinstance(begins, Literal) and begins.text == first)
