"""What a tool call came to, in the one shape that everything reads."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.messages import JSON

MODEL_LIMIT = 32 * 1024
"""Bytes of one result that reach the model."""

_DEEPEST = 200
_OPTIONS = orjson.OPT_NON_STR_KEYS
_ENVELOPE = frozenset({"ok", "data", "error", "meta"})
_LONGEST_INTEGER_BITS = 14_000
"""Python refuses to write integers of more than 4,300 digits."""


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why a call failed: a code of the contract or the tool's own, a sentence, and what to do about it."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`data` where `ok`, else `error`; `meta` holds what is about the call and not its answer."""

    ok: bool
    data: JSON = None
    error: ToolError | None = None
    meta: Mapping[str, JSON] = field(default_factory=dict)

    @classmethod
    def success(cls, data: JSON = None, **meta: JSON) -> "ToolResult":
        return cls(ok=True, data=data, meta=meta)

    @classmethod
    def failure(cls, code: str, message: str, hint: str = "", **meta: JSON) -> "ToolResult":
        return cls(ok=False, error=ToolError(code, message, hint), meta=meta)

    @classmethod
    def of(cls, value: object) -> "ToolResult":
        """The result a function's return value stands for: itself, an envelope, or plain data."""
        if isinstance(value, ToolResult):
            return value
        value = _unwrapped(value)
        if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
            return cls(ok=True, data=value)
        if value["ok"]:
            return _successful(value)
        return _failed(value)

    @classmethod
    def from_json(cls, text: str | bytes) -> "ToolResult":
        """The result that `to_json(limit=None)` wrote. Raises ValueError for anything else."""
        value = json.loads(text)
        if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
            raise ValueError(f"expected an object with a boolean 'ok', got {str(text)[:80]!r}")
        return cls.of(value)

    def with_meta(self, **meta: JSON) -> "ToolResult":
        return dataclasses.replace(self, meta={**self.meta, **meta})

    @property
    def code(self) -> str:
        """The error's code, "ok" where there is none."""
        return self.error.code if self.error else "ok"

    def to_json(self, limit: int | None = MODEL_LIMIT) -> str:
        """JSON text of this result; never raises, whatever `data` holds.

        A text of more than `limit` bytes is cut inside `data` (or the message), stays valid JSON, and
        says so in `meta`: `truncated` and `size`, the bytes of the whole. `None`: never cut.
        """
        text = _dumps(self._form(self.data))
        if limit is None or len(text) <= limit:
            return text.decode()
        return self._cut(limit, len(text)).decode()

    def _form(self, data: JSON) -> dict[str, JSON]:
        if self.ok:
            return {"ok": True, "data": data, "meta": self.meta}
        error = self.error or ToolError("INTERNAL", "the tool reported a failure and gave no reason")
        form = {"ok": False, "error": {"code": error.code, "message": error.message, "hint": error.hint}}
        return {**form, "meta": self.meta} if data is None else {**form, "data": data, "meta": self.meta}

    def _cut(self, limit: int, size: int) -> bytes:
        meta: dict[str, JSON] = {"truncated": True, "size": size}
        if len(_dumps(self.meta)) <= limit // 4:
            meta = {**self.meta, **meta}
        if isinstance(self.data, list | tuple) and self.ok:
            kept = _longest(len(self.data), lambda n: self._listed(n, meta), limit)
            if kept is not None:
                return kept
        if self.ok:
            whole = self.data if isinstance(self.data, str) else _dumps(self.data).decode()
            return self._shortened(lambda n: {"ok": True, "data": whole[:n], "meta": meta}, len(whole), limit)
        error = self.error or ToolError("INTERNAL", "")

        def failed(n: int) -> dict[str, JSON]:
            shown = {"code": error.code[:200], "message": error.message[:n], "hint": error.hint[:200]}
            return {"ok": False, "error": shown, "meta": meta}

        return self._shortened(failed, len(error.message), limit)

    def _listed(self, n: int, meta: Mapping[str, JSON]) -> bytes:
        shown = {**meta, "items": f"{n} of {len(self.data)}"}
        return _dumps({"ok": True, "data": self.data[:n], "meta": shown})

    @staticmethod
    def _shortened(form: Any, length: int, limit: int) -> bytes:
        return _longest(length, lambda n: _dumps(form(n)), limit, least=0) or _dumps(form(0))


