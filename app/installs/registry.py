"""The directories that are asked over the network: the MCP registry, and Smithery if the owner has a key."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from app.http.address import Address, FetchError
from app.http.transport import Transport
from app.installs.entries import Entry, read_entry
from app.installs.errors import RegistryError
from app.mcp.installed import host_of, runs_at_smithery
from app.messages import JSON

PAGE_ENTRIES = 100  # the API's own limit
MAX_PAGES = 200
PAGE_SECONDS = 30.0
PAGE_BYTES = 4 * 1024 * 1024
ONE_SECONDS = 5.0
ONE_BYTES = 256 * 1024
_CURSOR_CHARACTERS = 1000
# Smithery's names in the registry's form: exa is ai.smithery/exa, ana/clock is ai.smithery.ana/clock.
NAMESPACE = "ai.smithery"
MAX_HOSTED = 3  # of the servers that a search finds

_PAGE_BYTES = 1024 * 1024
_KEY_SAID = "Your key of Smithery, where it shall not be SMITHERY_API_KEY of your settings"
_OWNER, _OWN = "([A-Za-z0-9-]{1,60})", "([A-Za-z0-9._-]{1,100})"
_QUALIFIED = re.compile(rf"(?:@?{_OWNER}/)?{_OWN}")
_NAME = re.compile(rf"{re.escape(NAMESPACE)}(?:\.{_OWNER})?/{_OWN}")

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
        cursor, seen = "", {""}
        for _ in range(MAX_PAGES):
            page = await self._page({**asked, "cursor": cursor} if cursor else asked)
            servers, metadata = page.get("servers"), page.get("metadata")
            yield servers if isinstance(servers, list) else []
            onward = metadata.get("nextCursor") if isinstance(metadata, dict) else None
            if not isinstance(onward, str) or onward in seen or len(onward) > _CURSOR_CHARACTERS:
                return
            seen.add(onward)
            cursor = onward
        log.warning("the registry lists more than %s pages: the rest is left out", MAX_PAGES)

    async def server(self, name: str) -> JSON:
        """Return the newest version of a server, None for none. Raises `RegistryError`, after 5 s at most."""
        path = f"/v0.1/servers/{quote(name, safe='')}/versions/latest"
        return await self._api.get(path, ONE_SECONDS, ONE_BYTES)

    async def _page(self, query: dict[str, str]) -> dict[str, JSON]:
        page = await self._api.get(f"/v0.1/servers?{urlencode(query)}", PAGE_SECONDS, PAGE_BYTES)
        if not isinstance(page, dict):
            raise RegistryError("the registry answered something else than a list of servers")
        return page


class Smithery:
    """Smithery at `url`, asked with the owner's `key` (https://smithery.ai/docs/api-reference).

    Its servers run on its machines; what it says of one is read as a server.json.
    """

    def __init__(self, url: str, key: str, transport: Transport) -> None:
        self._api = Api("Smithery", url, transport, {"Authorization": f"Bearer {key}"})

    async def search(self, words: str) -> list[Entry]:
        """Return the few servers that it finds best. Raises `RegistryError`, after 15 s at most."""
        query = urlencode({"q": words, "page": 1, "pageSize": MAX_HOSTED})
        page = await self._api.get(f"/servers?{query}", ONE_SECONDS, _PAGE_BYTES)
        servers = page.get("servers") if isinstance(page, dict) else None
        if not isinstance(servers, list):
            raise RegistryError("Smithery answered something else than a list of servers")
        listed = [_name(one.get("qualifiedName")) for one in servers if isinstance(one, dict)][:MAX_HOSTED]
        found = await asyncio.gather(*(self._looked_up(name) for name in listed if name))
        return [entry for entry in found if entry is not None]

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

    async def _looked_up(self, name: str) -> Entry | None:
        try:
            return await self.get(name)
        except RegistryError as error:
            log.info("%s is left out: %s", name, error)
            return None


def _name(qualified: JSON) -> str:
    """Write its name in the registry's form; "" if that cannot be done."""
    match = _QUALIFIED.fullmatch(qualified) if isinstance(qualified, str) else None
    if match is None:
        return ""
    owner, own = match.groups()
    return f"{NAMESPACE}.{owner}/{own}" if owner else f"{NAMESPACE}/{own}"


def _server_json(name: str, detail: Mapping[str, JSON]) -> JSON:
    connections = detail.get("connections")
    kinds = [one for one in connections if isinstance(one, dict)] if isinstance(connections, list) else []
    hosted = next((one for one in kinds if one.get("type") == "http"), None)
    ways: dict[str, JSON]
    if hosted is not None:
        ways = {"remotes": [_remote(str(hosted.get("deploymentUrl", "")), hosted.get("configSchema"))]}
    else:
        ways = {"packages": [{"registryType": "mcpb", "identifier": detail.get("qualifiedName")}]}
    return {
        "name": name,
        "title": detail.get("displayName"),
        "description": detail.get("description"),
        "version": "latest",
        **ways,
    }


def _remote(url: str, schema: JSON) -> JSON:
    """Put what its author's schema requires into its address or headers, and nothing optional."""
    if host_of(url) == "server.smithery.ai" and not url.endswith("/mcp"):
        url = f"{url.rstrip('/')}/mcp"
    headers: list[JSON] = []
    if runs_at_smithery(url):
        key = {"description": _KEY_SAID, "isRequired": True, "isSecret": True}
        value = "Bearer {SMITHERY_API_KEY}"
        headers.append({"name": "Authorization", "value": value, "variables": {"SMITHERY_API_KEY": key}})
    query: list[str] = []
    variables: dict[str, JSON] = {}
    for name, wanted in _required(schema):
        blank = re.sub(r"^(?=\d)|\W", "_", name, flags=re.ASCII)
        given = {blank: _variable(wanted)}
        place = wanted.get("x-from")
        where = place if isinstance(place, dict) else {}
        if header := where.get("header"):
            headers.append({"name": header, "value": f"{{{blank}}}", "variables": given})
        else:
            query.append(f"{quote(str(where.get('query') or name), safe='')}={{{blank}}}")
            variables |= given
    asked = f"{'&' if '?' in url else '?'}{'&'.join(query)}" if query else ""
    return {"type": "streamable-http", "url": url + asked, "headers": headers, "variables": variables}


def _variable(wanted: Mapping[str, JSON]) -> JSON:
    kind = wanted.get("type")
    return {
        "description": wanted.get("description") or wanted.get("title"),
        "isRequired": True,
        "default": wanted.get("default"),
        "choices": wanted.get("enum"),
        "format": kind if kind in ("number", "boolean") else "string",
    }


def _required(schema: JSON) -> list[tuple[str, dict[str, JSON]]]:
    """Return the required properties of a configuration by name."""
    asked = schema if isinstance(schema, dict) else {}
    properties, required = asked.get("properties"), asked.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return []
    return [(name, one) for name in map(str, required) if isinstance(one := properties.get(name), dict)]
