"""The file with the servers: as editors save it, broken, written by several at once."""

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.mcp.mapping_file import LARGEST, MappingError, add_server, remove_server, set_enabled
from tests.mcp.written import Written


def test_no_file_is_no_server_and_no_fault(written: Written) -> None:
    assert written.configuration.look() == ()
    assert written.configuration.faults == ()
    assert list(written.folder.iterdir()) == []


@pytest.mark.parametrize("content", [
    b'\xef\xbb\xbf{"mcpServers": {"one": {"command": "x"}}}',
    '{"mcpServers": {"one": {"command": "x"}}}'.encode("utf-16"),
    b'{\r\n  "mcpServers": {\r\n "one": {"command": "x"}}}\r\n',
    b'{"servers": {"one": {"command": "x"}}, "inputs": []}',
    b'{"$schema": "x", "mcpServers": {"one": {"command": "x"}}}',
])  # fmt: skip
def test_files_as_editors_save_them_are_read(written: Written, content: bytes) -> None:
    written.write(content)
    assert written.look()["one"].command == "x"
    assert written.configuration.faults == ()


BROKEN = [
    (
        '{"mcpServers": {\n  "one": {"command": "x"}, // mine\n}}',
        "comments are not allowed at line 2, column 28",
    ),
    ('{"mcpServers": {\n  "one": {"command": "x"},\n}}', "a comma too many at line"),
    ('{"mcpServers": {"one": {"command": "x"}', "line 1, column"),
    ("", "it is empty"),
    ("[]", "no JSON object"),
    ('{"mcpServers": []}', "is no object"),
    ('{"time": {"command": "x"}}', 'has no "mcpServers"'),
    ("[" * 100_000, "nested too deep"),
    ('{"mcpServers": {"one": {"command": "\\ud800"', "line 1"),
    (b'{"mcpServers": {"\xff": 1}}', "not UTF-8"),
    (" " * (LARGEST + 1), "more than 1 MiB"),
    (" " * (10 * 1024 * 1024), "8 MiB"),
]


@pytest.mark.parametrize(("content", "words"), BROKEN)
def test_a_broken_file_is_named_and_what_was_there_before_stays(
    written: Written, content: str | bytes, words: str
) -> None:
    written.write({"kept": {"command": "x"}})
    before = written.look()
    written.write(content)
    assert written.look() == before
    (fault,) = written.configuration.faults
    assert words in fault
    assert str(written.path) in fault
    assert "stay" in fault
    assert "\n" not in fault
    written.write({"mended": {"command": "x"}})
    assert list(written.look()) == ["mended"]
    assert written.configuration.faults == ()
    written.path.unlink()
    assert written.look() == {}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_a_fault_and_never_waited_for(
    written: Written, make: Callable[[Path], None]
) -> None:
    make(written.path)
    assert written.look() == {}
    assert "cannot be read" in written.configuration.faults[0]


def test_a_name_that_stands_twice_is_told_and_the_last_one_counts(written: Written) -> None:
    written.write(
        '{"mcpServers": {"one": {"command": "a"}, "one": {"command": "b"}}, "servers": {"two": {}}}'
    )
    assert [one.command for one in written.configuration.look()] == ["b"]
    twice, beside = written.configuration.faults
    assert '"one" stands there twice' in twice
    assert '"servers" is not read' in beside


def test_nothing_is_read_again_while_nothing_changes(written: Written) -> None:
    written.write({"one": {"command": "x", "env": {"K": "${API_KEY}"}}})
    written.skill("tides", {"sea": {"command": "y"}}, foreign=False)
    first = written.configuration.look()
    assert written.configuration.look() is first
    os.utime(written.path)
    again = written.configuration.look()
    assert again is not first
    assert again == first


def test_writing_keeps_what_else_stands_in_the_file(written: Written) -> None:
    written.write('{"$schema": "x", "servers": {"one": {"command": "ñandú", "timeout": 5}}, "inputs": [1]}')
    add_server(written.path, "two", {"url": "https://example.org"})
    set_enabled(written.path, "one", False)
    assert json.loads(written.path.read_text()) == {
        "$schema": "x",
        "servers": {
            "one": {"command": "ñandú", "timeout": 5, "enabled": False},
            "two": {"url": "https://example.org"},
        },
        "inputs": [1],
    }
    assert "\n  " in written.path.read_text()
    assert "ñandú" in written.path.read_text()
    assert written.path.stat().st_mode & 0o777 == 0o600
    assert remove_server(written.path, "one")
    assert not remove_server(written.path, "one")
    assert list(written.look()) == ["two"]


def test_the_first_server_makes_the_file(written: Written) -> None:
    assert not remove_server(written.path, "one")
    assert not written.path.exists()
    add_server(written.path, "one", {"command": "x"})
    assert json.loads(written.path.read_text()) == {"mcpServers": {"one": {"command": "x"}}}
    with pytest.raises(MappingError, match="already"):
        add_server(written.path, "one", {"command": "y"}, replace=False)
    with pytest.raises(MappingError, match="no server's name"):
        add_server(written.path, "../x", {"command": "y"})
    with pytest.raises(MappingError, match="no server two"):
        set_enabled(written.path, "two", True)


def test_a_broken_file_is_never_written_over(written: Written) -> None:
    written.write('{"mcpServers": {"one": ')
    with pytest.raises(MappingError, match="not JSON"):
        add_server(written.path, "two", {"command": "x"})
    assert written.path.read_text() == '{"mcpServers": {"one": '


def test_a_link_to_the_file_stays_a_link(written: Written) -> None:
    kept = written.folder / "elsewhere.json"
    kept.write_text("{}")
    written.path.symlink_to(kept)
    add_server(written.path, "one", {"command": "x"})
    assert written.path.is_symlink()
    assert "one" in json.loads(kept.read_text())["mcpServers"]


def test_writers_at_once_lose_nothing(written: Written) -> None:
    writers = [
        threading.Thread(target=add_server, args=(written.path, f"s{number}", {"command": "x"}))
        for number in range(20)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert set(written.look()) == {f"s{number}" for number in range(20)}


def test_the_file_of_the_documentation_is_sound(written: Written) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "mcp.md").read_text("utf-8")
    example, *_ = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    written.write(example)
    files, far = written.look().values()
    assert files.env == (("LOG", "info"),)
    assert far.missing == ("FAR_TOKEN",)
    assert (files.fault, far.fault, written.configuration.faults) == ("", "", ())
