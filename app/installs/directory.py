"""Finds servers by what a person calls them, in a mirror of the registry (docs/decisions/0012)."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.http.transport import Transport
from app.installs.registry_api import Registry, RegistryError
from app.installs.registry_entries import Entry
from app.installs.registry_mirror import Kept, Mirror
from app.installs.server_json import NAME, read_entry
from app.installs.smithery import Smithery
from app.installs.topics import asked, expanded
from app.search.words import stem
from app.settings import Settings

FRESH_SECONDS = 6 * 3600
AGAIN_SECONDS = 5 * 60
"""After a failed fetching, before the next search tries again."""
WHOLE_SECONDS = 30 * 24 * 3600
"""So often everything is fetched, and what the registry no longer lists is forgotten."""
OVERLAP_SECONDS = 3600
"""By how much our clock may be ahead of the registry's."""
FIRST_SECONDS = 25.0
"""How long a search waits for the first list."""
WORDS_CHARACTERS = 200
LOOKED_AT = 60
"""So many of the best by words are put in order."""
_WORTH = 0.3
_CLOSE = 0.7
"""Shares of the best one's score: below the one an entry is no answer, above the other about as good."""
_THE_PROJECT = ("io.modelcontextprotocol", "io.github.modelcontextprotocol")
"""Not whoever has that name under another top-level domain."""

log = logging.getLogger(__name__)


