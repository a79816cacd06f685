"""The lists of servers: the MCP registry, with a mirror of it, and Smithery if the owner has a key."""

import asyncio
import hashlib
import json
import logging
import re
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from app.http.address import Address, FetchError
from app.http.transport import Transport
from app.installs.entries import Entry, read_entry
from app.installs.errors import RegistryError
from app.messages import JSON
from app.search.words import stem, terms
from app.skills.servers import remote_fault

PAGE_ENTRIES = 100  # the API's own limit
MAX_PAGES = 200
PAGE_SECONDS = 30.0
PAGE_BYTES = 4 * 1024 * 1024
ONE_SECONDS = 5.0
ONE_BYTES = 256 * 1024
# Smithery's names in the registry's form: exa is ai.smithery/exa, ana/clock is ai.smithery.ana/clock.
SMITHERY = "ai.smithery"
MAX_HOSTED = 3  # of the servers that a search finds

ENTRY_BYTES = 64 * 1024
BUSY_SECONDS = 10.0
_SHORTEST_BEGINNING = 4
_VERSION = 3
# A namespace in front of a name, or alone: it says who publishes a server, not what it is for.
NAMESPACE = re.compile(r"\b(?:(?:io|com|org|net|dev|ai|app|co|me|sh)(?:\.[a-z0-9-]+)+/?)", re.IGNORECASE)
_TABLES = """
CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, raw BLOB NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS stems USING fts5 (own_name, title, description, publisher);
CREATE TABLE IF NOT EXISTS fetched (synced_at REAL NOT NULL);
"""
_KEEP = (
    "INSERT INTO entries (name, raw) VALUES (?, ?) ON CONFLICT DO UPDATE SET raw = excluded.raw RETURNING id"
)
_FIND = (
    "SELECT e.raw, -bm25(stems, 3, 2, 1, 1) AS score FROM stems JOIN entries e ON e.id = stems.rowid"
    " WHERE stems MATCH ? ORDER BY score DESC, e.name LIMIT ?"
)
_SMITHERY_BYTES = 1024 * 1024
_OWNER, _OWN = "([A-Za-z0-9-]{1,60})", "([A-Za-z0-9._-]{1,100})"
_QUALIFIED = re.compile(rf"(?:@?{_OWNER}/)?{_OWN}")
_NAME = re.compile(rf"{re.escape(SMITHERY)}(?:\.{_OWNER})?/{_OWN}")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Api:
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
                accept="application/json",
                headers=self.headers,
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


class Registry:
    """The registry at `url` (https://github.com/modelcontextprotocol/registry, v0.1)."""

    def __init__(self, url: str, transport: Transport) -> None:
        self.url = url.rstrip("/")
        self._api = Api("the registry", self.url, transport)

    async def pages(self, updated_since: str = "") -> AsyncIterator[list[JSON]]:
        """Yield the newest version of each server, in at most 200 pages of 100.

        With `updated_since` (RFC 3339) only what changed after that. Raises `RegistryError`.
        """
        asked = {"version": "latest", "limit": str(PAGE_ENTRIES)}
        if updated_since:
            asked["updated_since"] = updated_since
        cursor = ""
        for _ in range(MAX_PAGES):
            query = urlencode({**asked, "cursor": cursor} if cursor else asked)
            page = await self._api.get(f"/v0.1/servers?{query}", PAGE_SECONDS, PAGE_BYTES)
            if not isinstance(page, dict):
                raise RegistryError("the registry answered something else than a list of servers")
            servers, metadata = page.get("servers"), page.get("metadata")
            yield servers if isinstance(servers, list) else []
            onward = metadata.get("nextCursor") if isinstance(metadata, dict) else None
            if not isinstance(onward, str) or onward in ("", cursor):
                return
            cursor = onward
        log.warning("the registry lists more than %s pages: the rest is left out", MAX_PAGES)

    async def server(self, name: str) -> JSON:
        """Return the newest version of a server, None for none. Raises `RegistryError`, after 5 s at most."""
        path = f"/v0.1/servers/{quote(name, safe='')}/versions/latest"
        return await self._api.get(path, ONE_SECONDS, ONE_BYTES)


