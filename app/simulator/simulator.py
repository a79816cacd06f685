"""The phone page with the small API behind it, and the stand-in Graph API, tied together."""

import asyncio
import base64
import binascii
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, StreamingResponse
from starlette.datastructures import UploadFile

from app.channels.whatsapp.credentials import Credentials
from app.channels.whatsapp.errors import THEN, TITLES, Then
from app.http.limits import BodyReader
from app.i18n import program
from app.messages import JSON
from app.people import SIMULATED_PEOPLE
from app.security import bearer_of, is_local, page_headers, same_token
from app.settings import Settings
from app.simulator.faults import Faults, Refusal, unknown_object
from app.simulator.graph import MB, StandInGraph
from app.simulator.history import HISTORY_FILE
from app.simulator.webhooks import BUSINESS_NUMBER

_COOKIE = "recado_simulator"
_STATUS_PAUSE = 0.35  # seconds: an eye can follow the ticks
LARGEST_BODY = 8 * MB
SILENT_SECONDS = 30.0  # of a send that is to stay unanswered: our client gives up before
_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript"}
_FILES = {path.name: _TYPES[path.suffix] for path in _STATIC.iterdir() if path.suffix in _TYPES}
_HEADERS = page_headers("img-src 'self' data:; media-src 'self'; form-action 'none'")
_SHOWN_TYPES = ("image/", "audio/", "video/")


def build_simulator(settings: Settings, credentials: Credentials) -> "Simulator | None":
    """Return the simulator as the settings say; None if it is off or WhatsApp's credentials are set."""
    if not settings.uses_simulator or settings.simulator == "off":
        return None
    access = SimulatorAccess(published=settings.simulator == "on")
    webhook_url, history = f"{settings.own_url}/webhook", settings.data_dir / HISTORY_FILE
    graph = StandInGraph(
        credentials, webhook_url, SIMULATED_PEOPLE, history_path=history, status_pause=_STATUS_PAUSE
    )
    return Simulator(graph, access)


class SimulatorAccess:
    """Checks that a request is from this machine, and that it brings the key of the printed link.

    The key is random at each start. `published`: requests through a published container port count as local.
    """

    def __init__(self, *, published: bool = False) -> None:
        self.key = secrets.token_urlsafe(24)
        self._published = published

    def require_local(self, request: Request) -> None:
        """Answer 404 to a request from elsewhere."""
        if not is_local(request, published=self._published):
            raise HTTPException(404, "Not Found")

    def require_key(self, request: Request) -> None:
        """Answer 401 to a browser that did not open the link."""
        if not self.has_key(request):
            raise HTTPException(401, f"open the link that the start printed: {program()} simulator")

    def has_key(self, request: Request) -> bool:
        """Return True if the cookie that the link set is there."""
        return same_token(request.cookies.get(_COOKIE, ""), self.key)


class Simulator:
    """The page at `/simulator` and the Graph API at `/simulator/graph`; `/` leads to the page."""

    def __init__(self, graph: StandInGraph, access: SimulatorAccess) -> None:
        self.graph = graph
        self._access = access
        self.router = simulator_router(self.graph, access)

    def link(self, url: str) -> str:
        """Return the link that opens the page, for a server at this address."""
        return f"{url}/simulator?key={self._access.key}"


