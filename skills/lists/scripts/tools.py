"""A person's lists: put things on, check them off, take them off, show, delete."""

import time

from app.tools.authoring import Sentences, folded, means_all, read_said, rehearsed

from .choosing import list_to_fill, the_list
from .lines import left, named, overview, put_back, quoted, shown, texts, told
from .picking import Picked
from .shelf import LISTS, MAX_LISTS, MAX_NAME, MAX_TEXT, MAX_THINGS, Shelf, bare, is_alias
from .things import LONGEST, clean, means_everything, names_nothing, thing

SAID = read_said(__file__, MAX_NAME=MAX_NAME, MAX_TEXT=MAX_TEXT, MAX_LISTS=MAX_LISTS, MAX_THINGS=MAX_THINGS)


def add_to_list(items: list[str], list_name: str = "", context=None) -> dict:
    """Puts things on the person's shopping list or another list, which begins with the first of them.

    Args:
        items: The things, each with its amount as it was said; none to begin an empty list.
        list_name: The list's name; empty for the one in use, else the shopping list.

    Example: pon leche y huevos en la lista del súper
    Example: add sunscreen to the packing list
    """
    say, shelf = _opened(context)
    if shelf is None:
        return say.failed("NO_PERSON")
    if len(items) > MAX_THINGS:
        return say.failed("TOO_MANY")
    items, list_name = shelf.apart(items, list_name)
    things, name = _cleaned(items, say.language), bare(list_name)
    if code := _fault(things, name):
        return say.failed(code)
    known = set(shelf.lists)
    key, failure = list_to_fill(say, shelf, name)
    if failure is not None:
        return failure
    shelf.use(key)
    if not things:
        what = "exists" if key in known else "begun"
        return {"summary": say(what, name=shelf.lists[key]), **_fields(shelf, key)}
    return _filled(say, shelf, key, things)


def check_off(items: list[str], list_name: str = "", done: bool = True, context=None) -> dict:
    """Checks things off a list that are bought, packed or done; they stay on it.

    Args:
        items: Words of them or their numbers; "all" for everything.
        list_name: The list's name; may be empty.
        done: False opens them again.

    Example: ya compré la leche
    Example: took the bread off, got it
    """
    say, shelf = _opened(context)
    if shelf is None:
        return say.failed("NO_PERSON")
    picked = Picked(say, shelf, items, list_name, is_open=done)
    if picked.failure is not None:
        return picked.failure
    lines = []
    for key, entries in picked.by_list.items():
        changing = [one for one in entries if bool(one.fields.get("done")) != done]
        for one in changing:
            shelf.ledger(key).change(one, done=int(time.time()) if done else None)
        same = texts(one for one in entries if one not in changing)
        lines += told(say, shelf, key, "checked" if done else "unchecked", texts(changing))
        lines += told(say, shelf, key, "was_checked" if done else "was_open", same)
        lines += [left(say, shelf, key)] if changing and done else []
    return {"summary": picked.receipt(lines), **_fields(shelf, *picked.by_list)}


def take_off_list(items: list[str], list_name: str = "", context=None) -> dict:
    """Takes things off a list that are no longer wanted.

    Args:
        items: Words of them or their numbers; "done" for all that is checked off.
        list_name: The list's name; may be empty.

    Example: quita el jamón de la lista
    Example: tira o presunto da lista
    """
    say, shelf = _opened(context)
    if shelf is None:
        return say.failed("NO_PERSON")
    picked = Picked(say, shelf, items, list_name, is_open=True)
    if picked.failure is not None:
        return picked.failure
    if any(means_everything(one[:LONGEST]) for one in items):
        return say.failed("ALL_AT_ONCE", name=shelf.lists[next(iter(picked.by_list))])
    lines, undo = [], ""
    for key, entries in picked.by_list.items():
        for one in entries:
            shelf.ledger(key).remove(one)
        undo = put_back(say, shelf, key, entries)
        lines += [line + _undone(say, undo) for line in told(say, shelf, key, "taken", texts(entries))]
    return {"summary": picked.receipt(lines), "undo": undo, **_fields(shelf, *picked.by_list)}


