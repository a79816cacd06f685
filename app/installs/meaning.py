"""Which server somebody means, in the registry or here."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.installs.directory import Directory
from app.installs.registry_entries import Entry
from app.installs.server_json import NAME
from app.installs.topics import asked, expanded
from app.search.words import ALL_STOP_WORDS, spaced, stem, words

MOST_LISTED = 8
_NOISE = spaced("mcp server servers servidor servidores")
"""What says of a name no more than that it is a server's."""
_AROUND = " \t\n`*_“”\"'.,;:¿?¡!"


@dataclass(frozen=True, slots=True)
class Meant:
    """The one server that was meant, else those to choose from: none where nothing fits."""

    entry: Entry | None = None
    choices: tuple[Entry, ...] = ()


async def meant(directory: Directory, said: str) -> Meant:
    """An exact name of the registry is that server; words are one where they are the name of exactly one, and
    no other has them in its name. Either way as the registry has it now. Raises RegistryError."""
    name = said.strip(_AROUND)
    exact = [word for word in (word.strip(_AROUND) for word in name.split()) if NAME.fullmatch(word)]
    if exact or "/" in name:
        entry = await directory.get(exact[0]) if len(exact) == 1 else None
        return Meant(entry)
    found = await directory.search(name.lower(), MOST_LISTED)
    named = [entry for entry in found if _has(_own_words(entry.name), name)]
    if len(named) == 1 and _is(_own_words(named[0].name), name):
        return Meant(await directory.get(named[0].name))  # the mirror may have an older version of it
    return Meant(choices=tuple(named if len(named) > 1 else found))


def local_meant(said: str, names: Iterable[str]) -> str:
    """The one of the names of servers here that is meant, "" where none or several are."""
    name, known = said.strip(_AROUND), list(names)
    for fits in (str.__eq__, _equals, _is_named):
        found = [one for one in known if fits(one, name)]
        if len(found) == 1:
            return found[0]
    return ""


def _equals(name: str, said: str) -> bool:
    return name.casefold() == said.casefold()


def _is_named(name: str, said: str) -> bool:
    return _is(_own_words(name), said)


def _own_words(name: str) -> frozenset[str]:
    """Stems of the words that a name has beside those that all names have."""
    own = words(name.rpartition("/")[2].lower())
    return frozenset(stem(word) for word in own if word not in _NOISE)


def _has(own: frozenset[str], said: str) -> bool:
    """Whether each of the words said is in a name, as it is or in English."""
    telling = [word for word in asked(said.lower()) if word not in ALL_STOP_WORDS]
    return bool(telling) and all(own & _stems(word) for word in telling)


def _is(own: frozenset[str], said: str) -> bool:
    """Whether the words said are a name, and leave nothing of it out."""
    return _has(own, said) and own <= frozenset().union(*map(_stems, asked(said.lower())))


def _stems(word: str) -> frozenset[str]:
    return frozenset(map(stem, expanded([word])))
