"""Asking a person of the business to answer."""

from app.tools.authoring import Sentences

SAID = {
    "es": {
        "asked": "✓ Avisé a una persona. Te responde por aquí.",
        "later": "✓ Avisé a una persona. Te responde por aquí; vuelve a haber alguien {when}.",
        "NOBODY": "Aquí no hay otra persona a la que pueda avisar.",
        "hint_NOBODY": "Dime en qué puedo ayudarte yo.",
        "NO_PERSON": "Esto se pide en un chat.",
    },
    "pt": {
        "asked": "✓ Avisei uma pessoa. Ela responde por aqui.",
        "later": "✓ Avisei uma pessoa. Ela responde por aqui; volta a ter alguém {when}.",
        "NOBODY": "Aqui não há outra pessoa que eu possa avisar.",
        "hint_NOBODY": "Diga em que posso ajudar.",
        "NO_PERSON": "Isso se pede em um chat.",
    },
    "en": {
        "asked": "✓ I told a person. They answer you here.",
        "later": "✓ I told a person. They answer you here; somebody is back {when}.",
        "NOBODY": "There is no other person here whom I could tell.",
        "hint_NOBODY": "Tell me how I can help you.",
        "NO_PERSON": "This is asked for in a chat.",
    },
}


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
