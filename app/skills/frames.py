"""The messages between the server and a worker, and what of a call's context travels in them.

A frame is four bytes of length, big-endian, and a JSON list of the message's name and its fields. The JSON is
the standard library's, which keeps integers of any size.
"""

import asyncio
import inspect
import json
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, NoReturn

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from app.errors import RecadoError
from app.http.address import FetchError
from app.http.transport import BYTES, SECONDS, SECONDS_MOST, Fetched, HttpClient
from app.messages import JSON
from app.people import Person
from app.store.skill_data import SkillStore
from app.tools.result import OUTPUT_LIMIT
from app.tools.tool import PersonStore, ToolContext

# Bytes of a frame: arguments, or a page of stored rows; and a result with its envelope.
TO_WORKER = 8 * 1024 * 1024
FROM_WORKER = OUTPUT_LIMIT + 256 * 1024
HEADER = 4

_STRICT = ConfigDict(strict=True)


class FrameError(RecadoError):
    """A frame that is too large, or no message."""


@dataclass(frozen=True, config=_STRICT)
class Ready:
    """Worker to server: the code is loaded and takes calls, or cannot be loaded: `fault` says why."""

    fault: str = ""


@dataclass(frozen=True, config=_STRICT)
class Call:
    """Server to worker: run a function. There is one call at a time."""

    id: int
    function: str
    args: dict[str, JSON]
    context: dict[str, JSON]


@dataclass(frozen=True, config=_STRICT)
class Ask:
    """Worker to server: the function of this call uses its context, such as `store.get`."""

    call: int
    method: str
    args: list[JSON]


@dataclass(frozen=True, config=_STRICT)
class Answer:
    """Server to worker: the value that was asked for, or the error ("" for none)."""

    value: JSON = None
    error: str = ""


@dataclass(frozen=True, config=_STRICT)
class Result:
    """Worker to server: the result of this call, in the form of ToolResult."""

    call: int
    result: dict[str, JSON]


Message = Ready | Call | Ask | Answer | Result
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Ready, Call, Ask, Answer, Result)}


def encode(message: Message) -> bytes:
    """Return a frame. Raises FrameError for one too large, TypeError or ValueError for what is no JSON."""
    limit = TO_WORKER if isinstance(message, Call | Answer) else FROM_WORKER
    said = {field.name: getattr(message, field.name) for field in fields(message)}
    body = json.dumps([type(message).__name__, said], ensure_ascii=False, allow_nan=False).encode()
    if len(body) > limit:
        raise FrameError(f"at most {limit // 1024} KiB go between a tool and the server at once")
    return len(body).to_bytes(HEADER, "big") + body


def length(header: bytes, limit: int) -> int:
    """Return how many bytes follow. Raises FrameError before room is made for too many."""
    size = int.from_bytes(header, "big")
    if size > limit:
        raise FrameError(f"a frame of {size} bytes was announced, at most {limit} are taken")
    return size