def simulator_router(graph: StandInGraph, access: SimulatorAccess) -> APIRouter:
    """Return all routes: a request from elsewhere gets 404, one to the page's API without the key 401."""
    router = APIRouter(dependencies=[Depends(access.require_local)], include_in_schema=False)
    router.include_router(graph_router(graph, access), prefix="/simulator/graph")
    router.include_router(_api(graph), prefix="/simulator/api", dependencies=[Depends(access.require_key)])

    @router.get("/")
    async def front_door() -> Response:
        return RedirectResponse("/simulator")

    @router.get("/simulator")
    async def page(request: Request, key: str = "") -> Response:
        """Return the phones; the link's key becomes a cookie of this browser, and leaves the address."""
        if same_token(key, access.key):
            response = RedirectResponse("/simulator", 303)
            response.set_cookie(_COOKIE, access.key, path="/simulator", httponly=True, samesite="strict")
            return response
        if access.has_key(request):
            return FileResponse(_STATIC / "page.html", media_type="text/html", headers=_HEADERS)
        locked = (_STATIC / "locked.html").read_text("utf-8")
        shown = locked.replace("<code>recado", f"<code>{escape(program())}")
        return HTMLResponse(shown, headers=_HEADERS)

    @router.get("/simulator/static/{name}")
    async def static(name: str) -> Response:
        if name not in _FILES:
            raise HTTPException(404, "Not Found")
        return FileResponse(_STATIC / name, media_type=_FILES[name], headers=_HEADERS)

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
        stored = graph.media.find(media_id)
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
    return {
        "people": [asdict(person) for person in graph.people.values()],
        "messages": graph.history.messages(),
        "typing": graph.typing(),
        "faults": graph.faults.model_dump(),
        "off": Faults().model_dump(),
        "errors": {
            kind: {str(code): title for code, title in TITLES.items() if THEN[code] == kind}
            for kind in get_args(Then)
        },
    }


def graph_router(graph: StandInGraph, access: SimulatorAccess) -> APIRouter:
    """Return the API's routes; a request from elsewhere gets 404, one without the token Meta's 401."""

    def admit(request: Request) -> None:
        if graph.faults.offline:
            raise Refusal(131016, "The service is away.")
        if not same_token(bearer_of(request), graph.access_token):
            raise Refusal(190, "The access token is missing, wrong or expired.")
        if request.path_params.get("number", graph.number_id) != graph.number_id:
            raise unknown_object(request.path_params["number"])

    # The bodies are read by the routes themselves: after these.
    router = APIRouter(dependencies=[Depends(access.require_local), Depends(admit)], include_in_schema=False)

    @router.post("/{version}/{number}/messages")
    async def messages(request: Request) -> JSON:
        body = read_object(await request.body())
        if body.get("status") == "read":
            graph.mark_read(body)
            return {"success": True}
        answer = graph.send(body)
        if graph.faults.next_drop():
            graph.publish_faults()
            with suppress(TimeoutError):
                await asyncio.wait_for(graph.stopping.wait(), SILENT_SECONDS)
        await asyncio.sleep(graph.faults.delay)
        return answer

    @router.post("/{version}/{number}/media")
    async def upload(request: Request) -> JSON:
        async with request.form() as form:
            file, wanted = form.get("file"), form.get("type")
            if form.get("messaging_product") != "whatsapp" or not isinstance(file, UploadFile):
                raise Refusal(100, "The parameters messaging_product and file are required.")
            mime_type = wanted if isinstance(wanted, str) else file.content_type or ""
            stored = graph.media.upload(await file.read(), mime_type, file.filename or "")
        return {"id": stored.id}

    @router.get("/media/{media_id}")
    async def download(media_id: str) -> Response:
        stored = graph.media.find(media_id)
        return Response(stored.data, media_type=stored.mime_type)

    @router.get("/{version}/{object_id}")
    async def describe(object_id: str, request: Request) -> JSON:
        if object_id == graph.number_id:
            shown = f"+{BUSINESS_NUMBER}"
            return {"id": object_id, "display_phone_number": shown, "verified_name": "Recado"}
        stored = graph.media.find(object_id)
        base = str(request.url.replace(query="")).rsplit("/", 2)[0]
        return {
            "messaging_product": "whatsapp",
            "url": f"{base}/media/{stored.id}",
            "mime_type": stored.mime_type,
            "sha256": hashlib.sha256(stored.data).hexdigest(),
            "file_size": str(len(stored.data)),
            "id": stored.id,
        }

    @router.delete("/{version}/{object_id}")
    async def delete(object_id: str) -> JSON:
        graph.media.remove(object_id)
        return {"success": True}

    return router


def read_object(raw: bytes) -> dict[str, JSON]:
    """Return the JSON object of a body. Raise Refusal for anything else."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise Refusal(100, "The body must be a JSON object.")
    return body
