"""Finds servers by what a person calls them: in the MCP registry and our mirror of it, and at Smithery.

The mirror is described in docs/decisions/0012; Smithery is asked if the owner has a key.
"""

import asyncio
import difflib
import hashlib
import json
import logging
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from app.http.address import Address, FetchError
from app.http.transport import Transport
from app.i18n import LANGUAGES
from app.installs.entries import NAME, Entry, read_entry
from app.installs.pipeline import InstallError
from app.messages import JSON, array, mapping
from app.search.words import ALL_STOP_WORDS, spaced, stem, terms, words
from app.settings import Settings
from app.skills.servers import remote_fault
from app.tasks import end_tasks

log = logging.getLogger(__name__)


class RegistryError(InstallError):
    """A registry that did not answer a question; the text says why, without its address."""

    def __init__(self, text: str) -> None:
        super().__init__("AWAY", text)


FRESH_SECONDS = 6 * 3600
OVERLAP_SECONDS = 3600  # by how much our clock may be ahead of the registry's
FIRST_SECONDS = 25.0  # how long a search waits for the first list
WORDS_CHARACTERS = 200
RANKED = 60  # so many of the best by words are put in order
TOPICS_SHOWN = 6
ALIKE = 0.8  # the similarity from which a word is taken for a misspelling of another
MAX_CHOICES = 8  # servers that a person chooses from
_WORTH = 0.3  # the share of the best one's score below which an entry is no answer

PAGE_ENTRIES = 100  # the API's own limit
MAX_PAGES = 200
PAGE_SECONDS = 30.0
PAGE_BYTES = 4 * 1024 * 1024
ONE_SECONDS = 5.0
ONE_BYTES = 256 * 1024


