"""Which servers are written down: the operator's file as hosts write it, secrets, skills' own files."""

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.mcp.config import Configuration, Wanted, add_server, remove_server, set_enabled
from app.mcp.definitions import ServerDefinition
from app.mcp.installed import RECORD, InstalledServer, entry_of, to_json
from app.mcp.mapping import LARGEST, MappingError
from app.settings import Settings
from app.skills.sandbox import Grants

ENVIRONMENT = {"API_KEY": "of-the-operator", "REGION": "sur"}
SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


class Place:
    """A data folder with an `mcp_servers.json`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mcp_servers.json"
        self.settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            DATA_DIR=folder,
            mcp_config_path=self.path,
        )
        self.skills: list[tuple[str, Path, bool]] = []
        self.configuration = Configuration(self.settings, ENVIRONMENT, lambda: self.skills)

    def write(self, content: Any) -> None:
        text = content if isinstance(content, str | bytes) else json.dumps({"mcpServers": content})
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def look(self) -> dict[str, ServerDefinition]:
        found = self.configuration.look()
        assert len({one.name for one in found}) == len(found)
        return {one.name: one for one in found}

    def one(self, entry: Any) -> ServerDefinition:
        self.write({"one": entry})
        return self.look()["one"]

    def skill(self, name: str, servers: Any, *, foreign: bool) -> Path:
        path = self.folder / "skills" / name / "mcp.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"mcpServers": servers}))
        self.skills.append((name, path, foreign))
        return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_no_file_is_no_server_and_no_fault(place: Place) -> None:
    assert place.configuration.look() == ()
    assert place.configuration.faults == ()
    assert list(place.folder.iterdir()) == []


def test_entries_as_other_hosts_write_them_are_read(place: Place) -> None:
    place.write(
        {
            "time": {"command": "uvx", "args": ["mcp-server-time", "--port", 8], "type": "stdio"},
            "claude": {
                "command": "npx",
                "args": ["-y", "x"],
                "env": {"DEBUG": True, "N": 3},
                "disabled": True,
            },
            "cline": {"command": "x", "autoApprove": ["a"], "alwaysAllow": [], "timeout": 60, "cwd": "/tmp"},
            "cursor": {"url": "https://example.org/mcp", "headers": {"X-Region": "${REGION}"}},
            "windsurf": {"serverUrl": "https://example.org/mcp", "type": "streamable-http"},
            "gemini": {"httpUrl": "http://localhost:9/mcp", "trust": True},
            "roo": {"url": "https://example.org/mcp", "type": "streamableHttp", "env": None, "args": []},
            "ours": {"command": "x", "enabled": False, "audience": "owners", "description": "Does x"},
        }
    )
    found = place.look()
    assert {name: one.fault for name, one in found.items() if one.fault} == {}
    assert found["time"].args == ("mcp-server-time", "--port", "8")
    assert found["claude"].env == (("DEBUG", "true"), ("N", "3"))
    assert [name for name, one in found.items() if not one.enabled] == ["claude", "ours"]
    assert found["cline"].folder == "/tmp"
    assert found["cursor"].headers == (("X-Region", "sur"),)
    assert found["windsurf"].url == "https://example.org/mcp"
    assert found["gemini"].trusted
    assert not found["cursor"].trusted
    assert found["ours"].description == "Does x"
    assert {one.origin for one in found.values()} == {"operator"}
    assert not any(one.sandboxed for one in found.values())


FAULTY = [
    ("a text", "no object"),
    ({}, "neither"),
    ({"command": "x", "url": "https://example.org"}, "both"),
    ({"command": "npx -y server"}, "args"),
    ({"command": ["npx", "server"]}, '"command" is a text'),
    ({"command": "x", "args": "server"}, '"args" is a list'),
    ({"command": "x", "args": [None]}, "no text"),
    ({"command": "x", "args": ["a\0b"]}, "NUL"),
    ({"command": "x", "args": ["a"] * 257}, "256"),
    ({"command": "x", "env": ["A=1"]}, '"env" is an object'),
    ({"command": "x", "env": {"A=B": "1"}}, "no variable's name"),
    ({"command": "x", "env": {"A": {"b": 1}}}, "no text"),
    ({"command": "x", "env": {"A": "${input:token}"}}, "write ${NAME}"),
    ({"command": "x", "env": {"A": "${OPENAI_API_KEY}"}}, "SERVER_OPENAI_API_KEY"),
    ({"command": "x", "args": ["${admin_token:-x}"]}, "setting of this assistant"),
    ({"command": "x", "type": "http"}, "stdio"),
    ({"command": "x", "enabled": "yes"}, '"enabled" is true or false'),
    ({"command": "x", "audience": "friends"}, "everyone, owners"),
    ({"command": "x", "sandbox": {"everything": True}}, '"sandbox" is'),
    ({"url": "https://example.org/sse", "type": "sse"}, "SSE"),
    ({"url": "file:///etc/passwd"}, "only http and https"),
    ({"url": "https://ana:hunter2@example.org/"}, "password"),
    ({"url": "https://example.org", "type": "stdio"}, "http"),
    ({"url": "https://example.org", "headers": {"X Y": "1"}}, "no header's name"),
    ({"url": "https://example.org", "headers": {"X-Key": "a\r\nHost: b"}}, "line breaks"),
]


@pytest.mark.parametrize(("entry", "word"), FAULTY)
def test_a_faulty_entry_says_what_to_mend_and_stops_no_other(place: Place, entry: Any, word: str) -> None:
    place.write({"bad": entry, "good": {"command": "x"}})
    found = place.look()
    assert word in found["bad"].fault
    assert "\n" not in found["bad"].fault
    assert "hunter2" not in found["bad"].fault
    assert found["good"].fault == ""
    assert place.configuration.faults == ()


@pytest.mark.parametrize("name", ["", "-x", "a b", "../up", "a/b", "ñ", "x" * 42, "x" * 5000, "a\n"])
def test_a_name_that_cannot_be_a_folder_is_a_fault(place: Place, name: str) -> None:
    place.write({name: {"command": "x"}, "good": {"command": "x"}})
    *others, good = place.configuration.look()
    assert good.fault == ""
    assert others[0].fault.startswith("its name cannot be used")
    assert all(len(one.name) <= 100 for one in others)


def test_variables_come_from_its_own_secrets_first_then_from_the_environment(place: Place) -> None:
    entry = {
        "command": "x",
        "args": ["--region=${REGION}", "${MODE:-fast}", "$HOME", "${EMPTY:-}"],
        "env": {"KEY": "${API_KEY}", "BOTH": "${REGION}-${API_KEY}"},
    }
    assert place.one(entry).env == (("KEY", "of-the-operator"), ("BOTH", "sur-of-the-operator"))
    assert place.one(entry).args == ("--region=sur", "fast", "$HOME", "")
    place.configuration.secrets.put("another", "API_KEY", "not mine")
    assert place.look()["one"].env[0] == ("KEY", "of-the-operator")
    place.configuration.secrets.put("one", "API_KEY", "its own")
    assert place.look()["one"].env[0] == ("KEY", "its own")
    place.configuration.secrets.forget("one")
    assert place.look()["one"].env[0] == ("KEY", "of-the-operator")


def test_what_nobody_gave_is_missing_until_it_is_given(place: Place) -> None:
    one = place.one(
        {"url": "https://${HOST_NAME}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}", "X": "${TOKEN}"}}
    )
    assert one.missing == ("HOST_NAME", "TOKEN")
    assert one.fault == ""
    place.configuration.secrets.put("one", "HOST_NAME", "example.org")
    place.configuration.secrets.put("one", "TOKEN", "hunter2")
    one = place.look()["one"]
    assert one.missing == ()
    assert one.url == "https://example.org/mcp"
    assert "hunter2" not in repr(one)
    place.configuration.secrets.put("one", "HOST_NAME", "no host")
    assert "cannot be used" in place.look()["one"].fault
    assert "no host" not in place.look()["one"].fault


def test_who_holds_a_secret_is_for_owners_unless_the_file_says_other(place: Place) -> None:
    place.write(
        {
            "plain": {"command": "x"},
            "default": {"command": "x", "args": ["${PLACE:-here}"]},
            "given": {"command": "x", "env": {"K": "${API_KEY}"}},
            "missing": {"command": "x", "env": {"K": "${NOT_THERE}"}},
            "literal": {"command": "x", "env": {"API_KEY": "abcdefgh"}},
            "said": {"command": "x", "env": {"K": "${API_KEY}"}, "audience": "everyone"},
        }
    )
    everyone = {name for name, one in place.look().items() if one.audience == "everyone"}
    assert everyone == {"plain", "default", "said"}


@pytest.mark.parametrize(
    ("entry", "places"),
    [
        ({"command": "x", "env": {"GITHUB_TOKEN": SECRET, "DEBUG": "1"}}, ("env GITHUB_TOKEN",)),
        ({"command": "x", "env": {"NOTE": SECRET}}, ("env NOTE",)),
        ({"command": "x", "args": ["--api-key=abcdef"]}, ("args",)),
        ({"command": "x", "args": ["postgresql://me:word@host/db"]}, ("args",)),
        ({"url": "https://example.org/mcp?api_key=abcdef"}, ("url",)),
        (
            {"url": "https://example.org", "headers": {"Authorization": "Bearer abcdefgh"}},
            ("headers Authorization",),
        ),
        ({"command": "x", "env": {"TOKEN": "${API_KEY}", "TOKENIZERS_PARALLELISM": "false"}}, ()),
        ({"command": "x", "env": {"KEY_FILE": "/run/secrets/key", "MONKEY": "capuchin"}}, ()),
        ({"command": "x", "args": ["--sort-key", "name", "/srv/tokens"]}, ()),
    ],
)
def test_a_secret_that_stands_in_the_file_is_noticed(
    place: Place, entry: Any, places: tuple[str, ...]
) -> None:
    assert place.one(entry).exposed == places
    assert place.one(entry).fault == ""


def test_the_sandbox_of_an_own_server_has_the_rights_that_its_entry_names(place: Place) -> None:
    one = place.one({"command": "x", "cwd": "/srv", "sandbox": {"network": True, "write": ["/srv/notes"]}})
    assert one.sandboxed
    assert one.grants.network
    assert not one.grants.programs
    assert one.grants.folders_write == (Path("/srv/notes"),)
    assert place.one({"command": "x", "cwd": "/srv", "sandbox": True}).sandboxed


@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf{"mcpServers": {"one": {"command": "x"}}}',
        '{"mcpServers": {"one": {"command": "x"}}}'.encode("utf-16"),
        b'{\r\n  "mcpServers": {\r\n "one": {"command": "x"}}}\r\n',
        b'{"servers": {"one": {"command": "x"}}, "inputs": []}',
        b'{"$schema": "x", "mcpServers": {"one": {"command": "x"}}}',
    ],
)
def test_files_as_editors_save_them_are_read(place: Place, content: bytes) -> None:
    place.write(content)
    assert place.look()["one"].command == "x"
    assert place.configuration.faults == ()


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
    place: Place, content: str | bytes, words: str
) -> None:
    place.write({"kept": {"command": "x"}})
    before = place.look()
    place.write(content)
    assert place.look() == before
    (fault,) = place.configuration.faults
    assert words in fault
    assert str(place.path) in fault
    assert "stay" in fault
    assert "\n" not in fault
    place.write({"mended": {"command": "x"}})
    assert list(place.look()) == ["mended"]
    assert place.configuration.faults == ()
    place.path.unlink()
    assert place.look() == {}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_a_fault_and_never_waited_for(place: Place, make: Callable[[Path], None]) -> None:
    make(place.path)
    assert place.look() == {}
    assert "cannot be read" in place.configuration.faults[0]


def test_a_name_that_stands_twice_is_told_and_the_last_one_counts(place: Place) -> None:
    place.write('{"mcpServers": {"one": {"command": "a"}, "one": {"command": "b"}}, "servers": {"two": {}}}')
    assert [one.command for one in place.configuration.look()] == ["b"]
    twice, beside = place.configuration.faults
    assert '"one" stands there twice' in twice
    assert '"servers" is not read' in beside


def test_nothing_is_read_again_while_nothing_changes(place: Place) -> None:
    place.write({"one": {"command": "x", "env": {"K": "${API_KEY}"}}})
    place.skill("tides", {"sea": {"command": "y"}}, foreign=False)
    first = place.configuration.look()
    assert place.configuration.look() is first
    os.utime(place.path)
    again = place.configuration.look()
    assert again is not first
    assert again == first


def test_writing_keeps_what_else_stands_in_the_file(place: Place) -> None:
    place.write('{"$schema": "x", "servers": {"one": {"command": "ñandú", "timeout": 5}}, "inputs": [1]}')
    add_server(place.path, "two", {"url": "https://example.org"})
    set_enabled(place.path, "one", False)
    assert json.loads(place.path.read_text()) == {
        "$schema": "x",
        "servers": {
            "one": {"command": "ñandú", "timeout": 5, "enabled": False},
            "two": {"url": "https://example.org"},
        },
        "inputs": [1],
    }
    assert "\n  " in place.path.read_text()
    assert "ñandú" in place.path.read_text()
    assert place.path.stat().st_mode & 0o777 == 0o600
    assert remove_server(place.path, "one")
    assert not remove_server(place.path, "one")
    assert list(place.look()) == ["two"]


def test_the_first_server_makes_the_file(place: Place) -> None:
    assert not remove_server(place.path, "one")
    assert not place.path.exists()
    add_server(place.path, "one", {"command": "x"})
    assert json.loads(place.path.read_text()) == {"mcpServers": {"one": {"command": "x"}}}
    with pytest.raises(MappingError, match="already"):
        add_server(place.path, "one", {"command": "y"}, replace=False)
    with pytest.raises(MappingError, match="no server's name"):
        add_server(place.path, "../x", {"command": "y"})
    with pytest.raises(MappingError, match="no server two"):
        set_enabled(place.path, "two", True)


def test_a_broken_file_is_never_written_over(place: Place) -> None:
    place.write('{"mcpServers": {"one": ')
    with pytest.raises(MappingError, match="not JSON"):
        add_server(place.path, "two", {"command": "x"})
    assert place.path.read_text() == '{"mcpServers": {"one": '


def test_a_link_to_the_file_stays_a_link(place: Place) -> None:
    kept = place.folder / "elsewhere.json"
    kept.write_text("{}")
    place.path.symlink_to(kept)
    add_server(place.path, "one", {"command": "x"})
    assert place.path.is_symlink()
    assert "one" in json.loads(kept.read_text())["mcpServers"]


def test_writers_at_once_lose_nothing(place: Place) -> None:
    writers = [
        threading.Thread(target=add_server, args=(place.path, f"s{number}", {"command": "x"}))
        for number in range(20)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert set(place.look()) == {f"s{number}" for number in range(20)}


def test_a_folder_that_a_person_put_on_disk_brings_servers_of_every_kind(place: Place) -> None:
    servers = {"sea": {"command": "python", "args": ["server.py"], "env": {"K": "${API_KEY}"}}}
    path = place.skill("tides", servers, foreign=False)
    one = place.look()["sea"]
    assert (one.origin, one.command, one.folder) == ("skill", "python", str(path.parent))
    assert one.env == (("K", "of-the-operator"),)
    path.unlink()
    assert place.look() == {}


def test_a_skill_from_elsewhere_brings_https_remotes_under_a_name_of_its_own(place: Place) -> None:
    place.configuration.secrets.put("sea", "API_KEY", "of another")
    servers = {
        "sea": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${API_KEY}"}},
        "run": {"command": "sh", "args": ["-c", "id"]},
        "near": {"url": "http://localhost/mcp"},
    }
    place.skill("tides", servers, foreign=True)
    (one,) = place.look().values()
    assert (one.name, one.origin, one.url) == ("tides_sea", "skill", "https://example.org/mcp")
    assert one.missing == ("API_KEY",), "neither the environment nor another server's secrets are its own"
    place.configuration.secrets.put("tides_sea", "API_KEY", "its own")
    assert place.look()["tides_sea"].headers == (("Authorization", "Bearer its own"),)
    assert place.look()["tides_sea"].audience == "owners"


def test_servers_of_the_registry_that_a_skill_wants_are_named_only(place: Place) -> None:
    registry = {"registry": "io.github.ana/sea", "version": "1.2.0"}
    place.skill("tides", {"sea": registry}, foreign=True)
    place.skill("lamps", {"sea": registry}, foreign=False)
    assert place.look() == {}
    assert list(place.configuration.wanted) == [
        Wanted("tides", "io.github.ana/sea", "1.2.0"),
        Wanted("lamps", "io.github.ana/sea", "1.2.0"),
    ]


def test_a_skill_never_takes_the_name_of_the_operators_server(place: Place) -> None:
    place.write({"sea": {"command": "mine"}, "tides_sea": {"command": "mine"}})
    place.skill("tides", {"sea": {"command": "theirs"}}, foreign=False)
    place.skill("lamps", {"sea": {"command": "theirs"}, "a b": {"command": "x"}}, foreign=False)
    long = "n" * 60
    place.skill(
        "long",
        {long: {"url": "https://example.org"}, f"{long}x": {"url": "https://example.org"}},
        foreign=True,
    )
    found = place.look()
    assert found["sea"].command == found["tides_sea"].command == "mine"
    assert found["lamps_sea"].command == "theirs"
    assert "its name cannot be used" in found["a b"].fault
    assert sum(name.startswith("long_n") and len(name) == 41 for name in found) == 2
    (fault,) = place.configuration.faults
    assert "there is another tides_sea" in fault


def test_a_broken_file_of_a_skill_is_named_and_stops_nothing(place: Place) -> None:
    place.write({"one": {"command": "x"}})
    place.skill("tides", {}, foreign=False).write_text("{")
    place.skill("lamps", {"sea": {"command": "x"}}, foreign=False)
    assert set(place.look()) == {"one", "sea"}
    (fault,) = place.configuration.faults
    assert fault.startswith("skill tides: ")


def install(place: Place, **changes: Any) -> InstalledServer:
    """The record of a server, and its entry in the file."""
    package = place.folder / "mcp" / "github" / "package"
    package.mkdir(parents=True, exist_ok=True)
    record = InstalledServer(
        name="github",
        registry_id="io.github.ana/server",
        version="1.2.0",
        subject="a" * 64,
        approved_by="owner",
        installed_at=1.0,
        command=str(package / "server"),
        args=("--stdio",),
        env=(("API_KEY", "${API_KEY}"),),
        folder=str(package),
        secrets=("API_KEY",),
        grants=Grants(network=True),
        trusted=True,
        **changes,
    )
    (package.parent / RECORD).write_text(json.dumps(to_json(record)))
    add_server(place.path, "github", entry_of(record))
    return record


def test_an_installed_server_is_what_was_approved_and_has_its_own_secrets_only(place: Place) -> None:
    install(place)
    one = place.look()["github"]
    assert (one.origin, one.version, one.audience) == ("installed", "1.2.0", "owners")
    assert one.sandboxed
    assert one.trusted
    assert one.grants == Grants(network=True)
    assert one.missing == ("API_KEY",), "the environment is the operator's"
    place.configuration.secrets.put("github", "API_KEY", "its own")
    assert place.look()["github"].env == (("API_KEY", "its own"),)
    set_enabled(place.path, "github", False)
    assert (place.look()["github"].origin, place.look()["github"].enabled) == ("installed", False)


def test_an_entry_that_the_operator_edited_is_theirs_and_gets_no_more_than_was_approved(place: Place) -> None:
    record = install(place)
    changed = {**entry_of(record), "args": ["--stdio", "--all"]}
    add_server(place.path, "github", changed)
    one = place.look()["github"]
    assert (one.origin, one.args, one.trusted) == ("operator", ("--stdio", "--all"), False)
    assert one.sandboxed
    assert one.grants == Grants(network=True)
    assert one.missing == ("API_KEY",)
    add_server(place.path, "github", {**changed, "sandbox": False})
    assert not place.look()["github"].sandboxed


def test_an_installed_server_whose_record_is_spoilt_does_not_become_the_operators(place: Place) -> None:
    install(place)
    assert place.look()["github"].origin == "installed"
    (place.folder / "mcp" / "github" / RECORD).write_text("{")
    one = place.look()["github"]
    assert one.origin == "installed"
    assert "install it again" in one.fault
    assert (one.command, one.env) == ("", ())


def test_what_a_skill_wants_is_named_until_it_is_installed(place: Place) -> None:
    place.skill("tides", {"sea": {"registry": "io.github.ana/server"}}, foreign=True)
    place.look()
    assert [one.registry_id for one in place.configuration.wanted] == ["io.github.ana/server"]
    install(place)
    place.look()
    assert place.configuration.wanted == ()


def test_the_file_of_the_documentation_is_sound(place: Place) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "mcp.md").read_text("utf-8")
    example, *_ = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    place.write(example)
    files, far = place.look().values()
    assert files.env == (("LOG", "info"),)
    assert far.missing == ("FAR_TOKEN",)
    assert (files.fault, far.fault, place.configuration.faults) == ("", "", ())
