"""The outcome of a tool call, in the one shape that everything reads."""

import dataclasses
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.errors import RecadoError
from app.http.address import FetchError
from app.messages import JSON, mapping
from app.text import mask_text, without_paths
from app.tools.plain import TooLarge, dumps, plain
from app.tools.validation import InvalidArguments

MODEL_LIMIT = 32 * 1024  # bytes of one result that reach the model
OUTPUT_LIMIT = 1024 * 1024  # bytes of JSON that one call may return

_LONGEST_MESSAGE = 500
_ENVELOPE = frozenset({"ok", "data", "error", "meta"})
_NO_REASON = "the tool reported a failure and gave no reason"


@dataclass(frozen=True, slots=True)
class ToolError:
    """The reason of a failure: a code of the contract or the tool's own, a sentence, and what to do."""

    code: str
    message: str
    hint: str = ""

    @classmethod
    def of(cls, given: object) -> "ToolError":
        """Return the error that the mapping of an envelope, or a text, stands for."""
        if isinstance(given, ToolError):
            return given
        said = given if isinstance(given, dict) else {"message": given}
        code, message, hint = (str(said.get(part) or "") for part in ("code", "message", "hint"))
        return cls(code or "INTERNAL", message, hint)


@dataclass(frozen=True, slots=True)
class ReturnedFile:
    """A picture, recording or document that a tool made for the person; the model reads only that it is sent.

    `mime_type` and `name` are what the tool says: they may be anything, and "" where it says nothing.
    """

    data: bytes = field(repr=False)
    mime_type: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`data` where `ok`, else `error`; `meta` holds what is about the call and not its answer.

    An `error` may be given as the mapping of an envelope, or as a text. `attachments` of a success go to the
    person with the reply; they are no part of the JSON.
    """

    ok: bool
    data: JSON = None
    error: ToolError | None = None
    meta: Mapping[str, JSON] = field(default_factory=dict)
    attachments: tuple[ReturnedFile, ...] = ()

    def __post_init__(self) -> None:
        """Tools of others have no class to make an error of, and may leave `meta` empty by None."""
        if self.error is not None:
            object.__setattr__(self, "error", ToolError.of(self.error))
        if self.meta is None:
            object.__setattr__(self, "meta", {})

    @classmethod
    def success(cls, data: JSON = None, **meta: JSON) -> "ToolResult":
        return cls(ok=True, data=data, meta=meta)

    @classmethod
    def failure(cls, code: str, message: str, hint: str = "", **meta: JSON) -> "ToolResult":
        return cls(ok=False, error=ToolError(code, message, hint), meta=meta)

    @classmethod
    def unknown(cls, message: str, code: str = "OUTCOME_UNKNOWN") -> "ToolResult":
        hint = "it may have happened all the same: do not call it again without asking"
        return cls.failure(code, message, hint, outcome="unknown")

    @classmethod
    def of(cls, value: object) -> "ToolResult":
        """Return the result a function's return value stands for: itself, an envelope, or plain data."""
        if isinstance(value, ToolResult):
            return value
        ok = value.get("ok") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(ok, bool) or (ok and value.keys() - _ENVELOPE):
            return cls(True, value)
        data, error, meta = value.get("data"), value.get("error"), mapping(value.get("meta"))
        if ok:
            return cls(True, data, meta=meta)
        if not isinstance(error, dict):
            error = {"code": value.get("code"), "message": error or value.get("message") or _NO_REASON}
        return cls(False, data, ToolError.of(error), meta)

    def with_meta(self, **meta: JSON) -> "ToolResult":
        return dataclasses.replace(self, meta={**self.meta, **meta})

    @property
    def code(self) -> str:
        """Return "ok", or the error's code."""
        if self.ok:
            return "ok"
        return self.error.code if self.error else "INTERNAL"

    def to_json(self, limit: int | None = MODEL_LIMIT) -> str:
        """Return the JSON text of this result; never raises, whatever `data` holds.

        A text of more than `limit` bytes is cut inside `data` (or the message), stays valid JSON, and
        says so in `meta`: `truncated` and `size`, the bytes of the whole. `None`: never cut.
        """
        text = orjson.dumps({key: orjson.Fragment(dumps(part)) for key, part in self.form.items()})
        if limit is None or len(text) <= limit:
            return text.decode()
        return self._cut(limit, len(text)).decode()

    @property
    def form(self) -> dict[str, JSON]:
        """Return the envelope that `to_json` writes."""
        if self.ok:
            return {"ok": True, "data": self.data, "meta": self.meta}
        error = self.error or ToolError("INTERNAL", _NO_REASON)
        data = {} if self.data is None else {"data": self.data}
        return {"ok": False, "error": dataclasses.asdict(error), **data, "meta": self.meta}

    def _cut(self, limit: int, size: int) -> bytes:
        """Return as much of the data, or of the message, as fits; a list is cut between its items."""
        meta: dict[str, JSON] = {"truncated": True, "size": size}
        flags = {key: value for key, value in self.meta.items() if isinstance(value, bool)}
        for said in (self.meta, flags):  # that it holds text of others is not lost with the rest
            if len(dumps(said)) <= limit // 4:
                meta = {**said, **meta}
                break
        error = self.error or ToolError("INTERNAL", "")
        whole: Any = self.data if self.ok else error.message

        def written(n: int) -> bytes:
            if not self.ok:
                cut = {"code": error.code[:200], "message": whole[:n], "hint": error.hint[:200]}
                return dumps({"ok": False, "error": cut, "meta": meta})
            shown = {"items": f"{n} of {len(whole)}"} if isinstance(whole, list) else {}
            return dumps({"ok": True, "data": whole[:n], "meta": {**meta, **shown}})

        if not isinstance(whole, str) and not (isinstance(whole, list) and len(written(1)) <= limit):
            whole = dumps(whole).decode()
        most = bisect_right(range(len(whole) + 1), limit, key=lambda n: len(written(n))) - 1
        return written(max(most, 0))


