"""A web of a test's on one port: pages by path, and a SearXNG that lists those whose words fit."""

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tests.standins.listener import Listener


class Web:
    """`pages`: path → HTML or a whole answer; `results`: what a search lists, as SearXNG names it, or what
    makes such a list of the query."""

    def __init__(self) -> None:
        self.pages: dict[str, str | Response] = {}
        self.results: list[dict[str, Any]] | Callable[[str], list[dict[str, Any]]] = []
        self.asked: list[str] = []
        """Paths with their queries."""
        routes = [Route("/search", self._search), Route("/{path:path}", self._page)]
        self._listener = Listener(Starlette(routes=routes))
        self.port = self._listener.port
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._listener.stop()

    def result(self, path: str, title: str, content: str = "") -> dict[str, Any]:
        return {
            "url": f"{self.url}{path}",
            "title": title,
            "content": content,
            "engine": "duckduckgo",
            "parsed_url": ["http", f"127.0.0.1:{self.port}", path, "", "", ""],
            "engines": ["duckduckgo"],
            "positions": [1],
            "score": 1.0,
            "category": "general",
        }

    async def _search(self, request: Request) -> Response:
        self.asked.append(f"{request.url.path}?{request.url.query}")
        query = request.query_params["q"]
        results = self.results(query) if callable(self.results) else self.results
        answer = {"query": query, "number_of_results": 0, "answers": [], "corrections": [], "infoboxes": []}
        return JSONResponse({**answer, "results": results, "suggestions": [], "unresponsive_engines": []})

    async def _page(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        page = self.pages.get(request.url.path)
        if page is None:
            return Response("nothing here", status_code=404)
        return HTMLResponse(page) if isinstance(page, str) else page
