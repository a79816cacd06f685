"""Facts that a person wants to be remembered: remember, recall, forget."""

import re

from app.search.words import ALL_STOP_WORDS, spaced, stem, tells_of_another, words
from app.text import fold
from app.tools.authoring import (
    Ledger,
    Sentences,
    cut,
    folded,
    holds_more,
    matching,
    meant,
    read_said,
    read_words,
)

MAX_FACTS = 200
MAX_TEXT = 300
MOST_ROWS = 400
MOST_SHOWN = 50
PREFIX = "fact:"
_WORDS = read_words(__file__)
NOUNS = spaced(_WORDS["nouns"])
PLACES = spaced(_WORDS["places"])
BEGINNINGS = spaced(_WORDS["beginnings"])
EVERYTHING_AGAIN = {
    *("todo como antes", "todo de nuevo", "todo otra vez", "tudo como antes", "tudo de novo"),
    *("everything as before", "everything again", "everything"),
}
_ORDER = re.compile(r"remember (?=i\b|i'?m\b)", re.IGNORECASE)  # "remember I'm vegan": what follows is a fact
# What is true on some days only, in folded text.
_PASSES = re.compile(
    r"\b(?:hoy|hoje|hj|amanha|ontem|ayer|today|tonight|tomorrow|tmrw|yesterday)\b|(?<!la )\bmanana\b"
    r"|\b(?:next|this|last|est[ea]|ess[ea]) (?:week|month|year|weekend|semana|mes|ano|finde|noche|noite)\b"
    r"|\b(?:q(?:ue)? (?:viene|vem)|proxim[oa] (?:semana|mes|ano)|(?:semana|mes|ano) pass?ad[oa]|acab\w+ de)\b"
)
_WEEKDAY = re.compile(
    r"\b(?:lunes|martes|miercoles|jueves|viernes|sabado|domingo|(?:segunda|terca|quarta|quinta|sexta)-feira"
    r"|(?:e|na|nesta|nessa|esta) (?:segunda|terca|quarta|quinta|sexta)"
    r"|(?:segunda|terca|quarta|quinta|sexta)(?=\W*$)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
)
_LASTS = re.compile(
    r"\b(?:never|always|nunca|siempre|sempre|(?:no|nao|don.?t) (?:como|eat|bebo|drink|work|trabajo|trabalho)"
    r"|every|each|cada|tod[oa]s?|los|llam\w+|cham\w+|nombre|nome|name|called)\b"
)
VERBS = spaced(_WORDS["verbs"])
OF_WHOM = spaced(_WORDS["of_whom"])
RECALLED = spaced(_WORDS["recalled"])
NAMES = spaced(_WORDS["names"])
# begin what only points at a fact: "lo del maní"
POINTING = ("lo de ", "lo del ", "aquello de", "aquilo d", "do ", "da ", "about ")

SAID = read_said(__file__, MAX_TEXT=MAX_TEXT, MAX_FACTS=MAX_FACTS)


def remember(fact: str, replaces: str = "", context=None) -> dict:
    """Remembers a lasting fact about the person, for all later conversations.

    Args:
        fact: One whole sentence in the person's own words.
        replaces: Words or the number of the older fact that is no longer so; empty when it is new.

    Example: recordá que mi hija se llama Ana
    Example: lembra que sou vegetariano
    """
    say, facts = Sentences(SAID, context), _facts(context)
    if facts is None:
        return say.failed("NO_PERSON")
    entries = facts.entries
    old = meant(entries, replaces, NOUNS) if replaces.strip(" ,;") else []
    if len(old) > 1:
        return say.failed("AMBIGUOUS", lines=_lines(old[:10]), numbers=[one.number for one in old[:10]])
    fact = _ORDER.sub("", " ".join(fact.replace("\x00", "").split()).strip(" ,;"))
    if folded(fact) in EVERYTHING_AGAIN and (back := facts.set_aside_rows()):
        for row in back:
            facts.bring_back(row)
        return {"summary": say("list", count=len(facts.entries), lines=_lines(facts.entries[:MOST_SHOWN]))}
    replaces = replaces.strip(" ,;")
    text = _whole(fact, old[0].text if old else replaces, replaces)
    known = next((entry for entry in entries if folded(entry.text) == folded(text)), None)
    first = text.split(" ")[0].lower()
    if known is None and first in OF_WHOM:
        return say.failed("OF_WHOM")
    points = folded(text).startswith(POINTING)
    if points and len(same := meant(entries, text, NOUNS)) == 1:
        known = same[0]
    elif _PASSES.search(fold(text)) or (_WEEKDAY.search(fold(text)) and not _LASTS.search(fold(text))):
        return say.failed("PASSES")
    elif (
        points
        or first in RECALLED
        or (folded(text) and len(text.split()) == 1 and len(text) <= MAX_TEXT)
        or (replaces and not old and _is_part(text))
    ):
        return say.failed("PART_OF_A_FACT", text=cut(text, 80))
    if code := _fault(text, known or old, entries):
        return say.failed(code)
    for entry in old:
        if entry is not known:
            facts.remove(entry)
    if known is not None:
        return {"summary": say("known", text=known.text), "number": known.number}
    kept = facts.add(text=text)
    summary = say("replaced", text=text, old=old[0].text) if old else say("remembered", text=text)
    undo = "" if old else say("undo_remember", text=text)
    return {"summary": summary, "number": kept.number, "fact": text, "undo": undo}


