"""A person's reminders; the time is read, kept and told by the server."""

from typing import Literal


async def set_reminder(
    text: str, when: str, kind: Literal["reminder", "task", "watch"] = "reminder", context=None
):
    """Sets a reminder, once or repeated, for the person who asks.

    Args:
        text: What to remind of, in the person's own words.
        when: When, in the person's own words, such as "tomorrow at 9" or "every Monday at 8".
        kind: What happens then.

    Example: recuérdame llamar a Ana mañana a las 9
    Example: me lembra de tomar água a cada duas horas
    """
    return await context.services.schedule.set(text, when, context, kind)


async def list_reminders(context=None):
    """Lists the person's reminders to come, with their numbers.

    Example: qué recordatorios tengo
    Example: meus lembretes
    """
    return await context.services.schedule.list(context)


async def change_reminder(
    reminder: str, when: str = "", text: str = "", paused: bool | None = None, context=None
):
    """Changes the time or the text of one of the person's reminders.

    Args:
        reminder: The reminder's number from the list ("3") or words of it.
        when: The new time in the person's own words; empty to leave it.
        text: The new text; empty to leave it.
        paused: True or False; leave out to leave it.

    Example: cambia el recordatorio 2 a las 10
    """
    return await context.services.schedule.change(reminder, text, when, context, paused=paused)


async def snooze_reminder(when: str = "in 10 minutes", reminder: str = "", context=None):
    """Tells a reminder again later: the one that just came, or the one that is named.

    Args:
        when: When it is told again, such as "in 10 minutes" or "tomorrow at 9".
        reminder: The reminder's number or words of it; empty for the one that came last.

    Example: en 10 minutos más
    Example: me lembra de novo em uma hora
    """
    return await context.services.schedule.snooze(when, reminder, context)


async def cancel_reminder(reminder: str, context=None):
    """Cancels one of the person's reminders.

    Args:
        reminder: The reminder's number from the list ("3") or words of it.

    Example: cancela el recordatorio 2
    Example: apaga o lembrete do dentista
    """
    return await context.services.schedule.cancel(reminder, context)


async def cancel_all_reminders(context=None):
    """Cancels all of the person's reminders.

    Example: cancela todos mis recordatorios
    Example: cancela todos os lembretes
    """
    return await context.services.schedule.cancel_all(context)


async def restore_reminders(context=None):
    """Sets the reminders again that were cancelled last.

    Example: vuelve a poner mis recordatorios
    """
    return await context.services.schedule.restore(context)
