"""Asking a person of the business to answer."""

from app.tools.authoring import Sentences, read_said

SAID = read_said(__file__)


async def ask_a_human(why: str = "", context=None) -> dict:
    """Asks a person of the business to answer instead of the assistant.

    Args:
        why: What it is about, in one short sentence.

    Ejemplo: quiero hablar con alguien
    Example: can I talk to a person?
    """
    say = Sentences(SAID, context)
    if context is None or context.person is None or not context.conversation:
        return say.failed("NO_PERSON")
    service, why = context.services["handover"], why.strip() or context.message
    asked = await service.ask(context.person, context.conversation, why, context.idempotency_key)
    if not asked.reached:
        return say.failed("NOBODY")
    return {"summary": say("later", when=asked.until) if asked.until else say("asked")}
