"""A person's notes: save, list, search, change, delete, and back again."""

import re
import time
from datetime import datetime
from zoneinfo import ZoneInfo

from app.search.words import WORDS, spaced, words
from app.text import fold, shortened
from app.tools.authoring import (
    Entry,
    Ledger,
    Sentences,
    cut,
    holds_more,
    matching,
    means_all,
    meant,
    read_said,
    read_words,
)

MAX_NOTES = 2000
MAX_TEXT = 10_000
MOST_SHOWN = 50
RETURNED_TEXT = 300
_WORDS = read_words(__file__)
GONE = spaced(_WORDS["gone"])
UNDO_SECONDS = 7 * 24 * 3600
MOST_UNDONE = 20
NOUNS = spaced(_WORDS["nouns"])
POINTED_AT = spaced(_WORDS["pointed_at"])
MANNER = spaced(_WORDS["manner"])
LONGEST_POINTER = 6
_OF = spaced(_WORDS["of"])
_SAYS = re.compile(r"\d|[:=,\n]|\s(?:é|e|es|is|son|are)\s", re.IGNORECASE)

SAID = read_said(__file__, MAX_TEXT=MAX_TEXT, MAX_NOTES=MAX_NOTES)


def save_note(text: str, context=None) -> dict:
    """Saves a note for the person who asks.

    Args:
        text: What to write down, in the person's own words.

    Example: anota comprar pan y leche
    Example: anota aí ligar para o banco
    """
    say, notes = Sentences(SAID, context), _notes(context)
    if notes is None:
        return say.failed("NO_PERSON")
    text = _clean(text)
    if code := "EMPTY_NOTE" if _only_points(text) else _fault(text):
        return say.failed(code)
    if shown := _numbered(notes.entries, text):  # "note 1" asks for it
        return {**_shown(say, shown), "saved": False}
    if len(notes.entries) >= MAX_NOTES:
        return say.failed("TOO_MANY")
    _forget_what_is_old(notes)
    kept = notes.add(text=text)
    undo = say("undo", number=kept.number)
    return {"summary": say("saved", text=cut(text)), "saved": True, "text": text, "undo": undo}


def list_notes(limit: int = 20, context=None) -> dict:
    """Lists the person's newest notes with their numbers, the newest at the end.

    Args:
        limit: How many to list, 50 at most.

    Example: muéstrame mis notas
    Example: quais são as minhas notas
    """
    say, notes = Sentences(SAID, context), _notes(context)
    if notes is None:
        return say.failed("NO_PERSON")
    entries = notes.entries
    if not entries:
        return {"summary": say("none"), "count": 0, "notes": []}
    shown = entries[: max(1, min(int(limit), MOST_SHOWN))][::-1]
    text = say("list", shown=len(shown), count=len(entries), lines=_lines(shown))
    return {"summary": text, "count": len(entries), "notes": _fields(shown, context)}


def search_notes(query: str, context=None) -> dict:
    """Finds the person's notes that hold all the words, without regard to accents or case.

    Args:
        query: Words to look for, or a note's number.

    Example: busca en mis notas el teléfono del plomero
    """
    say, notes = Sentences(SAID, context), _notes(context)
    if notes is None:
        return say.failed("NO_PERSON")
    numbered = _numbered(notes.entries, query)
    found = numbered + [one for one in matching(notes.entries, query, NOUNS) if one not in numbered]
    if found == numbered != []:
        return {**_shown(say, found), "count": 1, "notes": _fields(found, context)}
    if not found:
        return {"summary": say("found_none", query=cut(query, 80)), "count": 0, "notes": []}
    shown = found[:20]
    text = say("found", count=len(found), query=cut(query, 80), lines=_lines(shown))
    return {"summary": text, "count": len(found), "notes": _fields(shown, context)}


def edit_note(note: str, text: str, append: bool = False, context=None) -> dict:
    """Changes the text of one of the person's notes; its number stays.

    Args:
        note: The note's number from the list ("3"), words of it, or "last".
        text: The new text, or what is added to it.
        append: Whether the text is added to the end of what is there.

    Example: cambia la nota 2 por comprar pan integral
    Example: adiciona leite à nota 3
    """
    say, notes = Sentences(SAID, context), _notes(context)
    if notes is None:
        return say.failed("NO_PERSON")
    found = meant(notes.entries, note, NOUNS)
    if len(found) != 1 or (not append and holds_more(found[0].text, note, NOUNS)):
        return _not_one(say, found, note)
    text = _clean(text)
    whole = f"{found[0].text}\n{text}" if append and text else text
    if code := _fault(whole):
        return say.failed(code)
    before = cut(found[0].text)
    changed = notes.change(found[0], text=whole, undo=_undo(found[0]))
    _forget_what_is_old(notes)
    summary = say("changed", number=changed.number, before=before, text=cut(whole))
    return {"summary": summary, "number": changed.number}


