"""The phone page and the small API behind it."""

import asyncio
import base64
import binascii
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from app.http.limits import bounded_receive
from app.messages import JSON
from app.people import SimulatedPerson
from app.simulator.access import SimulatorAccess
from app.simulator.faults import CONSEQUENCES, Faults, fault_bounds
from app.simulator.graph import StandInGraph
from app.simulator.media import MB, pages_of
from app.simulator.people import Objection, new_person

HEARTBEAT_SECONDS = 15.0
LARGEST_BODY = 8 * MB

_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript"}
_FILES = {path.name: _TYPES[path.suffix] for path in _STATIC.iterdir() if path.suffix in _TYPES}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_SHOWN_TYPES = ("image/", "audio/", "video/")


class InboundMessage(BaseModel):
    """A message that a person sends; its other parts are those of `StandInGraph.inbound`."""

    model_config = ConfigDict(extra="allow")

    person: str
    text: str = Field("", max_length=65_536)
    data: str | None = None  # a file, as base64


class NewPerson(BaseModel):
    name: str = ""
    phone: str | None = None
    username: str | None = None
    language: Literal["es", "pt", "en"] = "en"


def page_router(graph: StandInGraph, access: SimulatorAccess) -> APIRouter:
    """Return the page's routes; a request from elsewhere gets 404, one to the API without the key 401."""
    routes = _PageRoutes(graph, access)
    router = APIRouter(route_class=_route_class(access), include_in_schema=False)
    for path in ("", "/"):
        router.add_api_route(path, routes.page)
    router.add_api_route("/static/{name}", routes.static)
    router.add_api_route("/api/state", routes.state)
    router.add_api_route("/api/events", routes.events)
    router.add_api_route("/api/media/{media_id}", routes.media)
    router.add_api_route("/api/send", routes.send, methods=["POST"])
    router.add_api_route("/api/people", routes.add_person, methods=["POST"])
    router.add_api_route("/api/faults", routes.set_faults, methods=["POST"])
    return router


def _route_class(access: SimulatorAccess) -> type[APIRoute]:
    """Return a route that lets a request in before its body is read, and explains what is wrong with it."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                if not access.is_local(request):
                    raise HTTPException(404, "Not Found")
                try:
                    if "/simulator/api/" in request.url.path and not access.has_key(request):
                        raise HTTPException(401, "open the link that the start printed: recado simulator")
                    if request.method == "POST":
                        _require_own_page(request)
                    response = await handle(
                        Request(request.scope, bounded_receive(request.receive, LARGEST_BODY))
                    )
                except RequestValidationError as error:
                    fault = error.errors()[0]
                    place = ".".join(map(str, fault["loc"]))
                    response = JSONResponse({"error": f"{place}: {fault['msg']}"}, 400)
                except Objection as objection:
                    response = JSONResponse(objection.as_json(), 400)
                except ValueError as error:
                    response = JSONResponse({"error": str(error)}, 400)
                except HTTPException as error:
                    response = JSONResponse({"error": error.detail}, error.status_code)
                for name, value in _HEADERS.items():
                    response.headers.setdefault(name, value)
                return response

            return answer

    return PageRoute


def _require_own_page(request: Request) -> None:
    """Refuse a write from another site, or one that a plain form could make."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise HTTPException(403, "this page takes writes from itself only")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body must be application/json")


class _PageRoutes:
    def __init__(self, graph: StandInGraph, access: SimulatorAccess) -> None:
        self._graph = graph
        self._access = access

    async def page(self, request: Request, key: str = "") -> Response:
        """Return the phones; the link's key becomes a cookie, and leaves the address."""
        if self._access.opens(key):
            response = RedirectResponse("/simulator", 303)
            self._access.remember(response)
            return response
        name = "page.html" if self._access.has_key(request) else "locked.html"
        return FileResponse(_STATIC / name, media_type="text/html")

    async def static(self, name: str) -> Response:
        if name not in _FILES:
            raise HTTPException(404, "Not Found")
        return FileResponse(_STATIC / name, media_type=_FILES[name])

    async def state(self) -> Response:
        return Response(_dumps(self._snapshot()), media_type="application/json")

    async def events(self) -> Response:
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[bytes]:
        """Yield the whole state, then each event; a comment now and then keeps the connection open."""
        events = self._graph.feed.follow(HEARTBEAT_SECONDS)
        yield b"retry: 1000\n\n" + _event({"event": "state", **self._snapshot()})
        async for event in events:
            yield _event(event) if event is not None else b": still here\n\n"

    async def media(self, media_id: str) -> Response:
        stored = self._graph.media.get(media_id)
        if stored is None:
            raise HTTPException(404, "Not Found")
        headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
        if not stored.mime_type.startswith(_SHOWN_TYPES):
            headers["Content-Disposition"] = "attachment"
        if stored.mime_type == "application/pdf":
            headers["X-Pages"] = str(await asyncio.to_thread(pages_of, stored.data))
        return Response(stored.data, media_type=stored.mime_type, headers=headers)

    async def send(self, said: InboundMessage) -> dict[str, str]:
        message = said.model_dump(exclude={"person", "id"}, exclude_unset=True)
        if said.data is not None:
            message["data"] = _decoded(said.data)
        return {"id": await self._graph.inbound(said.person, message)}

    async def add_person(self, wanted: NewPerson) -> SimulatedPerson:
        person = new_person(
            wanted.name,
            wanted.phone or "",
            wanted.username or "",
            wanted.language,
            self._graph.people.values(),
        )
        self._graph.add_person(person)
        return person

    async def set_faults(self, changes: dict[str, Any]) -> Faults:
        self._graph.set_faults(changes)
        return self._graph.faults

    def _snapshot(self) -> dict[str, JSON]:
        graph, now = self._graph, time.time()
        typing = {person: graph.typing_until(person) - now for person in graph.people}
        return {
            "people": [asdict(person) for person in graph.people.values()],
            "messages": list(graph.history.messages.values()),
            "typing": {person: seconds for person, seconds in typing.items() if seconds > 0},
            "faults": graph.faults.model_dump(),
            "off": Faults().model_dump(),
            "bounds": fault_bounds(),
            "refused": list(graph.history.refused),
            "errors": CONSEQUENCES,
        }


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise ValueError("'data' must be base64") from None


def _event(event: JSON) -> bytes:
    return b"data: " + _dumps(event) + b"\n\n"


def _dumps(value: JSON) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
