"""Smithery: a second directory, whose servers run on its machines (https://smithery.ai/docs/api-reference).

It is asked only where the owner has a key, with which its servers are used too. What it says of a server is
read as a `server.json`, with the same care as what the registry says.
"""

import asyncio
import logging
import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from app.http.transport import Transport
from app.installs.registry_api import ONE_BYTES, ONE_SECONDS, Api, RegistryError
from app.installs.registry_entries import Entry
from app.installs.server_json import read_entry
from app.mcp.hosting import host_of, runs_at_smithery
from app.messages import JSON

NAMESPACE = "ai.smithery"
"""Its names in the registry's form: exa is ai.smithery/exa, ana/clock is ai.smithery.ana/clock."""
MOST_HOSTED = 3
"""So many of a search's servers are its."""

_PAGE_BYTES = 1024 * 1024
_KEY_SAID = "Your key of Smithery, where it shall not be SMITHERY_API_KEY of your settings"
_OWNER, _OWN = "([A-Za-z0-9-]{1,60})", "([A-Za-z0-9._-]{1,100})"
_QUALIFIED = re.compile(rf"(?:@?{_OWNER}/)?{_OWN}")
_NAME = re.compile(rf"{re.escape(NAMESPACE)}(?:\.{_OWNER})?/{_OWN}")

log = logging.getLogger(__name__)


class Smithery:
    """Asks Smithery at `url` with the owner's `key`."""

    def __init__(self, url: str, key: str, transport: Transport) -> None:
        self._api = Api("Smithery", url, transport, {"Authorization": f"Bearer {key}"})

    async def search(self, words: str) -> list[Entry]:
        """The few servers that it finds best, as it has them now. Raises RegistryError, after 15 s at the
        latest."""
        query = urlencode({"q": words, "page": 1, "pageSize": MOST_HOSTED})
        page = await self._api.get(f"/servers?{query}", ONE_SECONDS, _PAGE_BYTES)
        servers = page.get("servers") if isinstance(page, dict) else None
        if not isinstance(servers, list):
            raise RegistryError("Smithery answered something else than a list of servers")
        listed = [_name(one.get("qualifiedName")) for one in servers if isinstance(one, dict)][:MOST_HOSTED]
        found = await asyncio.gather(*(self._looked_up(name) for name in listed if name))
        return [entry for entry in found if entry is not None]

    async def get(self, name: str) -> Entry | None:
        """The server of that name in our writing; None for none. Raises RegistryError, after 10 s at the
        latest."""
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
    """In our writing; "" for what none can be made of."""
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
    """One with what its author's schema wants in its address or its headers; what may be given as well as
    not is left to its defaults."""
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
    """What a configuration must have, by name."""
    asked = schema if isinstance(schema, dict) else {}
    properties, required = asked.get("properties"), asked.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return []
    return [(name, one) for name in map(str, required) if isinstance(one := properties.get(name), dict)]
