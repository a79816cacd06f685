"""An entry as hosts write it: read, its variables filled in, its faults named."""

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.written import Written

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def test_entries_as_other_hosts_write_them_are_read(written: Written) -> None:
    written.write(
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
    found = written.look()
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
def test_a_faulty_entry_says_what_to_mend_and_stops_no_other(written: Written, entry: Any, word: str) -> None:
    written.write({"bad": entry, "good": {"command": "x"}})
    found = written.look()
    assert word in found["bad"].fault
    assert "\n" not in found["bad"].fault
    assert "hunter2" not in found["bad"].fault
    assert found["good"].fault == ""
    assert written.configuration.faults == ()


@pytest.mark.parametrize("name", ["", "-x", "a b", "../up", "a/b", "ñ", "x" * 42, "x" * 5000, "a\n"])
def test_a_name_that_cannot_be_a_folder_is_a_fault(written: Written, name: str) -> None:
    written.write({name: {"command": "x"}, "good": {"command": "x"}})
    *others, good = written.configuration.look()
    assert good.fault == ""
    assert others[0].fault.startswith("its name cannot be used")
    assert all(len(one.name) <= 100 for one in others)


def test_variables_come_from_its_own_secrets_first_then_from_the_environment(written: Written) -> None:
    entry = {
        "command": "x",
        "args": ["--region=${REGION}", "${MODE:-fast}", "$HOME", "${EMPTY:-}"],
        "env": {"KEY": "${API_KEY}", "BOTH": "${REGION}-${API_KEY}"},
    }
    assert written.one(entry).env == (("KEY", "of-the-operator"), ("BOTH", "sur-of-the-operator"))
    assert written.one(entry).args == ("--region=sur", "fast", "$HOME", "")
    written.configuration.secrets.put("another", "API_KEY", "not mine")
    assert written.look()["one"].env[0] == ("KEY", "of-the-operator")
    written.configuration.secrets.put("one", "API_KEY", "its own")
    assert written.look()["one"].env[0] == ("KEY", "its own")
    written.configuration.secrets.forget("one")
    assert written.look()["one"].env[0] == ("KEY", "of-the-operator")


def test_what_nobody_gave_is_missing_until_it_is_given(written: Written) -> None:
    one = written.one(
        {"url": "https://${HOST_NAME}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}", "X": "${TOKEN}"}}
    )
    assert one.missing == ("HOST_NAME", "TOKEN")
    assert one.fault == ""
    written.configuration.secrets.put("one", "HOST_NAME", "example.org")
    written.configuration.secrets.put("one", "TOKEN", "hunter2")
    one = written.look()["one"]
    assert one.missing == ()
    assert one.url == "https://example.org/mcp"
    assert "hunter2" not in repr(one)
    written.configuration.secrets.put("one", "HOST_NAME", "no host")
    assert "cannot be used" in written.look()["one"].fault
    assert "no host" not in written.look()["one"].fault


def test_who_holds_a_secret_is_for_owners_unless_the_file_says_other(written: Written) -> None:
    written.write(
        {
            "plain": {"command": "x"},
            "default": {"command": "x", "args": ["${PLACE:-here}"]},
            "given": {"command": "x", "env": {"K": "${API_KEY}"}},
            "missing": {"command": "x", "env": {"K": "${NOT_THERE}"}},
            "literal": {"command": "x", "env": {"API_KEY": "abcdefgh"}},
            "said": {"command": "x", "env": {"K": "${API_KEY}"}, "audience": "everyone"},
        }
    )
    everyone = {name for name, one in written.look().items() if one.audience == "everyone"}
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
    written: Written, entry: Any, places: tuple[str, ...]
) -> None:
    assert written.one(entry).exposed == places
    assert written.one(entry).fault == ""


def test_the_sandbox_of_an_own_server_has_the_rights_that_its_entry_names(written: Written) -> None:
    one = written.one({"command": "x", "cwd": "/srv", "sandbox": {"network": True, "write": ["/srv/notes"]}})
    assert one.sandboxed
    assert one.grants.network
    assert not one.grants.programs
    assert one.grants.folders_write == (Path("/srv/notes"),)
    assert written.one({"command": "x", "cwd": "/srv", "sandbox": True}).sandboxed
