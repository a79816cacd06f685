"""A person's lists with what is on them, as rows of `context.store`."""

import re
import time
from dataclasses import replace
from itertools import count

from app.search.words import ALL_STOP_WORDS, spaced, stem, words
from app.tools.authoring import Ledger, folded, means_all, read_words

MAX_LISTS, MAX_THINGS = 50, 200
MAX_NAME, MAX_TEXT = 60, 200
SHOPPING = "shopping"
# So long after a list was used "the list" means that one.
IN_USE_SECONDS = 900
_WORDS = read_words(__file__)
LISTS = spaced(_WORDS["lists"])
_SMALL = spaced(_WORDS["small_in_names"])
_SHOPS = spaced(_WORDS["shops"])
# What leads to the name of a list after a thing: "plates to the party".
_TO_LIST = re.compile(r"\s(?:a la|al|ao|à|n[ao]|en (?:la|el)|(?:to|on) (?:the|my))\s+", re.IGNORECASE)
_ASIDE = re.compile(r"\s+(?:pra mim|para m[ií]m?|for me|por favor|please)$", re.IGNORECASE)
# Characters of a name that are read; far more than any may have.
_LONGEST = 1000
# Beyond so many rows of a list, removed ones with them, its numbers begin anew.
_ROWS = 100


class Shelf:
    """One call's view.

    A list's key comes from its name, so that two calls at once begin the same one. What is on it are rows of
    a ledger of its own, so that they never write over each other's.
    """

    def __init__(self, store):
        self._store = store
        self._lists = store.list("list:")
        self._ledgers = {}

    @property
    def lists(self):
        """Return key and name of each, the one begun first on top."""
        ordered = sorted(self._lists.items(), key=lambda row: row[1]["created"])
        return {key: row["text"] for key, row in ordered}

    def named(self, name):
        """Return the keys of the lists that a name may mean: the very one, else those that hold its words."""
        key = key_of(name)
        if key in self._lists:
            return [key]
        wanted = set(_stems(name))
        if is_shopping(name) or not wanted:
            return []
        stems = {one: set(_stems(text)) for one, text in self.lists.items()}
        same = [one for one, has in stems.items() if has == wanted]
        return same or [one for one, has in stems.items() if wanted <= has]

    def apart(self, items, name):
        """Return things and the list's name; the last thing may end with it: "a la fiesta"."""
        last = items[-1][-_LONGEST:] if items else ""
        for lead in _TO_LIST.finditer(last):
            said = last[lead.end() :]
            if bare(said) and key_of(bare(said)) in self._lists:
                return [*items[:-1], items[-1][: len(items[-1]) - len(last) + lead.start()]], said
        return items, name

    def in_use(self):
        """Return the key of the list that "the list" means now; "" where there is none."""
        used = self._store.list("used:")
        last = max(used, key=lambda key: used[key], default="")
        key = last.removeprefix("used:")
        if key in self._lists and time.time() - used[last] < IN_USE_SECONDS:
            return key
        if f"list:{SHOPPING}" in self._lists:
            return f"list:{SHOPPING}"
        return next(iter(self._lists)) if len(self._lists) == 1 else ""

    def use(self, key):
        """Make this the list that "the list" means."""
        self._store.put(f"used:{key}", time.time())

    def begin(self, name):
        """Return the key of a new list."""
        key = key_of(name)
        self._lists[key] = {"text": name, "created": time.time()}
        self._store.put(key, self._lists[key])
        return key

    def ledger(self, key):
        if key not in self._ledgers:
            self._ledgers[key] = Ledger(self._store, f"item:{key}:", _ROWS)
        return self._ledgers[key]

    def entries(self, key):
        """Return the things on a list in the order they were said, numbered as they were last shown."""
        shown = {one: number for number, one in enumerate(self._store.get(f"shown:{key}") or [], start=1)}
        later = count(len(shown) + 1)
        return [
            replace(entry, number=shown.get(entry.key) or next(later))
            for entry in self.ledger(key).entries[::-1]
        ]

    def open(self, key):
        """Return the things that are not checked off."""
        return [entry for entry in self.entries(key) if not entry.fields.get("done")]

    def number(self, key):
        """Number what is on a list from 1, as it is shown: what is open, then what is checked off."""
        done = [entry for entry in self.entries(key) if entry.fields.get("done")]
        self._store.put(f"shown:{key}", [entry.key for entry in (*self.open(key), *done)])

    def clear(self, key):
        """Remove everything from a list; its numbers begin anew."""
        self._store.delete(f"shown:{key}")
        for row in self.ledger(key).rows:
            self.ledger(key).erase(row)

    def erase(self, key):
        """Remove the list and all that is on it."""
        self.clear(key)
        self._store.delete(f"used:{key}")
        self._store.delete(key)
        del self._lists[key]


def key_of(name):
    return f"list:{SHOPPING if is_shopping(name) else folded(name) or name}"


def is_shopping(name):
    """Tell whether it is one of the many names of the shopping list."""
    telling = [word for word in words(name) if word not in _SMALL]
    return bool(telling) and set(telling) <= _SHOPS


def is_alias(said, name):
    """Tell whether the shopping list is called by another of its names than its own."""
    return is_shopping(said) and set(_stems(said)).isdisjoint(_stems(name))


def bare(name):
    """Return a list's name without "my list of" and "list"; "" for "the list" and "all"."""
    said = _ASIDE.sub("", name[:_LONGEST].replace("\x00", "")).strip(" \t\n.,;:!?¿¡\"'“”«»").split()
    while said and folded(said[0]) in LISTS | _SMALL:
        said.pop(0)
    while said and folded(said[-1]) in LISTS:
        said.pop()
    if means_all(" ".join(said), LISTS):
        return ""
    return " ".join(said).strip(" .,;:!?¿¡\"'“”«»")


def _stems(name):
    said = words(name)
    return [stem(word) for word in said if word not in ALL_STOP_WORDS] or said