class Directory:
    """Searches the mirror of the registry in DATA_DIR/mcp, and Smithery if there is a key.

    The mirror also answers while the registry is away; a search that finds it older than six hours brings it
    up to date in the background.
    """

    def __init__(
        self, settings: Settings, transport: Transport, clock: Callable[[], float] = time.time
    ) -> None:
        key = settings.smithery_api_key.get_secret_value()
        self._smithery = _Smithery(settings.smithery_url, key, transport) if key else None
        url = settings.mcp_registry_url.rstrip("/")
        self._registry = _Api("the registry", url, transport)
        self._mirror = _Mirror(settings.data_dir / "mcp", url)
        self._clock = clock
        self._refreshing: asyncio.Task[None] | None = None
        self.trouble = ""  # why the last fetch failed

    async def close(self) -> None:
        """End a fetch that is under way; what came of it is kept."""
        await end_tasks(self._refreshing)

    async def refresh(self) -> None:
        """Bring the mirror up to date; calls at the same time share one fetch. Raises `RegistryError`."""
        await asyncio.shield(self._fetching())
        if self.trouble:
            raise RegistryError(self.trouble)

    async def search(self, words: str) -> list[Entry]:
        """Return the servers that fit best: the one of that exact name, then those that can be installed,
        then the few that run at Smithery.

        A mirror that was once complete answers at once; else the first fetch is waited for, 25 s at most.
        Raises `RegistryError` if there is nothing to search in.
        """
        synced_at = await asyncio.to_thread(self._mirror.synced_at)
        if synced_at is None or not 0 <= self._clock() - synced_at < FRESH_SECONDS:
            fetching = self._fetching()
            if synced_at is None:
                await asyncio.wait([fetching], timeout=FIRST_SECONDS)
                if self.trouble or not fetching.done():
                    late = "the list of servers has not come yet: ask again in a minute"
                    raise RegistryError(self.trouble or late)
        listed = await asyncio.to_thread(self._found, words)
        also: list[Entry] = []
        try:
            if self._smithery is not None:
                also = await self._smithery.search(words[:WORDS_CHARACTERS])
        except RegistryError as error:  # which takes nothing from the registry's answer
            log.warning("Smithery is left out: %s", error)
        return [*listed[: MAX_CHOICES - len(also)], *also]

    async def get(self, name: str) -> Entry | None:
        """Return a server in its newest version, from the registry (the mirror if that is away) or Smithery.

        Return None if there is none. Raises `RegistryError` if that cannot be known.
        """
        if not NAME.fullmatch(name):
            return None
        path = f"/v0.1/servers/{quote(name, safe='')}/versions/latest"
        try:
            entry = read_entry(await self._registry.get(path, ONE_SECONDS, ONE_BYTES))
        except RegistryError as error:
            log.info("%s from the mirror: %s", name, error)
            entry = await asyncio.to_thread(self._mirror.entry, name)
            if entry is None:
                raise
        if entry is not None and entry.name == name:
            return entry
        return await self._smithery.get(name) if self._smithery is not None else None

    def _found(self, words: str) -> list[Entry]:
        """Sort what is found: by how well the name fits, then the installable."""
        wanted = _with_topics(_search_words(words[:WORDS_CHARACTERS]))
        stems = frozenset([*wanted, *map(stem, wanted)])
        found = self._mirror.find(wanted, RANKED)
        best = max((score for _, score in found), default=1.0)

        def place(one: tuple[Entry, float]) -> tuple[int, bool, float, str]:
            entry, score = one
            return _distance(entry, stems), entry.choice is None, -score, entry.name

        named = self._mirror.entry(words.strip())
        ordered = [entry for entry, score in sorted(found, key=place) if score >= _WORTH * best]
        return list(dict.fromkeys([*([named] if named else []), *ordered]))[:MAX_CHOICES]

    def _fetching(self) -> "asyncio.Task[None]":
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._fetch(), name="registry")
        return self._refreshing

    async def _fetch(self) -> None:
        """Take in the newest version of each server that changed since the last fetch.

        https://github.com/modelcontextprotocol/registry, v0.1.
        """
        began = self._clock()
        since = ""
        cursor = ""
        try:
            if (synced_at := await asyncio.to_thread(self._mirror.synced_at)) is not None:
                oldest = datetime.fromtimestamp(synced_at - OVERLAP_SECONDS, UTC)
                since = oldest.strftime("%Y-%m-%dT%H:%M:%SZ")
            for _ in range(MAX_PAGES):
                asked = {"version": "latest", "limit": PAGE_ENTRIES, "updated_since": since, "cursor": cursor}
                query = urlencode({name: value for name, value in asked.items() if value})
                page = await self._registry.get(f"/v0.1/servers?{query}", PAGE_SECONDS, PAGE_BYTES)
                if not isinstance(page, dict):
                    raise RegistryError("the registry answered something else than a list of servers")
                await asyncio.to_thread(self._mirror.take, array(page.get("servers")))
                onward = mapping(page.get("metadata")).get("nextCursor")
                if not isinstance(onward, str) or onward in ("", cursor):
                    break
                cursor = onward
            else:
                log.warning("the registry lists more than %s pages: the rest is left out", MAX_PAGES)
            await asyncio.to_thread(self._mirror.finish, began)
            self.trouble = ""
        except RegistryError as error:
            self.trouble = str(error)
            log.warning("the list of servers was not brought up to date: %s", error)


def nearest_topics(said: str, language: str) -> list[str]:
    """Return subjects of servers: first those with a word that is spelled like one of `said`."""
    asked = [stem(word) for word in _search_words(said[:WORDS_CHARACTERS])]

    def is_far(topic: _Topic) -> bool:
        return not any(difflib.get_close_matches(word, topic.stems, 1, ALIKE) for word in asked)

    return [topic.names[language] for topic in sorted(_topics(), key=is_far)[:TOPICS_SHOWN]]


_AROUND = " \t\n`*_“”\"'.,;:¿?¡!"


async def resolve(directory: Directory, said: str) -> Entry | list[Entry]:
    """Find the server that is meant, as the registry has it now, else those to choose from.

    An exact name of the registry means that server. Words mean one if they are the whole name of exactly one,
    and no other has them in its name. Raises `RegistryError`.
    """
    name = said.strip(_AROUND)
    exact = [word for word in (word.strip(_AROUND) for word in name.split()) if NAME.fullmatch(word)]
    if exact or "/" in name:
        return (await directory.get(exact[0]) if len(exact) == 1 else None) or []
    found = await directory.search(name.lower())
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
# A namespace in front of a name, or alone: it says who publishes a server, not what it is for.
_NAMESPACE = re.compile(r"\b(?:(?:io|com|org|net|dev|ai|app|co|me|sh)(?:\.[a-z0-9-]+)+/?)", re.IGNORECASE)


