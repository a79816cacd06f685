"""What the server and a worker say to each other: messages, and their form on the wire.

A frame is four bytes of length, big-endian, and a JSON list of the message's name and its fields. The JSON is
the standard library's, which keeps integers of any size.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from app.errors import RecadoError
from app.messages import JSON
from app.tools.result import OUTPUT_LIMIT

TO_WORKER = 8 * 1024 * 1024
"""Bytes of a frame: arguments, or a page of what a skill keeps."""
FROM_WORKER = OUTPUT_LIMIT + 256 * 1024
"""Bytes of a frame: a result and what is about it."""
ASKS = 10_000
ASKED_BYTES = 16 * 1024 * 1024
"""What one call may ask, in number and in bytes of frames."""
ANSWERED_BYTES = 64 * 1024 * 1024
"""What one call may be answered, in bytes of frames."""
UNASKED = 1000
UNASKED_BYTES = 16 * 1024 * 1024
"""What a worker may say that belongs to no call, such as a thread that a call left behind."""
HEADER = 4


class Written(str):
    """A value that is JSON text already."""

    __slots__ = ()


class FrameError(RecadoError):
    """A frame that is too large or none at all."""


@dataclass(frozen=True, slots=True)
class Call:
    """Server to worker: run a function."""

    id: int
    function: str
    args: Mapping[str, JSON]
    context: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Answer:
    """Server to worker: what an ask came to; `error` is "" where it came to a value."""

    id: int
    value: JSON = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """Worker to server: the code runs, calls may come."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Worker to server: the code does not run, and why."""

    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Worker to server: a function of call `call` wants something of its context, such as `store.get`."""

    id: int
    call: int
    method: str
    args: Sequence[JSON]


@dataclass(frozen=True, slots=True)
class Result:
    """Worker to server: what call `id` came to, as ToolResult.to_json writes it."""

    id: int
    result: JSON


Message = Call | Answer | Ready | Fault | Ask | Result
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Call, Answer, Ready, Fault, Ask, Result)}
_TYPES: dict[type[Any], dict[str, type]] = {
    Call: {"id": int, "function": str, "args": dict, "context": dict},
    Answer: {"id": int, "error": str},
    Ready: {},
    Fault: {"text": str},
    Ask: {"id": int, "call": int, "method": str, "args": list},
    Result: {"id": int, "result": dict},
}
"""What the fields are once read; any JSON where nothing stands."""


def encode(message: Message, limit: int) -> bytes:
    """A frame. Raises FrameError where it is larger than `limit`, TypeError or ValueError for no JSON."""
    fields = ", ".join(f'"{name}": {_json(message, name)}' for name in message.__slots__)
    body = f'["{type(message).__name__}", {{{fields}}}]'.encode()
    if len(body) > limit:
        raise FrameError(f"at most {limit // 1024} KiB go between a tool and the server at once")
    return len(body).to_bytes(HEADER, "big") + body


def length(header: bytes, limit: int) -> int:
    """How many bytes follow. Raises FrameError before anybody makes room for too many."""
    size = int.from_bytes(header, "big")
    if size > limit:
        raise FrameError(f"a frame of {size} bytes was announced, at most {limit} are taken")
    return size


def decode(body: bytes) -> Any:
    """The message of a frame. Raises FrameError for anything else."""
    try:
        name, fields = json.loads(body, parse_constant=_refuse)
        message = _KINDS[name](**fields)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FrameError(f"what came is no message: {type(error).__name__}") from error
    for field, kind in _TYPES[type(message)].items():
        if type(getattr(message, field)) is not kind:  # a bool is an int too
            raise FrameError(f"what came is no message: {field} of {name} is no {kind.__name__}")
    return message


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _json(message: Message, name: str) -> str:
    value = getattr(message, name)
    if isinstance(value, Written):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
