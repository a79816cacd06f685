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
from app.simulator.graph import StandInGraph

HEARTBEAT_SECONDS = 15.0
LARGEST_BODY = 8 * 1024 * 1024
LONGEST_TEXT = 65_536

_STATIC = Path(__file__).parent / "static"
_TYPES = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_SHOWN_TYPES = ("image/", "audio/", "video/")

Handler = Callable[[Request], Awaitable[Response]]


class PhonePage:
    """The page at `prefix` and `prefix/api`: state, events, send, faults, media."""

    def __init__(self, graph: StandInGraph, is_allowed: Callable[[Request], bool]) -> None:
        self._graph = graph
        self._is_allowed = is_allowed

    def routes(self, prefix: str) -> list[BaseRoute]:
        return [
            Route(prefix, self._guarded(self._page), methods=["GET"]),
            Route(f"{prefix}/", self._guarded(self._page), methods=["GET"]),
            Route(f"{prefix}/static/{{name}}", self._guarded(self._static), methods=["GET"]),
            Route(f"{prefix}/api/state", self._guarded(self._state), methods=["GET"]),
            Route(f"{prefix}/api/events", self._guarded(self._events), methods=["GET"]),
            Route(f"{prefix}/api/media/{{media_id}}", self._guarded(self._media), methods=["GET"]),
            Route(f"{prefix}/api/send", self._guarded(self._send), methods=["POST"]),
            Route(f"{prefix}/api/faults", self._guarded(self._faults), methods=["POST"]),
        ]

    def _guarded(self, handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            if not self._is_allowed(request):
                return PlainTextResponse("Not Found", 404)
            response = _write_refusal(request) if request.method == "POST" else None
            response = response or await handler(request)
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return answer

    async def _page(self, request: Request) -> Response:
        return Response((_STATIC / "page.html").read_bytes(), media_type="text/html; charset=utf-8")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _TYPES:
            return PlainTextResponse("Not Found", 404)
        return Response((_STATIC / name).read_bytes(), media_type=_TYPES[name])

    async def _state(self, request: Request) -> Response:
        return Response(orjson.dumps(self._snapshot()), media_type="application/json")

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
        try:
            body = await _json_body(request)
            message_id = await self._graph.inbound(str(body.get("person", "")), _from_page(body))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse({"id": message_id})

    async def _faults(self, request: Request) -> Response:
        try:
            self._graph.set_faults(await _json_body(request))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(self._graph.faults.as_json())

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
        }


def _write_refusal(request: Request) -> Response | None:
    """What a write from another site, or one that a plain form could make, is answered."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return JSONResponse({"error": "this page takes writes from itself only"}, 403)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return JSONResponse({"error": "the body must be application/json"}, 415)
    return None


async def _json_body(request: Request) -> dict[str, JSON]:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > LARGEST_BODY:
            raise ValueError(f"the body has more than {LARGEST_BODY} bytes")
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise ValueError("the body is not valid JSON") from None
    if not isinstance(body, dict):
        raise ValueError("the body must be a JSON object")
    return body


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
    return b"data: " + orjson.dumps(event) + b"\n\n"
