"""The files of servers: the mapping as editors save it or broken, and secrets for each server alone."""

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.mcp.configuration import FileError, Secrets, add_server, edit_server, remove_server
from tests.mcp.config_folder import Config


def test_files_as_editors_save_them_are_read(config: Config) -> None:
    for content in (
        b'\xef\xbb\xbf{"mcpServers": {"one": {"command": "x"}}}',
        '{"mcpServers": {"one": {"command": "x"}}}'.encode("utf-16"),
        b'{\r\n  "mcpServers": {\r\n "one": {"command": "x"}}}\r\n',
        b'{"servers": {"one": {"command": "x"}}, "inputs": []}',
    ):
        config.write(content)
        assert config.look()["one"].command == "x"
        assert config.configuration.faults == ()


BROKEN = [
    (
        '{"mcpServers": {\n  "one": {"command": "x"}, // mine\n}}',
        "not JSON: Expecting property name enclosed in double quotes: line 2 column 28",
    ),
    ('{"mcpServers": {\n  "one": {"command": "x"},\n}}', "not JSON: "),
    ('{"mcpServers": {"one": {"command": "x"}', "line 1 column"),
    ("", "not JSON"),
    ("[]", "names no servers; write"),
    ('{"mcpServers": []}', "names no servers"),
    ('{"time": {"command": "x"}}', "names no servers"),
    ("[" * 100_000, "not JSON"),
    ('{"mcpServers": {"one": {"command": "\\ud800"', "line 1"),
    (b'{"mcpServers": {"\xff": 1}}', "not JSON"),
    (" " * (10 * 1024 * 1024), "8 MiB"),
]


def test_a_broken_file_is_a_fault_and_the_earlier_servers_stay(config: Config) -> None:
    for content, words in BROKEN:
        config.write({"kept": {"command": "x"}})
        before = config.look()
        config.write(content)
        assert config.look() == before
        (fault,) = config.configuration.faults
        assert words in fault
        assert str(config.path) in fault
        assert "stay" in fault
        assert "\n" not in fault
        config.write({"mended": {"command": "x"}})
        assert list(config.look()) == ["mended"]
        assert config.configuration.faults == ()
        config.path.unlink()
        assert config.look() == {}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_folder_in_place_of_the_file_is_a_fault_without_waiting(
    config: Config, make: Callable[[Path], None]
) -> None:
    make(config.path)
    assert config.look() == {}
    assert "cannot be read" in config.configuration.faults[0]


def test_concurrent_writers_lose_nothing(config: Config) -> None:
    writers = [
        threading.Thread(target=add_server, args=(config.path, f"s{number}", {"command": "x"}))
        for number in range(20)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert set(config.look()) == {f"s{number}" for number in range(20)}


def test_the_example_of_the_documentation_works(config: Config) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "mcp.md").read_text("utf-8")
    example, *_ = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    config.write(example)
    files, far = config.look().values()
    assert files.env == (("LOG", "info"),)
    assert far.missing == ("FAR_TOKEN",)
    assert (files.fault, far.fault, config.configuration.faults) == ("", "", ())


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return Secrets(tmp_path / "data")


def test_a_secret_belongs_to_one_server_and_only_this_account_reads_it(secrets: Secrets) -> None:
    before = os.umask(0)
    try:
        for server, name, value in (
            *(("github", "TOKEN", "first"), ("github", "TOKEN", "second")),
            *(("github", "OTHER", "third"), ("gitlab", "TOKEN", "another")),
        ):
            secrets.put(server, name, value)
    finally:
        os.umask(before)
    assert Secrets(secrets.folder.parent).get("github") == {"TOKEN": "second", "OTHER": "third"}
    assert secrets.get("gitlab") == {"TOKEN": "another"}
    assert secrets.get("nobody") == {}
    assert secrets.folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in secrets.folder.iterdir()} == {0o600}


def test_invalid_and_reserved_names_are_refused(secrets: Secrets) -> None:
    for name in ("", "A B", "A=B", "A" * 65, "OPENAI_API_KEY"):
        with pytest.raises(FileError) as refused:
            secrets.put("github", name, "s3cret-value")
        assert "s3cret-value" not in str(refused.value)
    for server in ("", "..", "a/b", ".hidden"):
        for act in (lambda name: secrets.put(name, "TOKEN", "value"), secrets.forget):
            with pytest.raises(FileError):
                act(server)
        assert secrets.get(server) == {}
    assert not secrets.folder.exists()


@pytest.mark.parametrize("content", ["{", '{"TOKEN": 1}', "\udc80"])
def test_an_unreadable_secrets_file_is_named_but_not_shown(
    secrets: Secrets, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    secrets.folder.mkdir(parents=True)
    (secrets.folder / "github").write_bytes(f'{content} "hunter2"'.encode(errors="surrogateescape"))
    assert secrets.get("github") == {}
    assert "github" in caplog.text
    with pytest.raises(FileError, match="remove it") as refused:
        secrets.put("github", "TOKEN", "value")
    assert "hunter2" not in f"{caplog.text}{refused.value}"
    secrets.forget("github")
    assert not (secrets.folder / "github").exists()


def test_writing_keeps_the_rest_of_the_file(config: Config) -> None:
    config.write('{"$schema": "x", "servers": {"one": {"command": "ñandú", "timeout": 5}}, "inputs": [1]}')
    add_server(config.path, "two", {"url": "https://example.org"})
    edit_server(config.path, "one", enabled=False, disabled=None)
    assert json.loads(config.path.read_text()) == {
        "$schema": "x",
        "servers": {
            "one": {"command": "ñandú", "timeout": 5, "enabled": False},
            "two": {"url": "https://example.org"},
        },
        "inputs": [1],
    }
    assert "\n  " in config.path.read_text()
    assert "ñandú" in config.path.read_text()
    assert config.path.stat().st_mode & 0o777 == 0o600
    for _ in range(2):
        remove_server(config.path, "one")
    assert list(config.look()) == ["two"]
