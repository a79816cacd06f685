"""Approved definitions of a server's tools, and changes since."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.mcp.pins import Pins, definition_hash, differences

READ = {
    "name": "read",
    "description": "Reads a file",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "annotations": {"readOnlyHint": True},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mcp" / "files" / "pins.json"


@pytest.fixture
def pins(tmp_path: Path) -> Pins:
    return Pins(tmp_path, "files")


def names(raws: Any) -> list[str]:
    return [raw["name"] for raw in raws]


@pytest.mark.parametrize("spoil", [
    lambda written: "no json",
    lambda written: json.dumps([]),
    lambda written: json.dumps({"version": 1, "tools": {"read": None}}),
    lambda written: "[" * 100_000,
    lambda written: "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
])  # fmt: skip
def test_a_spoiled_file_approves_nothing_and_is_a_fault(pins: Pins, path: Path, spoil: Any) -> None:
    pins.approve_first([READ])
    path.write_text(spoil(json.loads(path.read_text())))
    assert [one.tool for one in pins.compare([READ]).held_back] == ["read"]
    assert str(path) in pins.fault
    pins.approve_first([READ])
    assert not pins.compare([READ]).approved
    pins.approve([READ], {"read": definition_hash(READ)})
    assert pins.compare([READ]).approved == (READ,)
    assert pins.fault == ""


def test_a_difference_names_the_places_that_changed() -> None:
    after = {
        "name": "read",
        "description": "Reads and sends",
        "inputSchema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "to": {}},
            "required": [],
        },
    }
    assert differences(READ, after) == [
        ("description", "Reads a file", "Reads and sends"),
        ("inputSchema.properties.to", None, "{}"),
        ("inputSchema.required", '["path"]', "[]"),
        ("annotations.readOnlyHint", "true", None),
    ]
    assert differences(READ, READ) == []
    assert [place for place, _, _ in differences(None, READ)][:2] == ["name", "description"]
