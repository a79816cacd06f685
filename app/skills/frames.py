"""The messages between the server and a worker, and their form on the wire.

A frame is four bytes of length, big-endian, and a JSON list of the message's name and its fields. The JSON is
the standard library's, which keeps integers of any size.
"""

import json
from dataclasses import fields
from typing import Any, NoReturn

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from app.errors import RecadoError
from app.messages import JSON
from app.tools.result import OUTPUT_LIMIT

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