class Directory:
    """Searches the registry's mirror in DATA_DIR/mcp/registry.db, which works while the registry is away,
    and Smithery where there is a key.

    The mirror is brought up to date in the background, by a search that finds it older than six hours.
    """

    def __init__(
        self,
        url: str,
        data_dir: Path,
        transport: Transport,
        *,
        smithery: Smithery | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = Registry(url, transport)
        self._smithery = smithery
        self._mirror = Mirror(data_dir / "mcp" / "registry.db", self._registry.url)
        self._clock = clock
        self._refreshing: asyncio.Task[None] | None = None
        self._failed_at = float("-inf")
        self.trouble = ""
        """Why the last fetching failed; "" where it did not."""

    async def close(self) -> None:
        """Ends a fetching that is under way; what came of it is kept."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])

    async def kept(self) -> Kept:
        """How many entries the mirror has, and as of when."""
        return await asyncio.to_thread(self._mirror.kept)

    async def refresh(self) -> None:
        """Brings the mirror up to date, together with whoever else is at it. Raises RegistryError."""
        await asyncio.shield(self._fetching())

    async def search(self, words: str, limit: int = 8) -> list[Entry]:
        """The servers that fit best: the one with that very name, then those that can be installed, then the
        few that run at Smithery.

        From the mirror at once where there is one; else after the first fetching, or from what came of it
        within 25 s. Raises RegistryError where there is nothing to search in.
        """
        listed, hosted = await asyncio.gather(
            self._listed(words, limit), self._hosted(words), return_exceptions=True
        )
        also = [] if isinstance(hosted, BaseException) else hosted
        if isinstance(listed, BaseException):
            if not (also and isinstance(listed, RegistryError)):
                raise listed
            return also
        return [*listed[: limit - len(also)], *also]

    async def get(self, name: str) -> Entry | None:
        """A server in its newest version, as the registry has it now, or the mirror where that is away.

        None where there is none. Raises RegistryError where nobody knows.
        """
        if not NAME.fullmatch(name):
            return None
        hosted, trouble = await self._at_smithery(name)
        if hosted is not None:
            return hosted
        entry = await self._in_registry(name)
        if entry is None and trouble is not None:
            raise trouble
        return entry

    async def _at_smithery(self, name: str) -> tuple[Entry | None, RegistryError | None]:
        """One of its servers, or why it did not say: the registry lists some of them too."""
        try:
            return (await self._smithery.get(name) if self._smithery is not None else None), None
        except RegistryError as error:
            return None, error

    async def _in_registry(self, name: str) -> Entry | None:
        try:
            entry = read_entry(await self._registry.server(name))
        except RegistryError as error:
            log.info("%s from the mirror: %s", name, error)
            entry = await asyncio.to_thread(self._mirror.entry, name)
            if entry is None:
                raise
        return entry if entry is not None and entry.name == name else None

    async def _listed(self, words: str, limit: int) -> list[Entry]:
        await self._bring_mirror()
        return await asyncio.to_thread(self._found, words, limit)

    async def _hosted(self, words: str) -> list[Entry]:
        """Those of Smithery, whose silence takes nothing from what the registry has."""
        if self._smithery is None:
            return []
        try:
            return await self._smithery.search(words[:WORDS_CHARACTERS])
        except RegistryError as error:
            log.warning("Smithery is left out: %s", error)
            return []

    async def _bring_mirror(self) -> None:
        kept, now = await self.kept(), self._clock()
        is_fresh = kept.synced_at is not None and 0 <= now - kept.synced_at < FRESH_SECONDS
        if is_fresh or (kept.entries and now - self._failed_at < AGAIN_SECONDS):
            return
        fetching = self._fetching()
        if kept.synced_at is not None:
            return
        await asyncio.wait([fetching], timeout=FIRST_SECONDS)
        if not (await self.kept()).entries and not (fetching.done() and not self.trouble):
            raise RegistryError(self.trouble or "the list of servers has not come yet: ask again in a minute")

    def _found(self, words: str, limit: int) -> list[Entry]:
        said = asked(words[:WORDS_CHARACTERS])
        meant = expanded(said)
        found = self._mirror.find(meant, LOOKED_AT)
        if not found:
            meant = self._mirror.respelled(said)
            found = self._mirror.find(meant, LOOKED_AT)
        named = self._mirror.entry(words.strip())
        ordered = _in_order(found, frozenset([*meant, *map(stem, meant)]))
        return list(dict.fromkeys([*([named] if named else []), *ordered]))[:limit]

    def _fetching(self) -> "asyncio.Task[None]":
        """The one fetching that is under way, or a new one."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._fetch(), name="registry")
            self._refreshing.add_done_callback(_seen)
        return self._refreshing

    async def _fetch(self) -> None:
        try:
            await self._fetch_pages()
        except RegistryError as error:
            self._failed_at = self._clock()
            self.trouble = str(error)
            log.warning("the list of servers was not brought up to date: %s", error)
            raise
        self.trouble = ""

    async def _fetch_pages(self) -> None:
        began = self._clock()
        kept = await self.kept()
        is_whole = kept.synced_at is None or not 0 <= began - kept.whole_at < WHOLE_SECONDS
        since = (kept.synced_at or 0.0) - OVERLAP_SECONDS
        async for page in self._registry.pages("" if is_whole else _rfc3339(since)):
            if not await asyncio.to_thread(self._mirror.take, page, began):
                log.warning("the list of servers is too large: the rest of it is left out")
                break
        await asyncio.to_thread(self._mirror.finish, began, whole=is_whole)


def directory_of(settings: Settings, transport: Transport) -> Directory:
    """The directory that the settings name."""
    key = settings.smithery_api_key.get_secret_value()
    smithery = Smithery(settings.smithery_url, key, transport) if key else None
    return Directory(settings.mcp_registry_url, settings.data_dir, transport, smithery=smithery)


def _in_order(found: Sequence[tuple[Entry, float]], meant: frozenset[str]) -> list[Entry]:
    """The entries that are an answer, best first: by how well their name fits, then whether they are about
    as good as the best, then whether they can be installed."""
    best = max((score for _, score in found), default=1.0)

    def place(one: tuple[Entry, float]) -> tuple[int, bool, bool, float, str]:
        entry, score = one
        return _farness(entry, meant), score < _CLOSE * best, entry.choice is None, -score, entry.name

    return [entry for entry, score in sorted(found, key=place) if score >= _WORTH * best]


def _farness(entry: Entry, meant: frozenset[str]) -> int:
    """0 and 1 for one whose own name says nothing but what is meant, 0 where its publisher bears that name
    too or is the protocol's own project; 2 where it says that among other things, 3 where not at all."""
    called = [stem(word) for word in asked(entry.own_name)]
    if not meant.issuperset(called):
        return 3 if meant.isdisjoint(called) else 2
    is_the_projects = entry.namespace.lower() in _THE_PROJECT
    return 0 if is_the_projects or entry.publisher.lower() in meant else 1


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seen(task: "asyncio.Task[None]") -> None:
    """What went wrong was logged; somebody has to look at it."""
    if not task.cancelled():
        task.exception()
