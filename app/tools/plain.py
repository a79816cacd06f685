"""Whatever a tool returned as plain JSON types, bounded on the way."""

import dataclasses
import json
import math
import re
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

import orjson

from app.messages import JSON

DEEPEST = 100
CUT = "…"
"""Stands where a value holds itself or goes too deep to be written."""

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
_LONGEST_INTEGER_BITS = 14_000
"""Python refuses to write integers of more than 4,300 digits."""
_MANY_DIGITS = re.compile(r"\d{19}")
_BYTES = (bytes, bytearray, memoryview)
_TEXT = frozenset({str})
_SIMPLE = frozenset({bool, float, type(None)})


class TooLarge(ValueError):
    """A value that takes more bytes as JSON than it may."""


def is_small(value: object, most: int) -> bool:
    """Return True for JSON's own types with at most `most` characters and parts in all.

    Runs no code of others, and stops at the first part that does not fit.
    """
    return _left((value,), most, DEEPEST) >= 0


def plain(value: object, limit: int) -> JSON:
    """Return a value in JSON's own types: models and dataclasses as objects, dates and paths as text.

    Runs code of the value's classes, so not on the loop. Raises TooLarge for more than `limit` bytes of
    JSON, ValueError for what holds itself or is nested more than 100 levels deep, and what that code raises.
    """
    made = _Plain(limit).of(value)
    if len(dumps(made)) > limit:
        raise TooLarge(f"more than {limit} bytes")
    return made


def dumps(value: object) -> bytes:
    """Write anything as JSON: what cannot be written is described, what holds itself is cut. Never raises."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except (TypeError, ValueError, RecursionError):  # other classes, cycles, integers of more than 64 bits
        made = _Plain(None).of(value)
        return json.dumps(made, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


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


def _left(parts: Iterable[Any], most: int, depth: int) -> int:
    """Return what these leave of `most`, negative if they are not small."""
    for part in parts:
        kind = type(part)
        most -= 1
        if kind is str:
            most -= len(part)
        elif kind is dict or kind is list or kind is tuple:
            if depth == 0 or len(part) > most:
                return -1
            if kind is dict:
                if not _TEXT.issuperset(map(type, part)):
                    return -1
                most -= len(part) + sum(map(len, part))
                part = part.values()
            most = _left(part, most, depth - 1)
        elif kind not in _SIMPLE and (kind is not int or part.bit_length() >= 64):
            return -1
        if most < 0:
            return -1
    return most


class _Plain:
    """One walk. With a limit it refuses what exceeds it, else it cuts and describes."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._left = limit or 0
        self._above: set[int] = set()

    def of(self, value: object) -> JSON:
        self._spend(1)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self.of(value.value)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            bits = value.bit_length()
            return int(value) if bits <= _LONGEST_INTEGER_BITS else f"an integer of {bits} bits"
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else None
        if isinstance(value, _BYTES):
            self._spend(len(value))
            return bytes(value).decode("utf-8", "replace")
        if id(value) in self._above or len(self._above) >= DEEPEST:
            return self._cut()
        self._above.add(id(value))
        try:
            return self._inside(value)
        except BaseException as error:
            if self._limit is not None:
                raise
            return _indescribable(value, error)
        finally:
            self._above.discard(id(value))

    def _inside(self, value: object) -> JSON:
        if isinstance(value, Collection) and self._limit is not None and len(value) > self._left:
            raise TooLarge(f"more than {self._limit} bytes")  # each part takes one at least
        if isinstance(value, Mapping):
            return {self._key(key): self.of(inner) for key, inner in value.items()}
        if isinstance(value, set | frozenset):
            return sorted((self.of(inner) for inner in value), key=str)
        if isinstance(value, list | tuple):
            return [self.of(inner) for inner in value]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {one.name: self.of(getattr(value, one.name, None)) for one in dataclasses.fields(value)}
        if isinstance(value, Iterator) and self._limit is not None:
            raise TypeError(f"a {type(value).__name__} can be read only once; return a list")
        if isinstance(value, Coroutine) and self._limit is not None:
            value.close()
            named = getattr(value, "__qualname__", "a coroutine")
            raise TypeError(f"{named} was not awaited; write await before its call")
        dump = getattr(value, "model_dump", None)
        if callable(dump) and not isinstance(value, type):
            return self.of(dump(mode="json"))
        try:
            return orjson.loads(orjson.dumps(value))  # dates, times and UUIDs have a form of their own
        except (TypeError, ValueError):
            return self._text(_words(value))

    def _key(self, key: object) -> str:
        made = self.of(key)
        return made if isinstance(made, str) else dumps(made).decode()

    def _text(self, text: str) -> str:
        made = str.encode(text, "utf-8", "replace").decode()  # half a character cannot be sent
        self._spend(len(made))
        return made

    def _cut(self) -> str:
        if self._limit is None:
            return CUT
        raise ValueError(f"the result is nested more than {DEEPEST} levels deep or holds itself")

    def _spend(self, size: int) -> None:
        if self._limit is None:
            return
        self._left -= size
        if self._left < 0:
            raise TooLarge(f"more than {self._limit} bytes")


def _words(value: object) -> str:
    try:
        return str(value)
    except BaseException as error:
        return _indescribable(value, error)


def _indescribable(value: object, error: BaseException) -> str:
    return f"<{type(value).__name__} that cannot be written: {type(error).__name__}>"