def exceeds(data: JSON, limit: int) -> bool:
    """Whether `data` surely takes more than `limit` bytes as JSON; stops looking as soon as it does.

    Raises ValueError for data that is nested too deeply to be JSON, such as a list that holds itself.
    """
    spent = 0
    waiting: list[Iterator[object]] = [iter((data,))]
    while waiting:
        for value in waiting[-1]:
            spent += len(value) if isinstance(value, str | bytes | bytearray) else 1
            if isinstance(value, dict):
                waiting.append(_parts(value))
                break
            if isinstance(value, list | tuple | set | frozenset):
                waiting.append(iter(value))
                break
            if spent > limit:
                return True
        else:
            waiting.pop()
        if len(waiting) > _DEEPEST:
            raise ValueError(f"the result is nested more than {_DEEPEST} levels deep or holds itself")
        if spent > limit:
            return True
    return False


def _parts(value: dict[object, object]) -> Iterator[object]:
    for key, inner in value.items():
        yield key
        yield inner


def _successful(value: dict[str, JSON]) -> ToolResult:
    if not value.keys() <= _ENVELOPE:
        return ToolResult(ok=True, data=value)
    return ToolResult(ok=True, data=value.get("data"), meta=_mapping(value.get("meta")))


def _failed(value: dict[str, JSON]) -> ToolResult:
    given = value.get("error")
    if isinstance(given, dict):
        error = ToolError(
            str(given.get("code") or "INTERNAL"),
            str(given.get("message") or ""),
            str(given.get("hint") or ""),
        )
    else:
        said = given or value.get("message") or "the tool reported a failure and gave no reason"
        error = ToolError(str(value.get("code") or "INTERNAL"), str(said))
    return ToolResult(ok=False, data=value.get("data"), error=error, meta=_mapping(value.get("meta")))


def _mapping(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}


def _unwrapped(value: object) -> JSON:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        try:
            return dataclasses.asdict(value)
        except (RecursionError, TypeError):
            return value
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    return value


def _longest(length: int, render: Any, limit: int, least: int = 1) -> bytes | None:
    """The longest rendering that fits; `None` where not even `least` parts do."""
    best: bytes | None = None
    low, high = least, length
    while low <= high:
        middle = (low + high) // 2
        text: bytes = render(middle)
        if len(text) <= limit:
            best, low = text, middle + 1
        else:
            high = middle - 1
    return best


def _dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value, default=_fallback, option=_OPTIONS)
    except (TypeError, ValueError, RecursionError):
        plain = _plain(value, _DEEPEST, frozenset())
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _fallback(value: object) -> JSON:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    return _text(value)


def _plain(value: object, depth: int, above: frozenset[int]) -> JSON:
    """JSON that the standard encoder takes: for what the fast one refuses (cycles, huge integers …)."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _LONGEST_INTEGER_BITS else _huge(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if id(value) in above or depth == 0:
        return "…"
    above = above | {id(value)}
    if isinstance(value, Mapping):
        return {_key(key): _plain(inner, depth - 1, above) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner, depth - 1, above) for inner in value]
    try:
        return json.loads(orjson.dumps(value, default=_fallback, option=_OPTIONS))
    except (TypeError, ValueError, RecursionError):
        return _text(value)


def _key(value: object) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else _text(value)


def _huge(value: int) -> str:
    return f"an integer of {value.bit_length()} bits"


def _text(value: object) -> str:
    try:
        text = str(value)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be written: {type(error).__name__}>"
    return text.encode("utf-8", "replace").decode()