class Mirror:
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
                if entry is not None and len(raw) <= ENTRY_BYTES:
                    (id,) = connection.execute(_KEEP, (entry.name, raw)).fetchone()
                    _index(connection, id, entry)

    def finish(self, began: float) -> None:
        """Note that the last page is in, of a fetch that began at that time."""
        with self._opened() as connection:
            connection.execute("DELETE FROM fetched")
            connection.execute("INSERT INTO fetched VALUES (?)", (began,))
        self._path.with_name("registry.db").unlink(missing_ok=True)  # of versions before this one

    def entry(self, name: str) -> Entry | None:
        """Return the entry of that exact name, also one that was deleted from the registry."""
        with self._opened() as connection:
            row = connection.execute("SELECT raw FROM entries WHERE name = ?", (name,)).fetchone()
            return read_entry(json.loads(row[0])) if row else None

    def find(self, words: Sequence[str], most: int) -> list[tuple[Entry, float]]:
        """Return the entries that hold most of these words, best first, with scores above 0."""
        with self._opened() as connection:
            found = connection.execute(_FIND, (_wanted(words), most)) if words else ()
            return [(entry, score) for raw, score in found if (entry := read_entry(json.loads(raw)))]

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        """Return how many entries hold each word."""
        sql = "SELECT count(*) FROM stems WHERE stems MATCH ?"
        with self._opened() as connection:
            return {word: connection.execute(sql, (f'"{stem(word)}"',)).fetchone()[0] for word in words}

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


def _index(connection: sqlite3.Connection, id: int, entry: Entry) -> None:
    connection.execute("DELETE FROM stems WHERE rowid = ?", (id,))
    if entry.reason is None or entry.reason.code != "DELETED":
        title, description = (NAMESPACE.sub(" ", text) for text in (entry.title, entry.description))
        texts = (entry.own_name, title, description, entry.publisher)
        stems = (" ".join([*terms(text.lower()), *terms(text)]) for text in texts)  # github, and git, hub
        connection.execute(
            "INSERT INTO stems (rowid, own_name, title, description, publisher) VALUES (?, ?, ?, ?, ?)",
            (id, *stems),
        )


def _wanted(words: Sequence[str]) -> str:
    """Write the words as an FTS5 query: their stems, and what begins with them (file: filesystem)."""
    stems = [f'"{stem(word)}"' for word in words]
    beginnings = [f'"{word}"*' for word in words if len(word) >= _SHORTEST_BEGINNING]
    return " OR ".join(dict.fromkeys([*stems, *beginnings]))


class Smithery:
    """Smithery at `url`, asked with the owner's `key` (https://smithery.ai/docs/api-reference).

    Its servers run on its machines; what it says of one is read as a server.json.
    """

    def __init__(self, url: str, key: str, transport: Transport) -> None:
        self._api = Api("Smithery", url, transport, {"Authorization": f"Bearer {key}"})

    async def search(self, words: str) -> list[Entry]:
        """Return the few servers that it finds best. Raises `RegistryError`, after 15 s at most."""
        query = urlencode({"q": words, "page": 1, "pageSize": MAX_HOSTED})
        page = await self._api.get(f"/servers?{query}", ONE_SECONDS, _SMITHERY_BYTES)
        servers = page.get("servers") if isinstance(page, dict) else None
        if not isinstance(servers, list):
            raise RegistryError("Smithery answered something else than a list of servers")
        names = [_name(one.get("qualifiedName")) for one in servers if isinstance(one, dict)][:MAX_HOSTED]
        found = await asyncio.gather(*map(self.get, names), return_exceptions=True)
        return [entry for entry in found if isinstance(entry, Entry)]

    async def get(self, name: str) -> Entry | None:
        """Return the server of that name, None for none. Raises `RegistryError`, after 10 s at most."""
        match = _NAME.fullmatch(name)
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
    connections = detail.get("connections")
    kinds = [one for one in connections if isinstance(one, dict)] if isinstance(connections, list) else []
    hosted = next((one for one in kinds if one.get("type") == "http"), {})
    described = {"name": name, "title": detail.get("displayName"), "description": detail.get("description")}
    schema, url = hosted.get("configSchema"), str(hosted.get("deploymentUrl", ""))
    if not hosted or (isinstance(schema, dict) and schema.get("required")):
        kind = "mcpb" if not hosted else "configuration"
        ways = {"packages": [{"registryType": kind, "identifier": detail.get("qualifiedName")}]}
        return {**described, "version": "latest", **ways}
    host = "" if remote_fault(url) else urlsplit(url).netloc
    if host == "server.smithery.ai" and not url.endswith("/mcp"):
        url = f"{url.rstrip('/')}/mcp"
    is_theirs = host.endswith((".smithery.ai", ".run.tools"))
    headers = [{"name": "Authorization", "value": "Bearer {SMITHERY_API_KEY}"}] if is_theirs else []
    remote = {"type": "streamable-http", "url": url, "headers": headers}
    return {**described, "version": "latest", "remotes": [remote]}
