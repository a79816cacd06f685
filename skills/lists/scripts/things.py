"""Things on a list: cleaned as they are kept, compared by their core, found by what people call them."""

import re
from typing import NamedTuple

from app.search.words import spaced, stem, words
from app.tools.authoring import read_words

_WORDS = read_words(__file__)
_NOUNS = spaced(_WORDS["nouns"])
_ALL = spaced(_WORDS["all"])
_DONE = spaced(_WORDS["done"])
_IT = spaced(_WORDS["it"])
_NOTHING = spaced(_WORDS["nothing"])
_AGAIN = spaced(_WORDS["again"])
_PLACES = {word: place for place, said in _WORDS["places"].items() for word in said.split()}
_SMALL = spaced(_WORDS["small"])
_ONE = spaced(_WORDS["one"])
_NUMERALS = spaced(_WORDS["numerals"])
_UNITS = spaced(_WORDS["units"])
_COUNT = re.compile(r"\d+([a-z]*)")  # "2", "2kg"
_BULLET = re.compile(r"^\s*(?:[-*•·–—☐☑✓]|\d{1,2}[.)](?=\s))\s*")
_LEADING = re.compile(
    r"(?:(?:nada m[aá]s|s[oó]lo|solamente|nom[aá]s|only|just|apenas|y|e|and"
    r"|tamb[ií][eé]n|tamb[eé]m|also|adem[aá]s|m[aá]s|some|the|el|la|los|las|unos|unas|os|uns|umas)"
    r"\s+)+",
    re.IGNORECASE,
)
_LEADING_PT = re.compile(r"(?:(?:e|o|a|as)\s+)+", re.IGNORECASE)
_TRAILING = re.compile(
    r"(?:[\s,]+(?:tamb[ií][eé]n|tamb[eé]m|tbm|tbn|tb|too|as well|por ?favor|porfa|porfis|please|plis|pls"
    r"|pfv?|xfa(?:vor)?|(?:ja){2,}j?|(?:j[ei]){2,}j?|(?:ha){2,}|k{2,}|(?:rs){2,}|lol))+$",
    re.IGNORECASE,
)
# Characters of what is read; far more than anything on a list may have.
LONGEST = 1000
_AROUND = ' \t\n\r.,;:!?¿¡"“”«»'


def clean(text, language):
    """Return one thing on one line, without the article and the small words around it; its amount stays."""
    line = _BULLET.sub("", " ".join(text[:LONGEST].replace("\x00", "").split())).strip(_AROUND)
    line = _TRAILING.sub("", line)
    line = _without(_LEADING, line)
    return (_without(_LEADING_PT, line) if language == "pt" else line).strip(_AROUND)


def names_nothing(text):
    """Tell whether it names no thing: "them back", "de nuevo", "nothing else"."""
    return set(words(text)) <= _IT | _AGAIN | _NOTHING


class Thing(NamedTuple):
    """A thing as it is compared: its leading amount, all other words, and the stems of those that tell.

    "2 kg de arroz" has the amount "2 kg" and is the same as "arroz"; "chave 10" is not "chave 13".
    """

    amount: tuple[str, ...]
    rest: tuple[str, ...]
    core: frozenset[str]

    def is_same(self, other):
        """Tell whether both are one thing on a list, of which an amount may be said anew."""
        units = [[word for word in one.amount if word in _UNITS] for one in (self, other)]
        return self.rest == other.rest and (units[0] == units[1] or not self.amount or not other.amount)

    def is_part(self, other):
        """Tell whether it names a number that is not the other's own: "1 candle" of "2 candles"."""
        if self.amount == other.amount or (self.amount == ("1",) and not other.amount):
            return False
        return any(word in _NUMERALS or word[0].isdigit() for word in self.amount)


def thing(text):
    """Read a thing that was cleaned."""
    said = words(text)
    first = next((at for at, word in enumerate(said) if not _is_amount(word)), 0)
    telling = [word for word in said[first:] if word not in _SMALL]
    amount = ("1" if word in _ONE else word for word in said[:first] if word in _ONE or word not in _SMALL)
    rest = tuple(word.removesuffix("s") for word in said[first:])
    return Thing(tuple(map(_singular, amount)), rest, frozenset(map(stem, telling or said)))


def means_everything(wanted):
    """Tell whether everything on the list is meant."""
    said = _telling(wanted)
    return bool(said) and set(said) <= _ALL


def means_done(wanted):
    """Tell whether all that is checked off already is meant."""
    said = [word for word in _telling(wanted) if word not in _ALL]
    return bool(said) and set(said) <= _DONE


def means_place(wanted):
    """Tell whether a thing is named by its place: its number, "the second", "it"."""
    return _number(wanted) > 0 or _place(wanted) is not None or _is_it(wanted)


def found(entries, wanted, thing=thing):
    """The entries, in the order of the list, that somebody may mean; several where it is not clear which.

    None where a number is named that is not their own. `thing` may be one that remembers, for a call that
    looks for many things.
    """
    if number := _number(wanted):
        return [entry for entry in entries if entry.number == number]
    if (place := _place(wanted)) is not None:
        return entries[place:][:1]
    if _is_it(wanted):
        return list(entries)
    asked = thing(wanted)
    known = [(entry, thing(entry.text)) for entry in entries]
    same = [(entry, one) for entry, one in known if one.rest == asked.rest]
    same = same or [(entry, one) for entry, one in known if one.core == asked.core]
    same = same or [(entry, one) for entry, one in known if asked.core and asked.core <= one.core]
    return [entry for entry, one in same if not asked.is_part(one)]


def _is_amount(word):
    count = _COUNT.fullmatch(word)
    return word in _SMALL | _ONE | _NUMERALS | _UNITS or (count is not None and count[1] in _UNITS | {""})


def _singular(word):
    return word.removesuffix("s") if word.removesuffix("s") in _UNITS else word


def _without(leading, line):
    """Return the line without its leading small words, unless there are no others."""
    match = leading.match(line)
    return line[match.end() :] if match and line[match.end() :].strip(_AROUND) else line


def _telling(wanted):
    return [word for word in words(wanted) if word not in _SMALL and word not in _NOUNS]


def _number(wanted):
    said = _telling(wanted)
    return int(said[0]) if len(said) == 1 and said[0].isdecimal() and len(said[0]) <= 4 else 0


def _place(wanted):
    said = _telling(wanted)
    return _PLACES.get(said[0]) if len(said) == 1 else None


def _is_it(wanted):
    return set(words(wanted)) <= _IT
