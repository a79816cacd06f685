"""A person's notes: save, list, search, delete."""

import re
import secrets
import time
import unicodedata
from datetime import datetime
from zoneinfo import ZoneInfo

MAX_NOTES = 2000
MAX_TEXT = 10_000
MAX_ROWS = 4000
MOST_READ = 5000
MOST_SHOWN = 50
SHOWN_TEXT = 200
RETURNED_TEXT = 300
PREFIX = "note:"

SAID = {
    "es": {
        "saved": "✓ Nota guardada: {text}",
        "none": "No tienes notas todavía.",
        "list": "Tus notas ({shown} de {count}):\n{lines}",
        "found": "Encontré {count} con «{query}»:\n{lines}",
        "found_none": "Ninguna nota tiene «{query}».",
        "deleted": "✓ Nota {number} borrada: {text}",
        "EMPTY_NOTE": "Falta el texto de la nota.",
        "TOO_LONG": f"La nota es demasiado larga: como máximo {MAX_TEXT} caracteres.",
        "TOO_MANY": f"Ya tienes {MAX_NOTES} notas, que es el máximo.",
        "NOTE_NOT_FOUND": "No encontré la nota «{note}».",
        "AMBIGUOUS": "Hay varias notas así:\n{lines}",
        "ONE_AT_A_TIME": "Las notas se borran de a una, así que no borré ninguna.",
        "hint_ONE_AT_A_TIME": "Di el número de la nota o palabras de ella.",
        "NO_PERSON": "Las notas son de una persona, y aquí no hay ninguna.",
        "hint_EMPTY_NOTE": "Escribe qué quieres anotar.",
        "hint_TOO_LONG": "Divídela en varias notas.",
        "hint_TOO_MANY": "Borra alguna que ya no necesites.",
        "hint_NOTE_NOT_FOUND": "Mira los números en la lista de notas.",
        "hint_AMBIGUOUS": "¿Cuál? Di su número.",
    },
    "pt": {
        "saved": "✓ Nota salva: {text}",
        "none": "Você ainda não tem notas.",
        "list": "Suas notas ({shown} de {count}):\n{lines}",
        "found": "Encontrei {count} com “{query}”:\n{lines}",
        "found_none": "Nenhuma nota tem “{query}”.",
        "deleted": "✓ Nota {number} apagada: {text}",
        "EMPTY_NOTE": "Falta o texto da nota.",
        "TOO_LONG": f"A nota é longa demais: no máximo {MAX_TEXT} caracteres.",
        "TOO_MANY": f"Você já tem {MAX_NOTES} notas, que é o máximo.",
        "NOTE_NOT_FOUND": "Não encontrei a nota “{note}”.",
        "AMBIGUOUS": "Há várias notas assim:\n{lines}",
        "ONE_AT_A_TIME": "As notas são apagadas uma de cada vez, então não apaguei nenhuma.",
        "hint_ONE_AT_A_TIME": "Diga o número da nota ou palavras dela.",
        "NO_PERSON": "As notas são de uma pessoa, e aqui não há nenhuma.",
        "hint_EMPTY_NOTE": "Escreva o que quer anotar.",
        "hint_TOO_LONG": "Divida em várias notas.",
        "hint_TOO_MANY": "Apague alguma de que não precisa mais.",
        "hint_NOTE_NOT_FOUND": "Veja os números na lista de notas.",
        "hint_AMBIGUOUS": "Qual delas? Diga o número.",
    },
    "en": {
        "saved": "✓ Note saved: {text}",
        "none": "You have no notes yet.",
        "list": "Your notes ({shown} of {count}):\n{lines}",
        "found": 'I found {count} with "{query}":\n{lines}',
        "found_none": 'No note has "{query}".',
        "deleted": "✓ Note {number} deleted: {text}",
        "EMPTY_NOTE": "The text of the note is missing.",
        "TOO_LONG": f"The note is too long: at most {MAX_TEXT} characters.",
        "TOO_MANY": f"You already have {MAX_NOTES} notes, the most there can be.",
        "NOTE_NOT_FOUND": 'I did not find the note "{note}".',
        "AMBIGUOUS": "There are several notes like that:\n{lines}",
        "ONE_AT_A_TIME": "Notes are deleted one at a time, so I deleted none.",
        "hint_ONE_AT_A_TIME": "Say the number of the note or words of it.",
        "NO_PERSON": "Notes belong to a person, and there is none here.",
        "hint_EMPTY_NOTE": "Say what to write down.",
        "hint_TOO_LONG": "Split it into several notes.",
        "hint_TOO_MANY": "Delete one you no longer need.",
        "hint_NOTE_NOT_FOUND": "See the numbers in the list of notes.",
        "hint_AMBIGUOUS": "Which one? Say its number.",
    },
}
LAST = {
    *(
        "ultima",
        "la ultima",
        "ultima nota",
        "la ultima nota",
        "a ultima",
        "a ultima nota",
        "minha ultima nota",
    ),
    *("mi ultima nota", "last", "the last", "last note", "the last note", "my last note", "the last one"),
    *("latest", "newest", "the newest", "the latest", "la mas reciente", "a mais recente"),
}
ALL = {
    *("", "todas", "todo", "todos", "tudo", "all", "everything", "all of them", "all notes", "all my notes"),
    *("todas mis notas", "todas las notas", "todas as notas", "todas as minhas notas", "todas minhas notas"),
}
_NUMBER = re.compile(
    r"(?:la |a |the |mi |my |minha )?(?:nota |note |numero |number |nota numero |n )?#? ?(\d{1,6})"
)
_FILLER = (
    " de del la el las los un una en y con mi mis que sobre nota notas al para do da dos das o a os as um uma"
    " em e com meu minha minhas no na the an of in on and with my about note notes for to "
)


