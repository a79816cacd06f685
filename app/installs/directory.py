"""Finds servers by what a person calls them, in a mirror of the registry (docs/decisions/0012)."""

import asyncio
import difflib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from app.http.transport import Transport
from app.i18n import LANGUAGES
from app.installs.entries import NAME, Entry, read_entry
from app.installs.errors import RegistryError
from app.installs.registry import NAMESPACE, Mirror, Registry, Smithery
from app.search.words import ALL_STOP_WORDS, spaced, stem, words
from app.settings import Settings

FRESH_SECONDS = 6 * 3600
OVERLAP_SECONDS = 3600  # by how much our clock may be ahead of the registry's
FIRST_SECONDS = 25.0  # how long a search waits for the first list
WORDS_CHARACTERS = 200
RANKED = 60  # so many of the best by words are put in order
TOPICS_SHOWN = 6
ALIKE = 0.8  # the similarity from which a word is taken for a misspelling of another
MAX_CHOICES = 8  # servers that a person chooses from
# Shares of the best one's score: below the first an entry is no answer, above the second about as good.
_WORTH = 0.3
_CLOSE = 0.7
_PROJECT_NAMESPACES = ("io.modelcontextprotocol", "io.github.modelcontextprotocol")
# Words that say of a name no more than that it is a server's.
_SERVER_WORDS = spaced("mcp server servers servidor servidores")
# Words that people search with and every entry answers to.
_SEARCH_NOISE = _SERVER_WORDS | spaced(
    """
    install instala instalar instale instalame agrega agregar adiciona adicionar add conecta conectar connect
    busca buscar search procura procurar encontrar find
    herramienta herramientas ferramenta ferramentas tool tools
    """
)
_AROUND = " \t\n`*_“”\"'.,;:¿?¡!"
_TOPICS = Path(__file__).with_name("topics.txt")

log = logging.getLogger(__name__)