def show_list(list_name: str = "", context=None) -> dict:
    """Shows what is on a list with its numbers, or which lists there are.

    Args:
        list_name: The list's name; empty for the one in use or the shopping list; "all" for all their names.

    Example: ¿qué falta comprar?
    Example: o que tem na lista da feira?
    """
    say, shelf = _opened(context)
    if shelf is None:
        return say.failed("NO_PERSON")
    wants_all = bool(list_name.strip()) and means_all(list_name, LISTS)
    key, failure = the_list(say, shelf, "" if wants_all else bare(list_name))
    if failure is not None:
        return failure
    if wants_all or not key:
        return {"summary": overview(say, shelf), "lists": list(shelf.lists.values())}
    shelf.use(key)
    shelf.number(key)
    numbers = [one.number for one in shelf.open(key)]
    return {"summary": shown(say, shelf, key), "numbers": numbers, **_fields(shelf, key)}


def delete_list(list_name: str, context=None) -> dict:
    """Deletes a whole list with all that is on it; also to empty it.

    Args:
        list_name: The list's name.

    Example: borra la lista del súper
    Example: clear the shopping list
    """
    say, shelf = _opened(context)
    if shelf is None:
        return say.failed("NO_PERSON")
    if not bare(list_name):
        return say.failed("EMPTY_NAME")
    key, failure = the_list(say, shelf, bare(list_name))
    if failure is not None:
        return failure
    name, undo = shelf.lists[key], put_back(say, shelf, key, shelf.entries(key))
    if is_alias(bare(list_name), name):  # the question would name a list that the person does not see
        return say.failed("LIST_NOT_FOUND", wanted=bare(list_name), names=named(list(shelf.lists.values())))
    opens = say("opens") if undo and len(shelf.open(key)) < len(shelf.entries(key)) else ""
    shelf.erase(key)
    return {"summary": say("deleted", name=name) + _undone(say, undo) + opens, "list": name, "undo": undo}


delete_list.guard = rehearsed(delete_list)


def _undone(say, undo):
    return say("undo", words=undo) if undo else ""


def _opened(context):
    store = getattr(context, "store", None)
    return Sentences(SAID, context), None if store is None else Shelf(store)


def _cleaned(items, language):
    """Return the things, those once that are written alike."""
    cleaned = (clean(one, language) for one in items)
    return list({folded(one): one for one in cleaned if one and not names_nothing(one)}.values())


def _fault(things, name):
    """Say why things cannot be put on a list, "" where they can."""
    if not things and not name:
        return "EMPTY"
    return "TOO_LONG" if len(name) > MAX_NAME or any(len(one) > MAX_TEXT for one in things) else ""


def _filled(say, shelf, key, things):
    """Put things on a list; known ones get the new amount and are open again."""
    ledger = shelf.ledger(key)
    there = [(thing(one.text), one) for one in shelf.entries(key)]
    known = {}
    for text in things:
        read = thing(text)
        alike = [one for one in there if read.is_same(one[0])]
        alike = [one for one in alike if one[0].amount == read.amount][:1] or alike
        if len(alike) == 1:
            there.remove(*alike)  # what is said next is another thing
            known[text] = alike[0][1]
    if len(shelf.entries(key)) + len(things) - len(known) > MAX_THINGS:
        return say.failed("TOO_MANY")
    added, before, same = [], [], []
    for text in things:
        entry = known.get(text)
        if entry is None:
            ledger.add(text=text)
        else:
            better = text if thing(text).amount else entry.text
            if better == entry.text and not entry.fields.get("done"):
                same.append(entry.text)
                continue
            before += [entry.text] if better != entry.text else []
            text = better
            ledger.change(entry, text=text, done=None)
        added.append(text)
    lines = [*told(say, shelf, key, "added", added), *told(say, shelf, key, "there", same)]
    lines += told(say, shelf, key, "changed", before)
    undo = "" if before or not added else say("take_back", name=quoted(shelf.lists[key]), things=named(added))
    return {"summary": "\n".join(lines), "undo": undo, **_fields(shelf, key)}


def _fields(shelf, key, *_):
    return {
        "list": shelf.lists[key],
        "open": texts(shelf.open(key)),
        "done": texts(one for one in shelf.entries(key) if one.fields.get("done")),
    }
