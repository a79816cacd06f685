"""Approved messages to customers who have not written for a day."""

import asyncio

from app.errors import RecadoError
from app.tools.authoring import Sentences, read_said

SAID = read_said(__file__)


async def send_template(
    to: str, template: str, values: dict[str, str], language: str = "", context=None
) -> dict:
    """Sends a customer a message that Meta approved, also when they have not written for a day.

    Args:
        to: The customer's phone number with its country code.
        template: The template's name, as `list_templates` shows it.
        values: A value for each of its variables, by name.
        language: Which of several languages, such as "pt"; empty: the only one.

    Ejemplo: confirma la cita de +52 55 1234 5678 para el martes a las 4
    Example: confirm the appointment of +1 212 555 0142 for Tuesday at 4
    """
    say = Sentences(SAID, context)
    service = context.services.get("templates") if context is not None else None
    if service is None:
        return say.failed("NO_SERVICE")
    arguments = {"to": to, "template": template, "values": values, "language": language}
    try:
        text = await service.send(arguments, context)
    except RecadoError as error:
        return {**say.failed("BAD_REQUEST"), "meta": {"reason": str(error)}}
    return {"summary": say("sent", to=to, text=text)}


async def list_templates(context=None) -> dict:
    """Lists the approved templates of this business with their variables.

    Ejemplo: ¿qué plantillas hay?
    Exemplo: quais modelos há?
    """
    say = Sentences(SAID, context)
    service = context.services.get("templates") if context is not None else None
    if service is None:
        return say.failed("NO_SERVICE")
    try:
        listed = (await asyncio.to_thread(service.listed)).listed
    except RecadoError as error:
        return {**say.failed("BAD_REQUEST"), "meta": {"reason": str(error)}}
    lines = "\n".join(f"• {one.name} ({one.language}): {one.text}" for one in listed)
    templates = [{"name": one.name, "language": one.language, "variables": one.variables} for one in listed]
    return {"summary": say("list", lines=lines) if listed else say("none"), "templates": templates}


send_template.card = lambda args, context: context.services.templates.card(args, context)
