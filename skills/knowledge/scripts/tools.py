"""Passages of the business's files for customers, found by words."""

from app.tools.authoring import Sentences

MOST = 5
SHOWN = 1
LONGEST = 900

SAID = {
    "es": {
        "UNKNOWN": "Eso no lo sé: no está en lo que el negocio me dio para responder.",
        "hint_UNKNOWN": "Si quieres, dime «quiero hablar con una persona».",
        "NOTHING": "El negocio todavía no me dio nada para responder a sus clientes.",
        "hint_NOTHING": "Si quieres, dime «quiero hablar con una persona».",
        "EMPTY": "Falta la pregunta.",
        "NO_SERVICE": "Eso solo está en el servidor.",
    },
    "pt": {
        "UNKNOWN": "Isso eu não sei: não está no que a empresa me deu para responder.",
        "hint_UNKNOWN": "Se quiser, diga “quero falar com uma pessoa”.",
        "NOTHING": "A empresa ainda não me deu nada para responder aos clientes.",
        "hint_NOTHING": "Se quiser, diga “quero falar com uma pessoa”.",
        "EMPTY": "Falta a pergunta.",
        "NO_SERVICE": "Isso só existe no servidor.",
    },
    "en": {
        "UNKNOWN": "That I do not know: it is not in what the business gave me to answer with.",
        "hint_UNKNOWN": "If you like, say “I want to talk to a person”.",
        "NOTHING": "The business has not given me anything yet to answer its customers with.",
        "hint_NOTHING": "If you like, say “I want to talk to a person”.",
        "EMPTY": "The question is missing.",
        "NO_SERVICE": "That is in the server alone.",
    },
}


def search_knowledge(question: str, context=None) -> dict:
    """Finds what the business tells its customers: prices, hours, address, services, policies.

    Args:
        question: What the person wants to know, in their own words.

    Ejemplo: ¿cuánto cuesta la limpieza?
    Exemplo: vocês abrem no sábado?
    Example: do you deliver?
    """
    say = Sentences(SAID, context)
    knowledge = context.services.get("knowledge") if context is not None else None
    if knowledge is None:
        return say.failed("NO_SERVICE")
    if not question.strip():
        return say.failed("EMPTY", code="BAD_REQUEST")
    found = [one for one in knowledge.search(question, MOST) if one.is_enough]
    if not found:
        if any(one.passages for one in knowledge.files()):
            return say.failed("UNKNOWN")
        return say.failed("NOTHING", code="UNKNOWN_YET")
    passages = [{"source": one.source, "title": one.passage.title, "text": one.passage.text} for one in found]
    best = found[0].passage
    heading = "" if best.cells or best.text.startswith(best.title) else f"**{best.title}**\n"
    return {"summary": f"{heading}{best.text}"[:LONGEST], "passages": passages}