def recall(about: str = "", context=None) -> dict:
    """Tells what is remembered about the person.

    Args:
        about: Only facts with these words; empty for all.

    Example: ¿qué sabés de mí?
    Example: what do you remember about me
    """
    say, facts = Sentences(SAID, context), _facts(context)
    if facts is None:
        return say.failed("NO_PERSON")
    entries = facts.entries
    found = matching(entries, about, NOUNS) if about.strip() else entries
    found = [one for one in found if not tells_of_another(one.text, words(about))]
    close = [] if found else _close(entries, about)
    shown = [{"number": entry.number, "fact": entry.text} for entry in (found or close)[:MOST_SHOWN]]
    if close:
        summary = say("CLOSE", what=cut(about, 80), lines=_lines(close))
    elif not found:
        summary = say("nothing", about=cut(about, 80)) if about.strip() else say("none")
    elif about.strip():
        summary = say("about", about=cut(about, 80), lines=_lines(found[:MOST_SHOWN]))
    else:
        summary = say("list", count=len(found), lines=_lines(found[:MOST_SHOWN]))
    return {"summary": summary, "count": len(found), "facts": shown}


def forget(what: str, context=None) -> dict:
    """Forgets one fact about the person for good.

    Args:
        what: The fact's number from the list, or words of it.

    Example: olvidá lo de mi dirección
    Example: forget my address
    """
    say, facts = Sentences(SAID, context), _facts(context)
    if facts is None:
        return say.failed("NO_PERSON")
    found = meant(facts.entries, what, NOUNS)
    found = [one for one in found if not tells_of_another(one.text, words(what))]
    if not found and (close := _close(facts.entries, what)):
        hint, numbers = say("hint_AMBIGUOUS"), [one.number for one in close]
        return say.failed(
            "CLOSE", code="AMBIGUOUS", hint=hint, what=cut(what, 80), lines=_lines(close), numbers=numbers
        )
    if not found:
        name = "PLACE_NOT_HERE" if PLACES.intersection(words(what)) else "FACT_NOT_FOUND"
        return say.failed(name, code="FACT_NOT_FOUND", what=cut(what, 80))
    if len(found) > 1 or not _is_named(found[0], what):
        name = "AMBIGUOUS" if len(found) > 1 else "SAYS_MORE"
        numbers = [one.number for one in found[:10]]
        return say.failed(name, code="AMBIGUOUS", lines=_lines(found[:10]), numbers=numbers)
    facts.remove(found[0])
    text = found[0].text
    return {"summary": say("forgotten", text=text), "number": found[0].number, "undo": say("undo", text=text)}


def forget_everything(context=None) -> dict:
    """Forgets all that is remembered about the person. For a week remembering everything again undoes it.

    Example: olvidá todo lo que sabés de mí
    Example: esquece tudo sobre mim
    """
    say, facts = Sentences(SAID, context), _facts(context)
    if facts is None:
        return say.failed("NO_PERSON")
    gone = facts.entries
    for entry in gone:
        facts.set_aside(entry)
    if not gone:
        return {"summary": say("none"), "count": 0}
    undo = say("undo", text=say("everything"))
    return {"summary": say("all_forgotten", count=len(gone), undo=undo), "count": len(gone), "undo": undo}


def _facts(context):
    store = getattr(context, "store", None)
    return None if store is None else Ledger(store, PREFIX, MOST_ROWS)


def _close(entries, wanted):
    """Return the newest entries that hold some of the telling words, but not all."""
    return [one for one in entries if _telling(one.text) & _telling(wanted)][:10]


def _is_named(entry, what):
    """Tell whether words name a whole fact: by its number, what it is about, or half of what it tells."""
    said, told = _telling(what), _telling(entry.text)
    is_number = len(said) == 1 and next(iter(said)).isdecimal()
    if is_number or not matching([entry], what, NOUNS):  # or as the last one
        return True
    if holds_more(entry.text, what):
        return False
    about = _telling(_before_verb(entry.text))
    return (bool(about) and about <= said) or len(told - said) <= min(2, len(said & told))


def _before_verb(text):
    """Return what a fact is about: "mi dirección" of "mi dirección es Calle 5"; "" where it has no verb."""
    said = text.split()
    is_verb = (word.lower() == "é" or fold(word) in VERBS for word in said)
    return " ".join(said[: next((at for at, one in enumerate(is_verb) if one), 0)])


def _telling(text):
    small = ALL_STOP_WORDS | NOUNS | NAMES | VERBS
    return {stem(word) for word in words(text) if word not in small}


def _whole(fact, replaced, replaces):
    """ "en Córdoba", said of "vivo en Rosario", is "vivo en Córdoba": what stays the same is left out.

    So is "vegano", said of "soy vegetariano".
    """
    first, _, rest = fact.partition(" ")
    if not rest and replaces in replaced != replaces:
        return replaced.replace(replaces, fact, 1)
    head, found, _ = replaced.partition(f" {first} ")
    return f"{head}{found}{rest}" if found and _is_part(fact) else fact


def _is_part(fact):
    first, _, rest = fact.partition(" ")
    return folded(first) in BEGINNINGS or not rest


def _fault(text, takes_no_room, entries):
    """Say why a text cannot be remembered, "" where it can."""
    if not folded(text):
        return "EMPTY_FACT"
    if len(text) > MAX_TEXT:
        return "TOO_LONG"
    return "TOO_MANY" if len(entries) >= MAX_FACTS and not takes_no_room else ""


def _lines(entries):
    return "\n".join(f"{entry.number}. {entry.text}" for entry in entries)