def save_note(text: str, context=None) -> dict:
    """Saves a note for the person who asks.

    Args:
        text: What to write down, in the person's own words.

    Example: anota comprar pan y leche
    Example: anota aí ligar para o banco
    """
    said = _said(context)
    text = text.replace("\x00", "").strip()
    if _store(context) is None:
        return _error(said, "NO_PERSON")
    if not text:
        return _error(said, "EMPTY_NOTE")
    if len(text) > MAX_TEXT:
        return _error(said, "TOO_LONG")
    rows = _rows(context)
    if sum(1 for row in rows.values() if not row.get("deleted")) >= MAX_NOTES:
        return _error(said, "TOO_MANY")
    if len(rows) >= MAX_ROWS:
        _forget_deleted(context, rows)
    created = time.time_ns()
    # A key of its own, in order of time: two notes saved at once never write the same row.
    key = f"{PREFIX}{created:020d}:{secrets.token_hex(4)}"
    _store(context).put(key, {"text": text, "created": created // 10**9})
    return {"summary": said["saved"].format(text=_cut(text, SHOWN_TEXT)), "saved": True, "text": text}


def list_notes(limit: int = 20, context=None) -> dict:
    """Lists the person's notes, the newest first, with their numbers.

    Args:
        limit: How many to list, 50 at most.

    Example: muéstrame mis notas
    Example: quais são as minhas notas
    """
    said = _said(context)
    if _store(context) is None:
        return _error(said, "NO_PERSON")
    notes = _notes(context)
    if not notes:
        return {"summary": said["none"], "count": 0, "notes": []}
    shown = notes[: max(1, min(int(limit), MOST_SHOWN))]
    text = said["list"].format(shown=len(shown), count=len(notes), lines=_lines(shown))
    return {"summary": text, "count": len(notes), "notes": _fields(shown, context)}


def search_notes(query: str, context=None) -> dict:
    """Finds the person's notes that hold all the words, without regard to accents or case.

    Args:
        query: Words to look for.

    Example: busca en mis notas el teléfono del plomero
    """
    said = _said(context)
    if _store(context) is None:
        return _error(said, "NO_PERSON")
    found = _matching(_notes(context), query)
    shown_query = _cut(query, 80)
    if not found:
        return {"summary": said["found_none"].format(query=shown_query), "count": 0, "notes": []}
    shown = found[:20]
    text = said["found"].format(count=len(found), query=shown_query, lines=_lines(shown))
    return {"summary": text, "count": len(found), "notes": _fields(shown, context)}


def delete_note(note: str = "", context=None) -> dict:
    """Deletes one of the person's notes for good.

    Args:
        note: The note's number from the list ("3"), words of it, or "last"; never all of them at once.

    Example: borra la nota 2
    Example: apaga a nota do supermercado
    """
    said = _said(context)
    store = _store(context)
    if store is None:
        return _error(said, "NO_PERSON")
    if _folded(str(note)) in ALL:
        return _error(said, "ONE_AT_A_TIME")
    found = _meant(_notes(context), str(note))
    if not found:
        return _error(said, "NOTE_NOT_FOUND", note=_cut(str(note), 80))
    if len(found) > 1:
        return _error(said, "AMBIGUOUS", lines=_lines(found[:10]))
    gone = found[0]
    store.put(gone["key"], {"deleted": True})  # the empty row keeps the numbers of the others
    text = said["deleted"].format(number=gone["number"], text=_cut(gone["text"], SHOWN_TEXT))
    return {"summary": text, "deleted": gone["number"], "text": _cut(gone["text"], RETURNED_TEXT)}


def _said(context):
    language = getattr(getattr(context, "person", None), "language", "en")
    return SAID.get(language, SAID["en"])


def _store(context):
    return getattr(context, "store", None)


def _error(said, code, **words):
    hint = said.get(f"hint_{code}", "")
    return {"ok": False, "error": {"code": code, "message": said[code].format(**words), "hint": hint}}


def _rows(context):
    return _store(context).list(PREFIX, limit=MOST_READ)


def _notes(context):
    """The notes, the newest first. A number is the place in the order of saving, deleted ones counted."""
    notes = [
        {"key": key, "number": number, **row}
        for number, (key, row) in enumerate(sorted(_rows(context).items()), start=1)
        if not row.get("deleted")
    ]
    return notes[::-1]


def _forget_deleted(context, rows):
    """Makes room after thousands of deletions; only then do numbers start anew."""
    for key, row in rows.items():
        if row.get("deleted"):
            _store(context).delete(key)


def _meant(notes, wanted):
    key = _folded(wanted)
    number = _NUMBER.fullmatch(key)
    if number:
        return [note for note in notes if note["number"] == int(number[1])]
    if key in LAST:
        return notes[:1]
    exact = [note for note in notes if _folded(note["text"]) == key]
    return exact if len(exact) == 1 else _matching(notes, wanted)


def _matching(notes, query):
    words = _folded(query).split()
    wanted = [word for word in words if f" {word} " not in _FILLER] or words
    if not wanted:
        return []
    return [note for note in notes if all(word in _folded(note["text"]) for word in wanted)]


def _folded(text):
    plain = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    return " ".join(re.sub(r"[^\w#@+]+", " ", plain).split())


def _lines(notes):
    return "\n".join(f"{note['number']}. {_cut(note['text'], SHOWN_TEXT)}" for note in notes)


def _fields(notes, context):
    """The notes for the model: a single one whole, several cut so that all fit in one result."""
    zone = _zone(getattr(getattr(context, "person", None), "timezone", ""))
    limit = MAX_TEXT if len(notes) == 1 else RETURNED_TEXT
    return [
        {
            "number": note["number"],
            "text": _cut(note["text"], limit),
            "saved": datetime.fromtimestamp(note["created"], zone).isoformat(timespec="minutes"),
        }
        for note in notes
    ]


def _zone(name):
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")


def _cut(text, limit):
    text = " ".join(text.split()) if limit <= SHOWN_TEXT else text
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