def delete_note(note: str = "", context=None) -> dict:
    """Deletes one of the person's notes. For a week undo_note brings it back.

    Args:
        note: The note's number from the list ("3"), words of it, or "last"; never all of them at once.

    Example: borra la nota 2
    Example: apaga a nota do supermercado
    """
    say, notes = Sentences(SAID, context), _notes(context)
    if notes is None:
        return say.failed("NO_PERSON")
    if means_all(note, NOUNS):
        return say.failed("ONE_AT_A_TIME")
    found = meant(notes.entries, note, NOUNS)
    if len(found) != 1 or holds_more(found[0].text, note, NOUNS):
        return _not_one(say, found, note)
    gone = found[0]
    notes.change(gone, text=None, deleted=True, undo=_undo(gone))
    _forget_what_is_old(notes)
    text = say("deleted", number=gone.number, text=cut(gone.text))
    return {"summary": text, "deleted": gone.number, "text": gone.text[:RETURNED_TEXT]}


def undo_note(note: str = "", context=None) -> dict:
    """Brings back a note that was deleted, or the text that a note had before it was changed.

    Args:
        note: The note's number or words of what it said; empty means the newest deletion or change.

    Example: devolveme la nota que borré
    Example: desfazer
    """
    say, notes = Sentences(SAID, context), _notes(context)
    if notes is None:
        return say.failed("NO_PERSON")
    undoable = [
        Entry(row.key, row.number, {**row.fields, "text": row.fields["undo"]["text"]})
        for row in _undoable(notes)
    ]
    if not undoable:
        return say.failed("NOTHING_TO_UNDO")
    found = undoable[:1] if means_all(note, NOUNS | GONE) else meant(undoable, note, NOUNS | GONE)
    if not found and (as_it_was := _numbered(notes.entries, note)):
        return _shown(say, as_it_was)  # nothing of it was changed, or that is undone
    if len(found) != 1:
        return _not_one(say, found, note)
    back = found[0]
    if back.fields.get("deleted") and len(notes.entries) >= MAX_NOTES:
        return say.failed("TOO_MANY")
    notes.change(back, deleted=None, undo=None)
    text = say("restored", number=back.number, text=cut(back.text))
    return {"summary": text, "number": back.number, "text": back.text[:RETURNED_TEXT]}


def _notes(context):
    store = getattr(context, "store", None)
    return None if store is None else Ledger(store, "note:")


def _clean(text):
    return text.replace("\x00", "").strip()


def _fault(text):
    """Say why a text cannot be a note, "" where it can."""
    if not text:
        return "EMPTY_NOTE"
    return "TOO_LONG" if len(text) > MAX_TEXT else ""


def _only_points(text):
    """Tell whether a text says how or what to write down, and does not hold it: "Ana's phone number"."""
    found = words(fold(text).replace("'s ", "'s of ").replace("’s ", "’s of "))
    if len(found) > LONGEST_POINTER or _SAYS.search(text) or not WORDS["numerals"].isdisjoint(found):
        return False
    if MANNER.issuperset(found):
        return bool(found)
    lead = WORDS["little"] | {"a", "o", "so", "solo", "apenas", "just", "only"}
    telling = [word for word in found if word not in lead]
    named = [at for at, word in enumerate(telling) if word in POINTED_AT]
    if not named:
        return False
    rest = telling[named[-1] + 1 :]
    is_of = not rest or rest[0] in _OF
    return is_of and (named[0] == 0 or "of" in telling[: named[0]])


def _numbered(entries, text):
    """Return the note whose number a text is, and nothing else."""
    return meant(entries, text) if text.strip(" #?.!").isdecimal() else []


def _shown(say, found):
    return {"summary": say("shown", number=found[0].number, text=found[0].text)}


def _not_one(say, found, note):
    if found:
        return say.failed("AMBIGUOUS", lines=_lines(found[:10]), numbers=[one.number for one in found[:10]])
    return say.failed("NOTE_NOT_FOUND", note=cut(note, 80))


def _undo(entry):
    return {"text": entry.text, "at": time.time_ns()}


def _undoable(notes):
    """Return rows that can go back to what they said, the one changed last first."""
    rows = [row for row in notes.rows if "undo" in row.fields]
    return sorted(rows, key=lambda row: row.fields["undo"]["at"], reverse=True)


def _forget_what_is_old(notes):
    """Keep twenty earlier texts for a week: a person who deletes a note means it."""
    oldest = time.time_ns() - UNDO_SECONDS * 10**9
    for place, row in enumerate(_undoable(notes)):
        if place >= MOST_UNDONE or row.fields["undo"]["at"] < oldest:
            if row.fields.get("deleted"):
                notes.remove(row)
            else:
                notes.change(row, undo=None)


def _lines(entries):
    return "\n".join(f"{entry.number}. {cut(entry.text)}" for entry in entries)


def _fields(entries, context):
    """Return the notes for the model: a single one whole, several cut so that all fit in one result."""
    zone = ZoneInfo(context.person.timezone or "UTC")
    limit = MAX_TEXT if len(entries) == 1 else RETURNED_TEXT
    return [
        {
            "number": entry.number,
            "text": shortened(entry.text, limit),
            "saved": datetime.fromtimestamp(entry.fields["created"], zone).isoformat(timespec="minutes"),
        }
        for entry in entries
    ]
