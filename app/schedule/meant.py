"""Tell which reminder a person means, and what of their words is the reminder's text."""

import re
import unicodedata
from collections.abc import Sequence

from app.search.words import WORDS, any_word
from app.store import schedules
from app.store.database import Connection
from app.store.schedules import Schedule
from app.text import fold
from app.tools import ToolContext
from app.tools.authoring import holds_more

# a reminder told within so many seconds is the one that "in 10 minutes more" means
SNOOZED_WITHIN = 24 * 3600.0
_LINKING = any_word("linking")
_LEADING = re.compile(rf"^(?:\W*\b(?!por\b)(?:{_LINKING}|on)\b(?=\s))+\s*|^[\s,.:;–—-]+", re.IGNORECASE)
_TRAILING = re.compile(rf"(?:\s+{_LINKING})+\W*$", re.IGNORECASE)
_LONGEST_WANTED = 300  # characters of a description; the rest is not looked for
_LAST = re.compile(f"{any_word('the_last')}?")
_NUMBER = re.compile(
    r"(?:el |o |the |my |mi |meu )?(?:reminder|recordatorio|lembrete|numero|number|n)?\s*#?\s*(\d{1,6})"
)


def to_snooze(
    conn: Connection, person: str, reminder: str, context: ToolContext, now: float
) -> Sequence[Schedule]:
    """Return the reminder to tell again: quoted, named, or the one told last."""
    quoted = schedules.quoted(conn, context.conversation)
    if quoted is not None and quoted.person_id == person:
        return [quoted]
    if not _LAST.fullmatch(_folded(reminder[:_LONGEST_WANTED])):
        return meant(conn, person, reminder, context)
    told = schedules.last_fired(conn, person, now - SNOOZED_WITHIN)
    if told is None or told.told_at is None:
        return []
    newer = schedules.active(conn, person, since=told.told_at)  # may be meant, too
    return [told, *(one for one in newer if one.id != told.id)]


def meant(conn: Connection, person: str, wanted: str, context: ToolContext) -> Sequence[Schedule]:
    """Return the active reminders that a person means: quoted, by number, by words, or the only one."""
    found = schedules.active(conn, person)
    quoted = schedules.quoted(conn, context.conversation)
    if quoted is not None and any(one.id == quoted.id for one in found):
        return [one for one in found if one.id == quoted.id]
    key = _folded(_TRAILING.sub("", clean(wanted[:_LONGEST_WANTED])))
    if number := _NUMBER.fullmatch(key):
        return [one for one in found if one.number == int(number[1])]
    words = _telling(key)
    if _LAST.fullmatch(key) or not words:
        return found
    folded = ((one, _folded(one.text)) for one in found)
    return [one for one, text in folded if all(word in text for word in words)]


def names_part(one: Schedule, wanted: str) -> bool:
    """Return True if words name one of several things of a reminder: "light" of "light and water"."""
    key = _folded(wanted[:_LONGEST_WANTED])
    words = _telling(key)
    is_whole = _LAST.fullmatch(key) or _NUMBER.fullmatch(key) or not words
    return not is_whole and holds_more(one.text, " ".join(words))


def _telling(key: str) -> list[str]:
    return [word for word in key.split() if word not in WORDS["names_reminder"]]


def _folded(text: str) -> str:
    return " ".join(re.sub(r"[^\w#]+", " ", fold(unicodedata.normalize("NFC", text))).split())


def clean(text: str) -> str:
    """Return a reminder's text without the words that led to it or to its time."""
    return _LEADING.sub("", text.replace("\x00", "").strip()).strip(" \t\n,:;–—-")
