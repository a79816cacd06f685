"""Search of what this person and the assistant said to each other."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.tools.authoring import Sentences, cut, read_said

MOST_FOUND = 20
SHOWN_TEXT = 160
RETURNED_TEXT = 800

SAID = read_said(__file__)


async def search_history(
    query: str = "", since: str = "", until: str = "", limit: int = 10, context=None
) -> dict:
    """Finds what this person and the assistant said to each other before, the best fit first.

    Args:
        query: What it was about, in words as they may have been said, perhaps with a time ("last week").
        since: First day, YYYY-MM-DD.
        until: Last day, YYYY-MM-DD.
        limit: How many messages at most, up to 20.

    Ejemplo: qué te dije sobre el plomero
    Example: what did we say about the trip
    """
    say = Sentences(SAID, context)
    zone = ZoneInfo(context.person.timezone)
    days = [day.strip() for day in (since, until)]
    for day in days:
        if day and _midnight(day, zone) is None:
            return say.failed("INVALID_DATE", day=day[:40])
    if not (query.strip() or any(days)):
        return say.failed("EMPTY_QUERY")
    begin = _midnight(days[0], zone) if days[0] else 0.0
    end = _midnight(days[1], zone, days_later=1) if days[1] else 2.0**53
    wanted = max(1, min(limit, MOST_FOUND))
    found = await context.services.history.search(context.person, query, begin, end, wanted)
    if not found:
        return {"summary": say("found_none"), "count": 0, "messages": []}
    lines = "\n".join(f"• {_line(one, zone, say)}" for one in found)
    data = {
        "summary": say("found", count=len(found), lines=lines),
        "count": len(found),
        "messages": [_fields(one, zone) for one in found],
    }
    # What others wrote stays what others wrote, however long ago.
    return {"ok": True, "data": data, "meta": {"outside": True} if any(one.outside for one in found) else {}}


def _midnight(day, zone, days_later=0):
    """Return Unix seconds at which a day begins, None where it cannot be read."""
    try:
        begin = date.fromisoformat(day) + timedelta(days=days_later)
        return datetime.combine(begin, time(), zone).timestamp()
    except (ValueError, OverflowError):
        return None


def _line(one, zone, say):
    mark = f" ({say('kept' if one.is_kept else 'forwarded')})" if one.is_kept or one.forwarded else ""
    return f"{_when(one, zone, say.language)}, {_who(one, say)}{mark}: {cut(one.text, SHOWN_TEXT)}"


def _when(one, zone, language):
    """Write a time such as "mar 3 mar 14:40", with the year where it is not this one."""
    from babel.dates import format_skeleton

    at = datetime.fromtimestamp(one.at, zone)
    day = "MMMEd" if at.year == datetime.now(zone).year else "yMMMEd"
    return f"{format_skeleton(day, at, locale=language)} {at:%H:%M}"


def _who(one, say):
    return say("you" if one.by_person else "me")


def _fields(one, zone):
    """Return a message for the model with those beside it, cut so that all fit in one result."""
    fields = {
        "at": datetime.fromtimestamp(one.at, zone).isoformat(timespec="minutes"),
        "by": "person" if one.by_person else "assistant",
        "text": cut(one.text, RETURNED_TEXT),
        "before": cut(one.before, SHOWN_TEXT),
        "after": cut(one.after, SHOWN_TEXT),
        "forwarded": one.forwarded,
        "is_reply": one.is_reply,
        "kept": one.is_kept,
    }
    return {name: value for name, value in fields.items() if value}