def _search_words(query: str) -> list[str]:
    """Return the words that a search or a name is about; all of them if it is about servers as such."""
    said = words(_NAMESPACE.sub(" ", query.lower()))  # GitHub is one word
    return [word for word in said if word not in ALL_STOP_WORDS and word not in _SEARCH_NOISE] or said


def _with_topics(said: Iterable[str]) -> list[str]:
    """Return the words, and after them the English words that entries use for them."""
    listed = list(said)
    topics = [topic.names["en"] for word in listed for topic in _topics() if stem(word) in topic.stems]
    return list(dict.fromkeys([*listed, *topics]))


_PROJECT_NAMESPACES = ("io.modelcontextprotocol", "io.github.modelcontextprotocol")


def _distance(entry: Entry, wanted: frozenset[str]) -> int:
    """Rate how far a name is from the wanted words.

    0 or 1 if it says nothing else (0 if its publisher has that name too, or is the protocol's own project),
    2 if it says that among other things, 3 if not at all.
    """
    called = [stem(word) for word in _search_words(entry.own_name)]
    if not wanted.issuperset(called):
        return 3 if wanted.isdisjoint(called) else 2
    is_the_projects = entry.namespace.lower() in _PROJECT_NAMESPACES
    return 0 if is_the_projects or entry.publisher.lower() in wanted else 1


_TOPICS = Path(__file__).with_name("topics.txt")


class _Topic(NamedTuple):
    """A subject of servers: its names by language, and the stems of all words that lead to it."""

    names: Mapping[str, str]
    stems: frozenset[str]


@cache
def _topics() -> tuple[_Topic, ...]:
    lines = [line for line in _TOPICS.read_text("utf-8").splitlines() if not line.startswith("#")]
    return tuple(
        _Topic(dict(zip(LANGUAGES, line.split(), strict=False)), frozenset(map(stem, words(line))))
        for line in lines
    )


def _names_all(name: str, said: str) -> bool:
    """Tell whether each of the words said is in a name, as it is or in English."""
    telling = [word for word in _search_words(said.lower()) if word not in ALL_STOP_WORDS]
    return bool(telling) and all(_own_stems(name) & _topic_stems([word]) for word in telling)


def _is_whole_name(name: str, said: str) -> bool:
    """Tell whether the words said are a name, and leave nothing of it out."""
    return _names_all(name, said) and _own_stems(name) <= _topic_stems(_search_words(said.lower()))


def _own_stems(name: str) -> frozenset[str]:
    own = words(name.rpartition("/")[2].lower())
    return frozenset(stem(word) for word in own if word not in _SERVER_WORDS)


def _topic_stems(said: Iterable[str]) -> frozenset[str]:
    return frozenset(map(stem, _with_topics(said)))


@dataclass(frozen=True)
class _Api:
    """A JSON API below `url`, which the operator wrote: it may be private, and never redirects elsewhere.

    `name` is what errors call it; `headers` hold its key.
    """

    name: str
    url: str
    transport: Transport
    headers: Mapping[str, str] = field(default_factory=dict)

    async def get(self, path: str, seconds: float, limit_bytes: int) -> JSON:
        """Return what stands there, None for nothing. Raises `RegistryError`."""
        try:
            address = Address.parse(self.url.rstrip("/") + path)
            answer = await self.transport.fetch(
                address.url,
                seconds=seconds,
                limit_bytes=limit_bytes,
                headers={"Accept": "application/json", **self.headers},
                hosts=(address.host,),
                trusted=(address.origin,),
            )
        except FetchError as error:
            raise RegistryError(f"{self.name} was not reached: {error}") from error
        if answer.status == 404:
            return None
        if not answer.ok:
            raise RegistryError(f"{self.name} answered with status {answer.status}")
        try:
            return answer.json()
        except ValueError as error:
            raise RegistryError(f"{self.name} answered something that is not JSON") from error


