"""Whatever a tool returned as plain JSON types, and JSON that keeps every integer."""

import json
import re
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import orjson
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from app.messages import JSON

DEEPEST = 100  # levels of lists and objects inside each other that arguments may have

_MANY_DIGITS = re.compile(r"\d{19}")


class TooLarge(ValueError):
    """A value that takes more bytes as JSON than it may."""


def is_small(value: object, most: int) -> bool:
    """Return True for JSON's own types of at most `most` bytes, not nested absurdly deep."""
    try:
        return len(orjson.dumps(value)) <= most
    except TypeError:
        return False


def plain(value: object, limit: int) -> JSON:
    """Return a value in JSON's own types: models and dataclasses as objects, dates and paths as text.

    Runs code of the value's classes, so not on the loop. Raises TooLarge for more than `limit` bytes of
    JSON, ValueError for what holds itself, RecursionError for absurd nesting, and what that code raises.
    """
    text = _encode(value)
    if len(text) > limit:
        raise TooLarge(f"more than {limit} bytes")
    return loads(text)


def dumps(value: object) -> bytes:
    """Write anything as JSON; what cannot be written is described. Never raises."""
    try:
        return _encode(value)
    except BaseException as error:  # it holds itself, or the code of its classes raises what it likes
        return orjson.dumps(_indescribable(value, error))


def loads(text: str | bytes) -> JSON:
    """Read JSON with every integer exact: the fast decoder makes floats of more than 64 bits.

    Raises orjson.JSONDecodeError.
    """
    value = orjson.loads(text)
    text = text.decode() if isinstance(text, bytes) else text
    if _MANY_DIGITS.search(text):
        with suppress(ValueError, RecursionError):  # thousands of digits, or nested as deep as that one takes
            return json.loads(text)
    return value


def sendable(value: JSON) -> JSON:
    """Return the value where the fast encoder takes it, as it must for all that is sent; else its nearest."""
    try:
        orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):  # integers of more than 64 bits, half a character …
        return orjson.loads(dumps(value))
    return value


def _encode(value: object) -> bytes:
    try:
        return to_json(value, inf_nan_mode="null", fallback=_in_json)
    except PydanticSerializationError:  # half a character, as in a file's name; other faults are raised again
        parts = partial(to_jsonable_python, fallback=_in_json)
        text = json.dumps(value, default=parts, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", "replace")


def _in_json(value: Any) -> Any:
    """Return what a value that pydantic does not know is in JSON: its own words, but for a mapping."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Coroutine):
        value.close()
        name = getattr(value, "__qualname__", "a coroutine")
        raise TypeError(f"{name} was not awaited; write await before its call")
    return _words(value)


def _words(value: object) -> str:
    try:
        return str(value)
    except BaseException as error:  # the class raises what it likes
        return _indescribable(value, error)


def _indescribable(value: object, error: BaseException) -> str:
    return f"<{type(value).__name__} that cannot be written: {type(error).__name__}>"
