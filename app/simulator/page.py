"""The phone page and the small API behind it."""

import base64
import binascii
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from app.messages import JSON
from app.simulator import transcripts
from app.simulator.faults import BOUNDS, Faults
from app.simulator.graph import StandInGraph
from app.simulator.lookups import read_json
from app.simulator.media import MB
from app.simulator.objections import Objection
from app.simulator.people import new_person
from app.simulator.refusals import CONSEQUENCES, Refusal
from app.simulator.replay import Replay

HEARTBEAT_SECONDS = 15.0
LARGEST_BODY = 8 * MB
LONGEST_TEXT = 65_536

_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
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

Handler = Callable[[Request], Awaitable[Response]]


class PhonePage:
    """The page at `prefix` and `prefix/api`: state, events, send, people, faults, media, transcripts."""

    def __init__(self, graph: StandInGraph, is_allowed: Callable[[Request], bool]) -> None:
        self._graph = graph
        self._is_allowed = is_allowed
        self._is_replaying = False

    def routes(self, prefix: str) -> list[BaseRoute]:
        return [
            Route(prefix, self._guarded(self._page), methods=["GET"]),
            Route(f"{prefix}/", self._guarded(self._page), methods=["GET"]),
            Route(f"{prefix}/static/{{name}}", self._guarded(self._static), methods=["GET"]),
            Route(f"{prefix}/api/state", self._guarded(self._state), methods=["GET"]),
            Route(f"{prefix}/api/events", self._guarded(self._events), methods=["GET"]),
            Route(f"{prefix}/api/media/{{media_id}}", self._guarded(self._media), methods=["GET"]),
            Route(f"{prefix}/api/send", self._guarded(self._send), methods=["POST"]),
            Route(f"{prefix}/api/people", self._guarded(self._people), methods=["POST"]),
            Route(f"{prefix}/api/faults", self._guarded(self._faults), methods=["POST"]),
            Route(f"{prefix}/api/transcript", self._guarded(self._transcript), methods=["GET"]),
            Route(f"{prefix}/api/replay", self._guarded(self._replay), methods=["POST"]),
        ]

    def _guarded(self, handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            if not self._is_allowed(request):
                return PlainTextResponse("Not Found", 404)
            response = _write_refusal(request) if request.method == "POST" else None
            try:
                response = response or await handler(request)
            except Objection as objection:
                response = JSONResponse(objection.as_json(), 400)
            except ValueError as error:
                response = JSONResponse({"error": str(error)}, 400)
            except Refusal as refusal:
                response = JSONResponse({"error": refusal.details}, refusal.status)
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return answer

    async def _page(self, request: Request) -> Response:
        return Response((_STATIC / "page.html").read_bytes(), media_type="text/html; charset=utf-8")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _FILES:
            return PlainTextResponse("Not Found", 404)
        return Response((_STATIC / name).read_bytes(), media_type=_FILES[name])

    async def _state(self, request: Request) -> Response:
        return Response(_dumps(self._snapshot()), media_type="application/json")

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[bytes]:
        """The whole state first, then what happens; a comment now and then keeps the line open."""
        events = self._graph.feed.follow(HEARTBEAT_SECONDS)
        yield b"retry: 1000\n\n" + _event({"event": "state", **self._snapshot()})
        async for event in events:
            yield _event(event) if event is not None else b": still here\n\n"

    async def _media(self, request: Request) -> Response:
        stored = self._graph.media.get(request.path_params["media_id"])
        if stored is None:
            return PlainTextResponse("Not Found", 404)
        headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
        if not stored.mime_type.startswith(_SHOWN_TYPES):
            headers["Content-Disposition"] = "attachment"
        return Response(stored.data, media_type=stored.mime_type, headers=headers)

    async def _send(self, request: Request) -> Response:
        body = await read_json(request, LARGEST_BODY)
        message_id = await self._graph.inbound(str(body.get("person", "")), _from_page(body))
        return JSONResponse({"id": message_id})

    async def _people(self, request: Request) -> Response:
        body = await read_json(request, LARGEST_BODY)
        name, phone, username = (str(body.get(key) or "") for key in ("name", "phone", "username"))
        others = self._graph.people.values()
        person = new_person(name, phone, username, str(body.get("language", "en")), others)
        self._graph.add_person(person)
        return JSONResponse(asdict(person))

    async def _faults(self, request: Request) -> Response:
        self._graph.set_faults(await read_json(request, LARGEST_BODY))
        return JSONResponse(self._graph.faults.as_json())

    async def _transcript(self, request: Request) -> Response:
        """A file to keep: of `?person=` or of all, from `?since=` (Unix seconds) on."""
        person = request.query_params.get("person", "")
        recorded = transcripts.record(self._graph, person, float(request.query_params.get("since", 0)))
        headers = {"Content-Disposition": 'attachment; filename="transcript.json"'}
        return Response(transcripts.write(recorded), media_type="application/json", headers=headers)

    async def _replay(self, request: Request) -> Response:
        """Plays a transcript and answers with what differed; the page is told each step as an event."""
        transcript = transcripts.read(await read_json(request, LARGEST_BODY))
        if self._is_replaying:
            return JSONResponse(Objection("playing").as_json(), 409)
        self._is_replaying = True
        try:
            return JSONResponse(await Replay(self._graph, transcript).run())
        finally:
            self._is_replaying = False

    def _snapshot(self) -> dict[str, JSON]:
        people = self._graph.people.values()
        now = time.time()
        return {
            "people": [asdict(person) for person in people],
            "messages": list(self._graph.history.messages.values()),
            "typing": {
                person.id: max(0.0, self._graph.typing_until(person.id) - now)
                for person in people
                if self._graph.typing_until(person.id)
            },
            "faults": self._graph.faults.as_json(),
            "off": Faults().as_json(),
            "bounds": BOUNDS,
            "refused": [note for note in self._graph.history.notes if note["event"] == "refused"],
            "errors": CONSEQUENCES,
        }


def _write_refusal(request: Request) -> Response | None:
    """What a write from another site, or one that a plain form could make, is answered."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return JSONResponse({"error": "this page takes writes from itself only"}, 403)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return JSONResponse({"error": "the body must be application/json"}, 415)
    return None


def _from_page(body: dict[str, JSON]) -> dict[str, JSON]:
    """A message of the page as the stand-in takes it: its file decoded, its id our own to give."""
    message = {key: value for key, value in body.items() if key not in {"person", "id"}}
    if len(str(message.get("text", ""))) > LONGEST_TEXT:
        raise ValueError(f"a text has at most {LONGEST_TEXT} characters")
    if "data" in message:
        try:
            message["data"] = base64.b64decode(message["data"], validate=True)
        except (TypeError, binascii.Error):
            raise ValueError("'data' must be base64") from None
    return message


def _event(event: JSON) -> bytes:
    return b"data: " + _dumps(event) + b"\n\n"


def _dumps(value: JSON) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
