"""Passages of the business's files for customers, found by words."""

from app.tools.authoring import Sentences, read_said

MOST = 5
SHOWN = 1
LONGEST = 900

SAID = read_said(__file__)


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