class Refused(RecadoError):
    """A call is not done. Holds its result, which says why."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.code)
        self.result = result


def bounded(value: object) -> ToolResult:
    """Return the result of any value: data and meta in plain JSON types, the error's texts cut.

    Runs code of the value's classes, so not on the loop. Raises TooLarge where data or meta take more than
    OUTPUT_LIMIT bytes, ValueError where they hold themselves, and what that code raises.
    """
    result = ToolResult.of(value)
    error = result.error
    if error is not None:
        error = ToolError(*(str(text)[:MODEL_LIMIT] for text in (error.code, error.message, error.hint)))
    files = [ReturnedFile(bytes(one.data), str(one.mime_type), str(one.name)) for one in result.attachments]
    data, meta = plain(result.data, OUTPUT_LIMIT), plain(dict(result.meta), OUTPUT_LIMIT)
    return ToolResult(bool(result.ok), data, error, meta, tuple(files))


def fetch_code(error: FetchError) -> str:
    """Return the code of the contract for a fetch that failed."""
    if error.code in ("BAD_ADDRESS", "NOT_PUBLIC", "BAD_REDIRECT"):
        return "BAD_REQUEST"
    return "TIMEOUT" if error.code == "TIMED_OUT" else "UPSTREAM_ERROR"


def raised(tool: str, error: BaseException) -> ToolResult:
    """Return the result of a call that raised; INTERNAL where the fault is the tool's own."""
    if isinstance(error, Refused):
        return error.result
    if isinstance(error, TooLarge):
        hint = "ask for less: a narrower search, fewer items or a part of the file"
        return ToolResult.failure("OUTPUT_TOO_LARGE", f"{tool} returned more than {OUTPUT_LIMIT} bytes", hint)
    if isinstance(error, FetchError):
        return ToolResult.failure(fetch_code(error), str(error))
    if isinstance(error, InvalidArguments):
        return ToolResult.failure("BAD_REQUEST", str(error), "mend the arguments and call it again")
    return ToolResult.failure("INTERNAL", f"{tool} failed with {type(error).__name__}: {own_words(error)}")


def own_words(error: BaseException) -> str:
    """Return an exception's own words on one line, without paths and secrets."""
    try:
        text = str(error)
    except BaseException:  # the class is the tool's: its text may raise anything
        return "(its message cannot be read)"
    line = " ".join(text[: _LONGEST_MESSAGE * 2].split())
    return mask_text(without_paths(line))[:_LONGEST_MESSAGE] or "no message"
