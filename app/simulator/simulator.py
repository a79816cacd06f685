"""The phone page with the small API behind it, and the stand-in Graph API, tied together."""

import base64
import binascii
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, StreamingResponse

from app.channels.whatsapp.credentials import Credentials
from app.channels.whatsapp.errors import THEN, TITLES, Then
from app.http.limits import BodyReader
from app.i18n import public_program
from app.messages import JSON
from app.people import SIMULATED_PEOPLE
from app.settings import Settings
from app.simulator.access import SimulatorAccess
from app.simulator.faults import Faults
from app.simulator.graph import StandInGraph
from app.simulator.graph_routes import graph_router, read_object
from app.simulator.history import HISTORY_FILE
from app.simulator.media import MB
from app.simulator.webhooks import Pace

_STATUS_PAUSE = 0.35  # seconds: an eye can follow the ticks
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


def build_simulator(settings: Settings, credentials: Credentials) -> "Simulator | None":
    """Return the simulator as the settings say; None if it is off or WhatsApp's credentials are set."""
    if not settings.uses_simulator or settings.simulator == "off":
        return None
    access = SimulatorAccess(published=settings.simulator == "on")
    return Simulator(credentials, f"{settings.own_url}/webhook", settings.data_dir / HISTORY_FILE, access)


class Simulator:
    """The page at `/simulator` and the Graph API at `/simulator/graph`; `/` leads to the page.

    `webhook_url` is our own `/webhook`.
    """

    def __init__(
        self, credentials: Credentials, webhook_url: str, history_path: Path | None, access: SimulatorAccess
    ) -> None:
        pace = Pace(status_pause=_STATUS_PAUSE)
        self.graph = StandInGraph(
            credentials, webhook_url, SIMULATED_PEOPLE, history_path=history_path, pace=pace
        )
        self._access = access
        self.router = simulator_router(self.graph, access)

    def link(self, url: str) -> str:
        """Return the link that opens the page, for a server at this address."""
        return f"{url}/simulator?key={self._access.key}"


def simulator_router(graph: StandInGraph, access: SimulatorAccess) -> APIRouter:
    """Return all routes of the simulator; a request from elsewhere gets 404."""
    router = APIRouter(include_in_schema=False)

    @router.get("/", dependencies=[Depends(access.require_local)])
    async def front_door() -> Response:
        return RedirectResponse("/simulator")

    router.include_router(graph_router(graph, access), prefix="/simulator/graph")
    router.include_router(page_router(graph, access), prefix="/simulator")
    return router


def page_router(graph: StandInGraph, access: SimulatorAccess) -> APIRouter:
    """Return the page's routes; a request from elsewhere gets 404, one to the API without the key 401."""
    router = APIRouter(dependencies=[Depends(access.require_local)], include_in_schema=False)

    @router.get("")
    async def page(request: Request, key: str = "") -> Response:
        """Return the phones; the link's key becomes a cookie, and leaves the address."""
        if access.opens(key):
            response = RedirectResponse("/simulator", 303)
            access.remember(response)
            return response
        if access.has_key(request):
            return FileResponse(_STATIC / "page.html", media_type="text/html", headers=_HEADERS)
        locked = (_STATIC / "locked.html").read_text("utf-8")
        shown = locked.replace("<code>recado", f"<code>{escape(public_program())}")
        return HTMLResponse(shown, headers=_HEADERS)

    @router.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in _FILES:
            raise HTTPException(404, "Not Found")
        return FileResponse(_STATIC / name, media_type=_FILES[name], headers=_HEADERS)

    router.include_router(_api(graph), prefix="/api", dependencies=[Depends(access.require_key)])
    return router


def _api(graph: StandInGraph) -> APIRouter:
    """Return what the page asks for and what it sends; the bodies are read after all checks."""
    router = APIRouter()
    bodies = BodyReader(LARGEST_BODY, 4 * LARGEST_BODY)

    @router.get("/state")
    async def state() -> Response:
        return Response(orjson.dumps(_snapshot(graph)), media_type="application/json", headers=_HEADERS)

    @router.get("/events")
    async def events() -> Response:
        return StreamingResponse(_stream(graph), media_type="text/event-stream", headers=_HEADERS)

    @router.get("/media/{media_id}")
    async def media(media_id: str) -> Response:
        stored = graph.media.get(media_id)
        if stored is None:
            raise HTTPException(404, "Not Found")
        headers = {**_HEADERS, "Content-Security-Policy": "default-src 'none'; sandbox"}
        if not stored.mime_type.startswith(_SHOWN_TYPES):
            headers["Content-Disposition"] = "attachment"
        return Response(stored.data, media_type=stored.mime_type, headers=headers)

    @router.post("/send", dependencies=[Depends(_require_own_page)])
    async def send(request: Request) -> JSON:
        """Take what a person sends: `person`, and the parts that `StandInGraph.inbound` names."""
        message = read_object(await bodies.read(request))
        try:
            if "data" in message:
                message["data"] = base64.b64decode(message["data"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise HTTPException(400, "'data' must be base64") from None
        return {"id": await graph.inbound(str(message.pop("person", "")), message)}

    @router.post("/faults", dependencies=[Depends(_require_own_page)])
    async def set_faults(request: Request) -> Faults:
        graph.set_faults(read_object(await bodies.read(request)))
        return graph.faults

    return router


def _require_own_page(request: Request) -> None:
    """Refuse a write from another site, or one that a plain form could make."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise HTTPException(403, "this page takes writes from itself only")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body must be application/json")


async def _stream(graph: StandInGraph) -> AsyncIterator[bytes]:
    """Yield the whole state, then each event."""
    with graph.feed.follow() as events:
        event: JSON = {"event": "state", **_snapshot(graph)}
        yield b"retry: 1000\n\n"
        while event is not None:
            yield b"data: " + orjson.dumps(event) + b"\n\n"
            event = await events.get()


def _snapshot(graph: StandInGraph) -> dict[str, JSON]:
    now = time.time()
    typing = {person: graph.typing_until(person) - now for person in graph.people}
    return {
        "people": [asdict(person) for person in graph.people.values()],
        "messages": graph.history.messages(),
        "typing": {person: seconds for person, seconds in typing.items() if seconds > 0},
        "faults": graph.faults.model_dump(),
        "off": Faults().model_dump(),
        "refused": list(graph.history.refused),
        "errors": {
            kind: {str(code): title for code, title in TITLES.items() if THEN[code] == kind}
            for kind in get_args(Then)
        },
    }