ENTRY_BYTES = 64 * 1024
BUSY_SECONDS = 10.0
_SHORTEST_BEGINNING = 4
_VERSION = 4
_TABLES = """
CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, raw BLOB NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS stems USING fts5 (own_name, description, publisher);
CREATE TABLE IF NOT EXISTS fetched (synced_at REAL NOT NULL);
"""
_KEEP = (
    "INSERT INTO entries (name, raw) VALUES (?, ?) ON CONFLICT DO UPDATE SET raw = excluded.raw RETURNING id"
)
_INDEX = "INSERT INTO stems (rowid, own_name, description, publisher) VALUES (?, ?, ?, ?)"
_FIND = (
    "SELECT e.raw, -bm25(stems, 3, 1, 1) AS score FROM stems JOIN entries e ON e.id = stems.rowid"
    " WHERE stems MATCH ? ORDER BY score DESC, e.name LIMIT ?"
)


class _Mirror:
    """The last known list of the registry at `url`, in a database that may be lost and fetched again.

    Every call blocks briefly. Raises `RegistryError` if the disk is full, another process holds the file for
    long, or the file is broken, which is then removed.
    """

    def __init__(self, folder: Path, url: str) -> None:
        mark = hashlib.sha256(f"{_VERSION} {url}".encode()).hexdigest()[:8]
        self._path = folder / f"registry-{mark}.db"

    def synced_at(self) -> float | None:
        """Return when the list was last fetched whole (Unix seconds), None for never."""
        with self._opened() as connection:
            found: float | None = connection.execute("SELECT max(synced_at) FROM fetched").fetchone()[0]
            return found

    def take(self, page: Iterable[JSON]) -> None:
        """Keep the entries of a page."""
        with self._opened() as connection:
            for one in page:
                entry, raw = read_entry(one), json.dumps(one).encode()
                if entry is None or len(raw) > ENTRY_BYTES:
                    continue
                (id,) = connection.execute(_KEEP, (entry.name, raw)).fetchone()
                connection.execute("DELETE FROM stems WHERE rowid = ?", (id,))
                if entry.reason is not None and entry.reason.code == "WITHDRAWN":
                    continue
                texts = (entry.own_name, _NAMESPACE.sub(" ", entry.description), entry.publisher)
                # github, and git, hub
                stems = [" ".join([*terms(text.lower()), *terms(text)]) for text in texts]
                connection.execute(_INDEX, (id, *stems))

    def finish(self, began: float) -> None:
        """Note that the last page is in, of a fetch that began at that time."""
        with self._opened() as connection:
            connection.execute("DELETE FROM fetched")
            connection.execute("INSERT INTO fetched VALUES (?)", (began,))
        for other in set(self._path.parent.glob("registry*.db")) - {self._path}:  # of before
            other.unlink()

    def entry(self, name: str) -> Entry | None:
        """Return the entry of that exact name, also one that was deleted from the registry."""
        with self._opened() as connection:
            row = connection.execute("SELECT raw FROM entries WHERE name = ?", (name,)).fetchone()
            return read_entry(json.loads(row[0])) if row else None

    def find(self, words: Sequence[str], most: int) -> list[tuple[Entry, float]]:
        """Return the entries that hold most of these words, best first, with scores above 0.

        An entry holds the stem of a word, or what begins with the word (file: filesystem).
        """
        stems = [f'"{stem(word)}"' for word in words]
        beginnings = [f'"{word}"*' for word in words if len(word) >= _SHORTEST_BEGINNING]
        wanted = " OR ".join(dict.fromkeys([*stems, *beginnings]))
        with self._opened() as connection:
            found = connection.execute(_FIND, (wanted, most)) if words else ()
            return [(entry, score) for raw, score in found if (entry := read_entry(json.loads(raw)))]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(0o700, parents=True, exist_ok=True)
        try:
            with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as connection:
                connection.executescript(_TABLES)
                with connection:
                    yield connection
        except sqlite3.OperationalError as error:
            raise RegistryError(f"the list of servers can be neither kept nor read: {error}") from error
        except sqlite3.DatabaseError as error:
            self._path.unlink(missing_ok=True)
            raise RegistryError("the list of servers was damaged, and is fetched anew: ask again") from error


