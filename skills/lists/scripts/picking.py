"""Which things of which list a call is about."""

import re
from functools import cache

from app.tools.authoring import cut

from .choosing import the_list
from .lines import MOST_TOLD, named, numbered, texts
from .shelf import MAX_THINGS, bare
from .things import LONGEST, clean, found, means_done, means_everything, means_place, thing

_AND = re.compile(r"\s(?:y|e|and)\s", re.IGNORECASE)
_MOST_ANDS = 6


class Picked:
    """The things that were named, by the key of their list, and those that were not found or not clear.

    `failure`: why there is none at all; None where there is one. `is_open`: whether open things are meant
    before those that are checked off.
    """

    def __init__(self, say, shelf, items, list_name, *, is_open):
        self._say, self._shelf, self._is_open = say, shelf, is_open
        self.by_list = {}
        self._thing = cache(thing)  # of this call alone: what somebody wrote does not outlive its rows
        self._missing = []
        self._unclear = []
        self._key, self.failure = the_list(say, shelf, bare(list_name))
        self._is_named = bool(bare(list_name))
        if self.failure is None and not 0 < len(items) <= MAX_THINGS:
            self.failure = say.failed("TOO_MANY" if items else "EMPTY")
        if self.failure is None:
            for one in (item[:LONGEST] for item in items):
                for part in (not self._found_in(one) and self._parts(one)) or [one]:
                    self._pick(part)
            self.failure = None if self.by_list else self._none()

    def receipt(self, lines):
        """Say what was done, and below it what could not be found or told apart."""
        say = self._say
        if self._missing:
            lines.append(say("not_found", things=named(self._missing)))
        for wanted, found_in in self._unclear:
            lines.append(say("which", wanted=cut(wanted, 80), things=named(self._alike(found_in))))
        for key in self.by_list:
            self._shelf.use(key)
        return "\n".join(lines)

    def _parts(self, wanted):
        """Return X and Y of "X and Y" if each is the whole name of a thing on a list, else []."""
        if self._is_clear(wanted, self._found_in(wanted)):
            return [wanted]
        joints = list(_AND.finditer(wanted))
        for joint in joints if len(joints) <= _MOST_ANDS else ():
            left, right = wanted[: joint.start()], wanted[joint.end() :]
            if self._is_clear(left, self._found_in(left)) and (rest := self._parts(right)):
                return [left, *rest]
        return []

    def _pick(self, wanted):
        found_in = self._found_in(wanted)
        if self._is_clear(wanted, found_in):
            ((key, entries),) = found_in.items()
            picked = self.by_list.setdefault(key, [])
            picked += [one for one in entries if one not in picked]
        elif found_in:
            self._unclear.append((wanted, found_in))
        else:
            self._missing.append(clean(wanted, self._say.language) or wanted)

    def _is_clear(self, wanted, found_in):
        return len(found_in) == 1 and (_means_several(wanted) or self._is_one(wanted, *found_in.values()))

    def _is_one(self, wanted, entries):
        """Tell whether one thing is meant by its whole name: "leche" may not be "leche condensada"."""
        whole = self._thing(clean(wanted, self._say.language)).core
        return len(entries) == 1 and (means_place(wanted) or whole == self._thing(entries[0].text).core)

    def _found_in(self, wanted):
        """Find the entries, by list: on the one that is named or in use, else on any that has them."""
        is_here = self._is_named or means_place(wanted) or _means_several(wanted)
        for first_only in (True, False):  # those that the call makes a difference to
            here = self._on(self._key, wanted, first_only) if self._key else []
            if here:
                return {self._key: here}
            others = {} if is_here else {key: self._on(key, wanted, first_only) for key in self._shelf.lists}
            if any(others.values()):
                return {key: entries for key, entries in others.items() if entries}
        return {}

    def _on(self, key, wanted, first_only):
        entries = self._shelf.entries(key)
        if means_done(wanted):
            return [one for one in entries if one.fields.get("done")]
        if first_only:
            entries = [one for one in entries if bool(one.fields.get("done")) != self._is_open]
        if means_everything(wanted):
            return entries
        return found(
            entries, wanted if means_place(wanted) else clean(wanted, self._say.language), self._thing
        )

    def _none(self):
        say, shelf = self._say, self._shelf
        if self._unclear:
            found_in = self._unclear[0][1]
            if len(found_in) == 1:
                return say.failed(
                    "AMBIGUOUS", lines=numbered(*[one[:MOST_TOLD] for one in found_in.values()])
                )
            return say.failed("AMBIGUOUS", lines="\n".join(f"• {one}" for one in self._alike(found_in)))
        if not self._key:
            return say.failed("NOT_FOUND_ANYWHERE", things=named(self._missing))
        name, there = shelf.lists[self._key], texts(shelf.open(self._key) or shelf.entries(self._key))
        if not there:
            return say.failed("NOTHING_THERE", name=name)
        return say.failed("NOT_FOUND", name=name, things=named(self._missing), names=named(there))

    def _alike(self, found_in):
        """List the things that are alike, each with its list where there are several."""
        if len(found_in) == 1:
            return texts(*found_in.values())
        return [f"{self._shelf.lists[key]}: {named(texts(entries))}" for key, entries in found_in.items()]


def _means_several(wanted):
    return means_everything(wanted) or means_done(wanted)
