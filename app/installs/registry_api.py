"""The registry's API (https://github.com/modelcontextprotocol/registry, v0.1): pages of entries, and one."""

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from app.errors import RecadoError
from app.http.address import Address
from app.http.errors import FetchError
from app.http.transport import Transport
from app.messages import JSON

PAGE_ENTRIES = 100
"""The API's own limit."""
MOST_PAGES = 200
PAGE_SECONDS = 30.0
PAGE_BYTES = 4 * 1024 * 1024
ONE_SECONDS = 5.0
ONE_BYTES = 256 * 1024
_CURSOR_CHARACTERS = 1000

log = logging.getLogger(__name__)


class RegistryError(RecadoError):
    """The registry did not say what it was asked; the text says why, without its address."""


@dataclass(frozen=True, slots=True)
class Api:
    """Answers of JSON from below `url`, which the operator wrote: it may be private, and leads nowhere else.

    `name` is what errors call it; `headers` hold what it lets us in with.
    """

    name: str
    url: str
    transport: Transport
    headers: Mapping[str, str] = field(default_factory=dict)

    async def get(self, path: str, seconds: float, limit_bytes: int) -> JSON:
        """What stands there; None where nothing does. Raises RegistryError."""
        try:
            address = Address.parse(self.url.rstrip("/") + path)
            answer = await self.transport.get(
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
    """Asks the registry at `url`."""

    def __init__(self, url: str, transport: Transport) -> None:
        self.url = url.rstrip("/")
        self._api = Api("the registry", self.url, transport)

    async def pages(self, updated_since: str = "") -> AsyncIterator[list[JSON]]:
        """The newest version of each server, at most 200 pages of 100, as they came; with `updated_since`
        (RFC 3339) only what changed after that. Raises RegistryError."""
        asked = {"version": "latest", "limit": str(PAGE_ENTRIES)}
        if updated_since:
            asked["updated_since"] = updated_since
        cursor, seen = "", {""}
        for _ in range(MOST_PAGES):
            page = await self._page({**asked, "cursor": cursor} if cursor else asked)
            servers, metadata = page.get("servers"), page.get("metadata")
            yield servers if isinstance(servers, list) else []
            onward = metadata.get("nextCursor") if isinstance(metadata, dict) else None
            if not isinstance(onward, str) or onward in seen or len(onward) > _CURSOR_CHARACTERS:
                return
            seen.add(onward)
            cursor = onward
        log.warning("the registry lists more than %s pages: the rest is left out", MOST_PAGES)

    async def server(self, name: str) -> JSON:
        """The newest version of a server; None for none. Raises RegistryError, after 5 s at the latest."""
        path = f"/v0.1/servers/{quote(name, safe='')}/versions/latest"
        return await self._api.get(path, ONE_SECONDS, ONE_BYTES)

    async def _page(self, query: dict[str, str]) -> dict[str, JSON]:
        page = await self._api.get(f"/v0.1/servers?{urlencode(query)}", PAGE_SECONDS, PAGE_BYTES)
        if not isinstance(page, dict):
            raise RegistryError("the registry answered something else than a list of servers")
        return page
