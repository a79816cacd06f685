"""What the model reads of any result."""

import json
from dataclasses import dataclass
from datetime import date
from typing import Any

from app.tools import ToolResult


@dataclass
class Thing:
    name: str


class Unwritable:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Fatal:
    def __str__(self) -> str:
        raise KeyboardInterrupt


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
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        ({"a", "b"}, ["a", "b"]),
        (b"bytes", "bytes"),
        ("\ud800", "?"),
        (CYCLE, "<list that cannot be written: ValueError>"),
        (date(2026, 5, 1), "2026-05-01"),
        ([Unwritable()], ["<Unwritable that cannot be written: RuntimeError>"]),
        ([Fatal()], ["<Fatal that cannot be written: KeyboardInterrupt>"]),
        ([Thing("x")], [{"name": "x"}]),
        (10**5000, "<int that cannot be written: ValueError>"),
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