class Directory:
    """Searches the mirror of the registry in DATA_DIR/mcp, and Smithery if there is a key.

    The mirror also answers while the registry is away; a search that finds it older than six hours brings it
    up to date in the background.
    """

    def __init__(
        self, settings: Settings, transport: Transport, clock: Callable[[], float] = time.time
    ) -> None:
        key = settings.smithery_api_key.get_secret_value()
        self._smithery = Smithery(settings.smithery_url, key, transport) if key else None
        self._registry = Registry(settings.mcp_registry_url, transport)
        self._mirror = Mirror(settings.data_dir / "mcp", self._registry.url)
        self._clock = clock
        self._refreshing: asyncio.Task[None] | None = None
        self.trouble = ""  # why the last fetch failed

    async def close(self) -> None:
        """End a fetch that is under way; what came of it is kept."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])

    async def synced_at(self) -> float | None:
        """Return when the list was last fetched whole (Unix seconds), None for never."""
        return await asyncio.to_thread(self._mirror.synced_at)

    async def refresh(self) -> None:
        """Bring the mirror up to date; calls at the same time share one fetch. Raises `RegistryError`."""
        await asyncio.shield(self._fetching())
        if self.trouble:
            raise RegistryError(self.trouble)

    async def search(self, words: str, limit: int = MAX_CHOICES) -> list[Entry]:
        """Return the servers that fit best: the one of that exact name, then those that can be installed,
        then the few that run at Smithery.

        A mirror that was once complete answers at once; else the first fetch is waited for, 25 s at most.
        Raises `RegistryError` if there is nothing to search in.
        """
        await self._bring_mirror()
        listed = await asyncio.to_thread(self._found, words, limit)
        also: list[Entry] = []
        try:
            if self._smithery is not None:
                also = await self._smithery.search(words[:WORDS_CHARACTERS])
        except RegistryError as error:  # which takes nothing from the registry's answer
            log.warning("Smithery is left out: %s", error)
        return [*listed[: limit - len(also)], *also]

    async def nearest_topics(self, said: str, language: str) -> list[str]:
        """Return topics that have servers: first those spelled like a word of `said`, then the largest."""
        topics = _topics()
        counts = await asyncio.to_thread(self._mirror.counts, [topic.names["en"] for topic in topics])
        asked = [stem(word) for word in search_words(said[:WORDS_CHARACTERS])]

        def distance(topic: Topic) -> tuple[bool, int]:
            is_alike = any(difflib.get_close_matches(word, topic.stems, 1, ALIKE) for word in asked)
            return not is_alike, -counts[topic.names["en"]]

        known = sorted((topic for topic in topics if counts[topic.names["en"]]), key=distance)
        return [topic.names[language] for topic in known[:TOPICS_SHOWN]]

    async def get(self, name: str) -> Entry | None:
        """Return a server in its newest version, from the registry (the mirror if that is away) or Smithery.

        Return None if there is none. Raises `RegistryError` if that cannot be known.
        """
        if not NAME.fullmatch(name):
            return None
        try:
            entry = read_entry(await self._registry.server(name))
        except RegistryError as error:
            log.info("%s from the mirror: %s", name, error)
            entry = await asyncio.to_thread(self._mirror.entry, name)
            if entry is None:
                raise
        if entry is not None and entry.name == name:
            return entry
        return await self._smithery.get(name) if self._smithery is not None else None

    async def _bring_mirror(self) -> None:
        synced_at = await self.synced_at()
        if synced_at is not None and 0 <= self._clock() - synced_at < FRESH_SECONDS:
            return
        fetching = self._fetching()
        if synced_at is None:
            await asyncio.wait([fetching], timeout=FIRST_SECONDS)
            if self.trouble or not fetching.done():
                late = "the list of servers has not come yet: ask again in a minute"
                raise RegistryError(self.trouble or late)

    def _found(self, words: str, limit: int) -> list[Entry]:
        wanted = with_topics(search_words(words[:WORDS_CHARACTERS]))
        ordered = _in_order(self._mirror.find(wanted, RANKED), frozenset([*wanted, *map(stem, wanted)]))
        named = self._mirror.entry(words.strip())
        return list(dict.fromkeys([*([named] if named else []), *ordered]))[:limit]

    def _fetching(self) -> "asyncio.Task[None]":
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._fetch(), name="registry")
        return self._refreshing

    async def _fetch(self) -> None:
        began = self._clock()
        try:
            since = ""
            if (synced_at := await self.synced_at()) is not None:
                oldest = datetime.fromtimestamp(synced_at - OVERLAP_SECONDS, UTC)
                since = oldest.strftime("%Y-%m-%dT%H:%M:%SZ")
            async for page in self._registry.pages(since):
                await asyncio.to_thread(self._mirror.take, page)
            await asyncio.to_thread(self._mirror.finish, began)
            self.trouble = ""
        except RegistryError as error:
            self.trouble = str(error)
            log.warning("the list of servers was not brought up to date: %s", error)


async def resolve(directory: Directory, said: str) -> Entry | list[Entry]:
    """Find the server that is meant, as the registry has it now, else those to choose from.

    An exact name of the registry means that server. Words mean one if they are the whole name of exactly one,
    and no other has them in its name. Raises `RegistryError`.
    """
    name = said.strip(_AROUND)
    exact = [word for word in (word.strip(_AROUND) for word in name.split()) if NAME.fullmatch(word)]
    if exact or "/" in name:
        return (await directory.get(exact[0]) if len(exact) == 1 else None) or []
    found = await directory.search(name.lower(), MAX_CHOICES)
    named = [entry for entry in found if _names_all(entry.name, name)]
    if len(named) == 1 and _is_whole_name(named[0].name, name):
        return await directory.get(named[0].name) or []  # the mirror may have an older version of it
    return named if len(named) > 1 else found


def resolve_local(said: str, names: Iterable[str]) -> str:
    """Find the one of the names of servers here that is meant; "" if none or several are."""
    name, known = said.strip(_AROUND), list(names)
    if name in known:
        return name
    alike = [one for one in known if one.casefold() == name.casefold() or _is_whole_name(one, name)]
    return alike[0] if len(alike) == 1 else ""


def search_words(query: str) -> list[str]:
    """Return the words that a search or a name is about; all of them if it is about servers as such."""
    said = words(NAMESPACE.sub(" ", query.lower()))  # GitHub is one word
    return [word for word in said if word not in ALL_STOP_WORDS and word not in _SEARCH_NOISE] or said


def with_topics(said: Iterable[str]) -> list[str]:
    """Return the words, and after them the English words that entries use for them."""
    listed = list(said)
    topics = [topic.names["en"] for word in listed for topic in _topics() if stem(word) in topic.stems]
    return list(dict.fromkeys([*listed, *topics]))


def _in_order(found: Sequence[tuple[Entry, float]], wanted: frozenset[str]) -> list[Entry]:
    """Sort the answers: by how well their name fits, those about as good as the best, the installable."""
    best = max((score for _, score in found), default=1.0)

    def place(one: tuple[Entry, float]) -> tuple[int, bool, bool, float, str]:
        entry, score = one
        return _name_distance(entry, wanted), score < _CLOSE * best, entry.choice is None, -score, entry.name

    return [entry for entry, score in sorted(found, key=place) if score >= _WORTH * best]


def _name_distance(entry: Entry, wanted: frozenset[str]) -> int:
    """Rate how far a name is from the wanted words.

    0 or 1 if it says nothing else (0 if its publisher has that name too, or is the protocol's own project),
    2 if it says that among other things, 3 if not at all.
    """
    called = [stem(word) for word in search_words(entry.own_name)]
    if not wanted.issuperset(called):
        return 3 if wanted.isdisjoint(called) else 2
    is_the_projects = entry.namespace.lower() in _PROJECT_NAMESPACES
    return 0 if is_the_projects or entry.publisher.lower() in wanted else 1


@dataclass(frozen=True)
class Topic:
    """A subject of servers: its names by language, and the stems of all words that lead to it."""

    names: Mapping[str, str]
    stems: frozenset[str]


@cache
def _topics() -> tuple[Topic, ...]:
    lines = [line for line in _TOPICS.read_text("utf-8").splitlines() if not line.startswith("#")]
    return tuple(
        Topic(dict(zip(LANGUAGES, line.split(), strict=False)), frozenset(map(stem, words(line))))
        for line in lines
    )


def _names_all(name: str, said: str) -> bool:
    """Tell whether each of the words said is in a name, as it is or in English."""
    telling = [word for word in search_words(said.lower()) if word not in ALL_STOP_WORDS]
    return bool(telling) and all(_own_stems(name) & _topic_stems([word]) for word in telling)


def _is_whole_name(name: str, said: str) -> bool:
    """Tell whether the words said are a name, and leave nothing of it out."""
    return _names_all(name, said) and _own_stems(name) <= _topic_stems(search_words(said.lower()))


def _own_stems(name: str) -> frozenset[str]:
    own = words(name.rpartition("/")[2].lower())
    return frozenset(stem(word) for word in own if word not in _SERVER_WORDS)


def _topic_stems(said: Iterable[str]) -> frozenset[str]:
    return frozenset(map(stem, with_topics(said)))
