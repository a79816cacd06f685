"""Approved definitions of a server's tools, and changes since."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.mcp.approved import Pins, definition_hash

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
    pins.compare([READ])
    path.write_text(spoil(json.loads(path.read_text())))
    assert [one.tool for one in pins.compare([READ])[1]] == ["read"]
    assert str(path) in pins.fault
    pins.compare([READ])
    assert not pins.compare([READ])[0]
    pins.approve([READ], {"read": definition_hash(READ)})
    assert pins.compare([READ]) == ([READ], [])
    assert pins.fault == ""
