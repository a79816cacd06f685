"""What comes back from a tool, however large or strange, and what a model reads of it."""

import asyncio
import json
import threading
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import BaseModel

from app.tools import ToolResult
from tests.tools.engines import engine_of, tool_of

MEBIBYTE = 1024 * 1024


class Wordy:
    """An object of which only its words are large."""

    def __str__(self) -> str:
        return "w" * 2 * MEBIBYTE


class Fatal:
    def __str__(self) -> str:
        raise SystemExit(3)


class Color(Enum):
    RED = "red"


@dataclass
class Box:
    label: str
    inside: list[Any] = field(default_factory=list)


class Form(BaseModel):
    day: date
    text: str = ""


LOOP = Box("outer")
LOOP.inside.append(LOOP)
DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]


def result_of(function: Callable[..., object], **options: Any) -> ToolResult:
    return asyncio.run(engine_of(tool_of(function, **options)).execute_tool_call("it", {}))


RESULTS: dict[str, tuple[Any, str]] = {
    "text": ("x" * 2 * MEBIBYTE, "OUTPUT_TOO_LARGE"),
    "words within": ([Box("b", [Wordy()])], "OUTPUT_TOO_LARGE"),
    "escapes": ("\x01" * 400_000, "OUTPUT_TOO_LARGE"),
    "meta": (ToolResult.success(1, extra=Wordy()), "OUTPUT_TOO_LARGE"),
    "loop": (LOOP, "INTERNAL"),
    "deep": (DEEP, "INTERNAL"),
    "no meta": (ToolResult(ok=True, meta=5), "INTERNAL"),  # type: ignore[arg-type]
    "fatal": ([Fatal()], "ok"),
}


@pytest.mark.parametrize(("value", "code"), RESULTS.values(), ids=RESULTS)
def test_a_result_is_bounded_whatever_it_is_made_of(value: Any, code: str) -> None:
    async def later() -> Any:
        return value

    result = result_of(later)
    assert result.code == code
    assert len(result.to_json()) <= 32 * 1024


def test_words_that_take_for_ever_are_cut_at_the_time_limit() -> None:
    release = threading.Event()

    class Slow:
        def __str__(self) -> str:
            release.wait(10)
            return "at last"

    assert result_of(lambda: Slow(), timeout=0.2).code == "TIMEOUT"
    release.set()


@pytest.mark.parametrize("part", ["message", "hint", "code"])
def test_a_failure_stays_a_failure_with_shorter_words(part: str) -> None:
    words = {"code": "NO_SUCH_CITY", "message": "none", "hint": "look", part: "A" * 30 * MEBIBYTE}
    for value in ({"ok": False, "error": words}, ToolResult.failure(**words)):
        result = result_of(lambda value=value: value)
        assert result.error is not None
        assert len(getattr(result.error, part)) == 32 * 1024
        assert len(json.loads(result.to_json())["error"]["code"]) <= 200
    if part != "code":
        assert result.error.code == "NO_SUCH_CITY"


def test_every_class_becomes_plain_json_once() -> None:
    value = {
        "box": Box("b", [Decimal("1.50"), PurePosixPath("a/b"), Color.RED]),
        "form": Form(day=date(2026, 5, 1)),
        "more": UserDict({1: b"bytes", "two": {2, 1}, date(2026, 5, 1): (1.5, float("nan"))}),
    }
    assert result_of(lambda: value).data == {
        "box": {"label": "b", "inside": ["1.50", "a/b", "red"]},
        "form": {"day": "2026-05-01", "text": ""},
        "more": {"1": "bytes", "two": [1, 2], "2026-05-01": [1.5, None]},
    }


class Unwritable:
    def __str__(self) -> str:
        raise RuntimeError("no")


CYCLE: list[Any] = [1]
CYCLE.append(CYCLE)


def test_what_a_function_returned_becomes_a_result() -> None:
    for value, ok, data in [
        (5, True, 5),
        (None, True, None),
        ({"a": 1}, True, {"a": 1}),
        ({"ok": True, "data": [1]}, True, [1]),
        ({"ok": True, "count": 3}, True, {"ok": True, "count": 3}),
        ({"ok": "yes"}, True, {"ok": "yes"}),
        ({"ok": False, "error": {"code": "NOPE", "message": "m"}}, False, None),
        ({"ok": False, "error": "text"}, False, None),
        (ToolResult.success(1), True, 1),
    ]:
        result = ToolResult.of(value)
        assert (result.ok, result.data) == (ok, data)
        assert (result.error is None) == ok


def test_envelope_keeps_code_hint_and_meta() -> None:
    error = {"code": "LOCATION_NOT_FOUND", "message": "no such city", "hint": "check it"}
    result = ToolResult.of({"ok": False, "error": error, "meta": {"retry_after": 3}})
    assert json.loads(result.to_json()) == {"ok": False, "error": error, "meta": {"retry_after": 3}}


def test_anything_can_be_written() -> None:
    for data, written in [
        (float("nan"), None),
        (2**200, 2**200),
        ({1: "a", "two": {2}}, {"1": "a", "two": [2]}),
        (b"bytes", "bytes"),
        (["\ud800", Box("x")], ["?", {"label": "x", "inside": []}]),
        (CYCLE, "<list that cannot be written: ValueError>"),
        (date(2026, 5, 1), "2026-05-01"),
        ([Unwritable()], ["<Unwritable that cannot be written: RuntimeError>"]),
        ([Fatal()], ["<Fatal that cannot be written: SystemExit>"]),
        ([Box("x")], [{"label": "x", "inside": []}]),
    ]:
        assert json.loads(ToolResult.success(data).to_json())["data"] == written


def test_long_results_are_cut_and_say_so() -> None:
    for data in ["é" * 100_000, [{"n": i} for i in range(9000)], {"k": "v" * 99_000}, ['"' * 90_000]]:
        result = ToolResult.success(data, source="s")
        text = result.to_json()
        read = json.loads(text)
        assert 20_000 < len(text.encode()) <= 32 * 1024
        assert read["ok"] is True
        assert read["meta"]["truncated"] is True
        assert read["meta"]["source"] == "s"
        assert read["meta"]["size"] == len(result.to_json(limit=None).encode())