def decode(body: bytes) -> Any:
    """Return the message of a frame. Raises FrameError for anything else."""
    try:
        name, said = json.loads(body, parse_constant=_refuse)
        return _KINDS[name](**said)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FrameError(f"what came is no message: {type(error).__name__}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


LIST_BYTES = TO_WORKER - 1024 * 1024  # of keys and values in one list
_ABSENT = object()


# Asks the server something for one call, by a method and its arguments, and waits for the answer.
Asker = Callable[..., Any]


def serialize_context(context: ToolContext) -> dict[str, JSON]:
    """Return the part of a context that is sent with a call."""
    return {
        "person": None if context.person is None else asdict(context.person),
        "conversation": context.conversation,
        "settings": dict(context.settings),
        "idempotency_key": context.idempotency_key,
        "channel": context.channel,
    }


async def answer_ask(ask: Ask, store: PersonStore | None, http: object | None) -> Answer:
    """Answer an ask in the server, with the store and client of the call it belongs to."""
    part, _, method = ask.method.partition(".")
    try:
        if part == "http" and method in ("get", "post") and isinstance(http, HttpClient):
            return Answer(await _fetch(getattr(http, method), *ask.args))
        if part == "store" and method in ("get", "put", "list", "delete") and store is not None:
            return Answer(await _stored(store, method, *ask.args))
        raise ValueError("it is not there for this call")
    except Exception as error:  # raised again in the worker, where the tool's function called
        return Answer(error=f"{ask.method}: {str(error)[:1000] or type(error).__name__}")


async def _stored(store: PersonStore, method: str, *args: JSON) -> JSON:
    if method == "list" and isinstance(store, SkillStore):
        prefix, limit = args
        return await store.list(prefix, limit, LIST_BYTES)
    value = getattr(store, method)(*args, *([_ABSENT] if method == "get" else []))
    value = await value if inspect.isawaitable(value) else value
    if method == "get":  # a list, since what is kept may be null
        return [] if value is _ABSENT else [value]
    return value


async def _fetch(request: Callable[..., Awaitable[Fetched]], url: str, options: dict[str, Any]) -> JSON:
    """Send a request for a worker; every word of it may be hostile."""
    seconds, limit_bytes = options.get("seconds", SECONDS), options.get("limit_bytes", BYTES)
    if not 0 < seconds <= SECONDS_MOST or not 0 < limit_bytes <= BYTES:
        raise ValueError(f"at most {SECONDS_MOST:g} s and {BYTES // 1024**2} MiB for one request")
    if options.get("body") is not None:
        options["body"] = b64decode(options["body"])
    try:
        fetched = await request(url, **options)
    except FetchError as error:
        return {"code": error.code, "text": str(error)}
    return {
        "url": fetched.url,
        "status": fetched.status,
        "headers": dict(fetched.headers),
        "body": b64encode(fetched.body).decode(),
    }


def build_context(given: Mapping[str, JSON], ask: Asker, *, is_async: bool) -> ToolContext:
    """Build the context of a call from what the server sent with it."""
    person = given["person"]
    parts: dict[str, Any] = {"store": StoreProxy(ask), "http": HttpProxy(ask)}
    if is_async:
        parts = {name: _OnLoop(part) for name, part in parts.items()}
    return ToolContext(**{**given, **parts, "person": Person(**person) if person is not None else None})


class StoreProxy:
    """`context.store`: the person's rows of this skill."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    def get(self, key: str, default: JSON = None) -> JSON:
        found = self._ask("store.get", key)
        return found[0] if found else default

    def put(self, key: str, value: JSON) -> JSON:
        return self._ask("store.put", key, value)

    def list(self, prefix: str = "", limit: int = 1000) -> JSON:
        return self._ask("store.list", prefix, limit)

    def delete(self, key: str) -> JSON:
        return self._ask("store.delete", key)


class HttpProxy:
    """`context.http`: takes the arguments of HttpClient; the server sends the request."""

    def __init__(self, ask: Asker) -> None:
        self._ask = ask

    def get(self, url: str, **options: Any) -> Fetched:
        return self._send("http.get", url, options)

    def post(self, url: str, **options: Any) -> Fetched:
        return self._send("http.post", url, options)

    def _send(self, method: str, url: str, options: dict[str, Any]) -> Fetched:
        if options.get("body") is not None:
            options["body"] = b64encode(options["body"]).decode()
        answer = self._ask(method, url, options)
        if "code" in answer:
            raise FetchError(answer["code"], answer["text"])
        return Fetched(answer["url"], answer["status"], answer["headers"], b64decode(answer["body"]))


class _OnLoop:
    """A proxy for an `async def` tool: each method is awaited."""

    def __init__(self, proxy: Any) -> None:
        self._proxy = proxy

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._proxy, name)

        async def call(*args: Any, **named: Any) -> Any:
            return await asyncio.to_thread(method, *args, **named)

        call.__qualname__ = f"context: {name}()"  # which its author reads where it was not awaited
        return call
