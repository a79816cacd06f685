"""A stand-in of the MCP registry: its list with pages and filters, and single versions."""

import asyncio
import json
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.standins.listener import Listener

OFFICIAL = "io.modelcontextprotocol.registry/official"
OWN = Path(__file__).with_name("registry_entries.json")
EVERYTHING = "io.github.modelcontextprotocol/server-everything"
GITHUB = "io.github.github/github-mcp-server"


def own_entries() -> list[dict[str, Any]]:
    """Servers with packages that exist, in versions that exist, and some that nobody should install."""
    return list(json.loads(OWN.read_text("utf-8"))["servers"])


def sample_entries(samples: Path) -> list[dict[str, Any]]:
    """238 servers that are listed in public."""
    path = samples / "mcp_registry" / "servers_v0.1_converted.json"
    return list(json.loads(path.read_text("utf-8"))["servers"])


def entry(name: str, description: str = "", at: str = "2026-11-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    """One with a remote, as the registry lists it; `more` goes into its server.json."""
    server = {"name": name, "description": description or name, "version": "1.0.0"}
    remote = {"type": "streamable-http", "url": "https://mcp.example.com/mcp"}
    official = {"status": "active", "publishedAt": at, "updatedAt": at, "isLatest": True}
    return {"server": {**server, "remotes": [remote], **more}, "_meta": {OFFICIAL: official}}


class RegistryServer:
    """Serves `entries`; `failing` in place of an answer, `asked` the paths and queries, as they were sent."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.entries = entries
        self.failing: Response | None = None
        self.asked: list[str] = []
        self.answers_left = 10**9
        """After so many it takes requests and says nothing."""
        routes = [
            Route("/v0.1/servers", self._list),
            Route("/v0.1/servers/{name:path}/versions/{version}", self._version),
        ]
        self._listener = Listener(Starlette(routes=routes))
        self.port = self._listener.port
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        return {"MCP_REGISTRY_URL": self.url}

    def stop(self) -> None:
        self._listener.stop()

    async def _list(self, request: Request) -> Response:
        if (broken := await self._noted(request)) is not None:
            return broken
        query = request.query_params
        found = sorted(filter(lambda one: _fits(one, query), self.entries), key=_cursor)
        rest = [one for one in found if _cursor(one) > query.get("cursor", "")]
        page = rest[: min(int(query.get("limit", "30")), 100)]
        metadata: dict[str, Any] = {"count": len(page)}
        if len(rest) > len(page):
            metadata["nextCursor"] = _cursor(page[-1])
        return JSONResponse({"servers": page, "metadata": metadata})

    async def _version(self, request: Request) -> Response:
        if (broken := await self._noted(request)) is not None:
            return broken
        name, version = request.path_params["name"], request.path_params["version"]
        for one in self.entries:
            is_meant = (
                _official(one)["isLatest"] if version == "latest" else version == one["server"]["version"]
            )
            if one["server"]["name"] == name and is_meant:
                return JSONResponse(one)
        return JSONResponse({"title": "Not Found", "status": 404, "detail": "Server not found"}, 404)

    async def _noted(self, request: Request) -> Response | None:
        query = request.url.query
        self.asked.append(request.scope["raw_path"].decode() + (f"?{query}" if query else ""))
        self.answers_left -= 1
        if self.answers_left < 0:
            await asyncio.sleep(600)
        return self.failing


def _fits(one: dict[str, Any], query: Any) -> bool:
    official = _official(one)
    return (
        query.get("search", "").lower() in one["server"]["name"].lower()
        and (query.get("version") != "latest" or official["isLatest"])
        and official["updatedAt"] > query.get("updated_since", "")
    )


def _official(one: dict[str, Any]) -> dict[str, Any]:
    return dict(one["_meta"][OFFICIAL])


def _cursor(one: dict[str, Any]) -> str:
    return f"{one['server']['name']}:{one['server']['version']}"