# Smithery's names in the registry's form: exa is ai.smithery/exa, ana/clock is ai.smithery.ana/clock.
SMITHERY = "ai.smithery"
SMITHERY_BYTES = 1024 * 1024
MAX_HOSTED = 3  # of the servers that a search finds
_OWNER, _OWN = "([A-Za-z0-9-]{1,60})", "([A-Za-z0-9._-]{1,100})"
_QUALIFIED = re.compile(rf"(?:@?{_OWNER}/)?{_OWN}")
_SMITHERY_NAME = re.compile(rf"{re.escape(SMITHERY)}(?:\.{_OWNER})?/{_OWN}")


class _Smithery:
    """Smithery at `url`, asked with the owner's `key` (https://smithery.ai/docs/api-reference).

    Its servers run on its machines; what it says of one is read as a server.json.
    """

    def __init__(self, url: str, key: str, transport: Transport) -> None:
        self._api = _Api("Smithery", url, transport, {"Authorization": f"Bearer {key}"})

    async def search(self, words: str) -> list[Entry]:
        """Return the few servers that it finds best. Raises `RegistryError`, after 15 s at most."""
        query = urlencode({"q": words, "page": 1, "pageSize": MAX_HOSTED})
        page = await self._api.get(f"/servers?{query}", ONE_SECONDS, SMITHERY_BYTES)
        servers = mapping(page).get("servers")
        if not isinstance(servers, list):
            raise RegistryError("Smithery answered something else than a list of servers")
        names = [_name(one.get("qualifiedName")) for one in servers if isinstance(one, dict)][:MAX_HOSTED]
        found = await asyncio.gather(*map(self.get, names), return_exceptions=True)
        return [entry for entry in found if isinstance(entry, Entry)]

    async def get(self, name: str) -> Entry | None:
        """Return the server of that name, None for none. Raises `RegistryError`, after 10 s at most."""
        match = _SMITHERY_NAME.fullmatch(name)
        if match is None:
            return None
        owner, own = match.groups()
        # Names of before 2026 begin with an @, which the newer ones have lost.
        for qualified in (f"{owner}/{own}", f"@{owner}/{own}") if owner else (own,):
            detail = await self._api.get(f"/servers/{quote(qualified, safe='/@')}", ONE_SECONDS, ONE_BYTES)
            if isinstance(detail, dict):
                return read_entry(_server_json(name, detail))
        return None


def _name(qualified: JSON) -> str:
    """Write its name in the registry's form; "" if that cannot be done."""
    match = _QUALIFIED.fullmatch(qualified) if isinstance(qualified, str) else None
    if match is None:
        return ""
    owner, own = match.groups()
    return f"{SMITHERY}.{owner}/{own}" if owner else f"{SMITHERY}/{own}"


def _server_json(name: str, detail: Mapping[str, JSON]) -> JSON:
    """Write what it says of a server; one that wants to be configured, or is a bundle, is not installed."""
    kinds = map(mapping, array(detail.get("connections")))
    hosted = next((one for one in kinds if one.get("type") == "http"), {})
    described = {"name": name, "description": detail.get("description"), "version": "latest"}
    if not hosted or mapping(hosted.get("configSchema")).get("required"):
        kind = "configuration" if hosted else "mcpb"
        return {**described, "packages": [{"registryType": kind, "identifier": detail.get("qualifiedName")}]}
    url = str(hosted.get("deploymentUrl", ""))
    host = "" if remote_fault(url) else urlsplit(url).netloc
    if host == "server.smithery.ai" and not url.endswith("/mcp"):
        url = f"{url.rstrip('/')}/mcp"
    is_theirs = host.endswith((".smithery.ai", ".run.tools"))
    headers = [{"name": "Authorization", "value": "Bearer {SMITHERY_API_KEY}"}] if is_theirs else []
    return {**described, "remotes": [{"type": "streamable-http", "url": url, "headers": headers}]}
