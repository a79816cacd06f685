"""A stand-in of Smithery's API: its search, and what it says of a server."""

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.standins.listener import Listener

KEY = "key-of-smithery-1234567890"


def hosted(name: str, title: str, url: str, **schema: Any) -> dict[str, Any]:
    """A server on its machines, whose configuration has this JSON Schema."""
    connection = {"type": "http", "deploymentUrl": url, "configSchema": {"type": "object", **schema}}
    said = {"qualifiedName": name, "displayName": title, "description": f"{title}, hosted"}
    return {**said, "remote": True, "deploymentUrl": url, "connections": [connection]}


class SmitherySite:
    """Knows `servers`, each as it tells all of it; `failing` in place of an answer, `asked` what it was."""

    def __init__(self, servers: list[dict[str, Any]]) -> None:
        self.servers = servers
        self.failing: Response | None = None
        self.asked: list[str] = []
        routes = [Route("/servers", self._search), Route("/servers/{name:path}", self._server)]
        self._listener = Listener(Starlette(routes=routes))
        self.url = f"http://127.0.0.1:{self._listener.port}"

    @property
    def settings(self) -> dict[str, str]:
        return {"SMITHERY_URL": self.url, "SMITHERY_API_KEY": KEY}

    def stop(self) -> None:
        self._listener.stop()

    async def _search(self, request: Request) -> Response:
        if (refused := self._noted(request)) is not None:
            return refused
        words = request.query_params["q"].lower().split()
        fits = [one for one in self.servers if any(word in one["displayName"].lower() for word in words)]
        told = ("qualifiedName", "displayName", "description", "remote")
        page = [{key: one[key] for key in told} for one in fits][: int(request.query_params["pageSize"])]
        return JSONResponse({"servers": page, "pagination": {"currentPage": 1, "totalCount": len(fits)}})

    async def _server(self, request: Request) -> Response:
        if (refused := self._noted(request)) is not None:
            return refused
        for one in self.servers:
            if one["qualifiedName"] == request.path_params["name"]:
                return JSONResponse(one)
        return JSONResponse({"error": "Server not found"}, 404)

    def _noted(self, request: Request) -> Response | None:
        self.asked.append(request.url.path)
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return JSONResponse({"error": "Unauthorized"}, 401)
        return self.failing
