"""Which servers a data folder configures: the operator's entries, installed ones, those of skills."""

import json
from typing import Any

from app.mcp.approved import RECORD, InstalledServer, entry_of, to_json
from app.mcp.configuration import add_server, edit_server
from app.processes.sandbox import Grants
from tests.mcp.config_folder import Config

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def test_entries_as_other_hosts_write_them_are_read(config: Config) -> None:
    config.write(
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
            "windsurf": {"serverUrl": "https://example.org/mcp", "transport": "streamable_http"},
            "gemini": {"httpUrl": "http://localhost:9/mcp", "trust": True},
            "roo": {"url": "https://example.org/mcp", "type": "streamableHttp", "env": None, "args": []},
            "ours": {"command": "x", "enabled": False, "audience": "owners", "description": "Does x"},
        }
    )
    found = config.look()
    assert {name: one.fault for name, one in found.items() if one.fault} == {}
    assert found["time"].args == ("mcp-server-time", "--port", "8")
    assert found["claude"].env == (("DEBUG", "true"), ("N", "3"))
    assert [name for name, one in found.items() if not one.enabled] == ["claude", "ours"]
    assert found["cline"].folder == "/tmp"
    assert found["cursor"].headers == (("X-Region", "sur"),)
    assert found["windsurf"].url == "https://example.org/mcp"
    assert found["gemini"].url == "http://localhost:9/mcp"
    assert found["gemini"].trusted
    assert not found["cursor"].trusted
    assert found["ours"].description == "Does x"
    assert {one.origin for one in found.values()} == {"operator"}
    assert not any(one.sandboxed for one in found.values())


FAULTY = [
    ("a text", "no object"),
    ({}, "one of"),
    ({"command": "x", "url": "https://example.org"}, "one of"),
    ({"command": "npx -y server"}, "args"),
    ({"command": "x", "env": {"A": {"b": 1}}}, "env.A: "),
    ({"command": "x", "env": {"A": "${input:token}"}}, "write ${NAME}"),
    ({"command": "x", "env": {"A": "${OPENAI_API_KEY}"}}, "SERVER_OPENAI_API_KEY"),
    ({"command": "x", "args": ["${admin_token:-x}"]}, "setting of this assistant"),
    ({"command": "x", "audience": "friends"}, "audience: "),
    ({"command": "x", "sandbox": {"everything": True}}, "sandbox."),
    ({"url": "https://example.org/sse", "type": "sse"}, "SSE"),
    ({"url": "file:///etc/passwd"}, "only http and https"),
    ({"url": "https://ana:hunter2@example.org/"}, "password"),
    ({"url": "https://example.org", "headers": {"X-Key": "a\r\nHost: b"}}, "line breaks"),
]


def test_a_faulty_entry_says_what_to_mend_and_the_others_work(config: Config) -> None:
    for entry, word in FAULTY:
        config.write({"bad": entry, "good": {"command": "x"}})
        found = config.look()
        assert word in found["bad"].fault
        assert "\n" not in found["bad"].fault
        assert "hunter2" not in found["bad"].fault
        assert found["good"].fault == ""
        assert config.configuration.faults == ()


def test_a_name_that_cannot_be_a_folder_is_a_fault(config: Config) -> None:
    for name in ("", "../up", "ñ", "x" * 5000, "a\n"):
        config.write({name: {"command": "x"}, "good": {"command": "x"}})
        *others, good = config.configuration.look()
        assert good.fault == ""
        assert others[0].fault.startswith("its name cannot be used")
        assert all(len(one.name) <= 100 for one in others)


def test_variables_come_from_its_own_secrets_first_then_from_the_environment(config: Config) -> None:
    entry = {
        "command": "x",
        "args": ["--region=${REGION}", "${MODE:-fast}", "$HOME", "${EMPTY:-}"],
        "env": {"KEY": "${API_KEY}", "BOTH": "${REGION}-${API_KEY}"},
    }
    assert config.one(entry).env == (("KEY", "of-the-operator"), ("BOTH", "sur-of-the-operator"))
    assert config.one(entry).args == ("--region=sur", "fast", "$HOME", "")
    config.configuration.secrets.put("another", "API_KEY", "not mine")
    assert config.look()["one"].env[0] == ("KEY", "of-the-operator")
    config.configuration.secrets.put("one", "API_KEY", "its own")
    assert config.look()["one"].env[0] == ("KEY", "its own")
    config.configuration.secrets.forget("one")
    assert config.look()["one"].env[0] == ("KEY", "of-the-operator")


def test_a_variable_without_a_value_is_missing_until_it_is_given(config: Config) -> None:
    one = config.one(
        {"url": "https://${HOST_NAME}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}", "X": "${TOKEN}"}}
    )
    assert one.missing == ("HOST_NAME", "TOKEN")
    assert one.fault == ""
    config.configuration.secrets.put("one", "HOST_NAME", "example.org")
    config.configuration.secrets.put("one", "TOKEN", "hunter2")
    one = config.look()["one"]
    assert one.missing == ()
    assert one.url == "https://example.org/mcp"
    assert "hunter2" not in repr(one)
    config.configuration.secrets.put("one", "HOST_NAME", "no host")
    assert "cannot be used" in config.look()["one"].fault
    assert "no host" not in config.look()["one"].fault


def test_a_server_with_a_secret_is_for_owners_unless_its_entry_says_otherwise(config: Config) -> None:
    config.write(
        {
            "plain": {"command": "x"},
            "default": {"command": "x", "args": ["${PLACE:-here}"]},
            "given": {"command": "x", "env": {"K": "${API_KEY}"}},
            "missing": {"command": "x", "env": {"K": "${NOT_THERE}"}},
            "literal": {"command": "x", "env": {"API_KEY": "abcdefgh"}},
            "said": {"command": "x", "env": {"K": "${API_KEY}"}, "audience": "everyone"},
        }
    )
    members = {name for name, one in config.look().items() if one.audience == "members"}
    assert members == {"plain", "default", "said"}


def test_a_plain_text_secret_in_an_entry_is_noticed(config: Config) -> None:
    bearer = {"Authorization": "Bearer abcdefgh"}
    for entry, is_exposed in [
        ({"command": "x", "env": {"GITHUB_TOKEN": SECRET, "DEBUG": "1"}}, True),
        ({"command": "x", "args": ["--api-key=abcdef"]}, True),
        ({"command": "x", "args": ["postgresql://me:word@host/db"]}, True),
        ({"url": "https://example.org/mcp?api_key=abcdef"}, True),
        ({"url": "https://example.org", "headers": bearer}, True),
        ({"command": "x", "env": {"TOKEN": "${API_KEY}", "TOKENIZERS_PARALLELISM": "false"}}, False),
        ({"command": "x", "env": {"KEY_FILE": "/run/secrets/key", "MONKEY": "capuchin"}}, False),
    ]:
        assert config.one(entry).exposed == is_exposed
        assert config.one(entry).fault == ""


def test_a_skill_on_disk_brings_servers_of_every_kind(config: Config) -> None:
    servers = {"sea": {"command": "python", "args": ["server.py"], "env": {"K": "${API_KEY}"}}}
    path = config.skill("tides", servers, foreign=False)
    one = config.look()["sea"]
    assert (one.origin, one.command, one.folder) == ("skill", "python", str(path.parent))
    assert one.env == (("K", "of-the-operator"),)
    path.unlink()
    assert config.look() == {}


def test_an_installed_skill_brings_only_https_remotes_with_own_names_and_secrets(config: Config) -> None:
    config.configuration.secrets.put("sea", "API_KEY", "of another")
    servers = {
        "sea": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${API_KEY}"}},
        "run": {"command": "sh", "args": ["-c", "id"]},
        "near": {"url": "http://localhost/mcp"},
    }
    config.skill("tides", servers, foreign=True)
    (one,) = config.look().values()
    assert (one.name, one.origin, one.url) == ("tides_sea", "skill", "https://example.org/mcp")
    assert one.missing == ("API_KEY",), "neither the environment nor another server's secrets are its own"
    config.configuration.secrets.put("tides_sea", "API_KEY", "left by the operator's server of that name")
    assert config.look()["tides_sea"].missing == ("API_KEY",)
    config.configuration.secrets.put(one.kept_as, "API_KEY", "its own")
    assert config.look()["tides_sea"].headers == (("Authorization", "Bearer its own"),)
    assert config.look()["tides_sea"].audience == "owners"
    config.skills[0].installed.source = "https://example.com/other.zip"
    assert config.look()["tides_sea"].missing == ("API_KEY",), "a skill of that name from elsewhere gets none"


def test_a_skill_never_takes_the_name_of_the_operators_server(config: Config) -> None:
    config.write({"sea": {"command": "mine"}, "tides_sea": {"command": "mine"}})
    config.skill("tides", {"sea": {"command": "theirs"}}, foreign=False)
    config.skill("lamps", {"sea": {"command": "theirs"}, "a b": {"command": "x"}}, foreign=False)
    long = "n" * 60
    config.skill(
        "long",
        {long: {"url": "https://example.org"}, f"{long}x": {"url": "https://example.org"}},
        foreign=True,
    )
    found = config.look()
    assert found["sea"].command == found["tides_sea"].command == "mine"
    assert found["lamps_sea"].command == "theirs"
    assert "its name cannot be used" in found["a b"].fault
    assert sum(name.startswith("long_n") and len(name) == 41 for name in found) == 2
    (fault,) = config.configuration.faults
    assert "there is another tides_sea" in fault


def install(config: Config, **changes: Any) -> InstalledServer:
    """The record of a server, and its entry in the file."""
    package = config.folder / "mcp" / "github" / "package"
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
        grants=Grants(network=True),
        trusted=True,
        **changes,
    )
    (package.parent / RECORD).write_text(to_json(record))
    add_server(config.path, "github", entry_of(record))
    return record


def test_an_installed_server_is_what_was_approved_with_only_its_own_secrets(config: Config) -> None:
    install(config)
    one = config.look()["github"]
    assert (one.origin, one.version, one.audience) == ("installed", "1.2.0", "owners")
    assert one.sandboxed
    assert one.trusted
    assert one.grants == Grants(network=True)
    assert one.missing == ("API_KEY",), "the environment is the operator's"
    config.configuration.secrets.put("github", "API_KEY", "its own")
    assert config.look()["github"].env == (("API_KEY", "its own"),)
    edit_server(config.path, "github", enabled=False)
    assert (config.look()["github"].origin, config.look()["github"].enabled) == ("installed", False)
    path = config.folder / "mcp" / "github" / RECORD
    path.write_text(json.dumps({**json.loads(path.read_text()), "older_sdk": True, "lock_sha256": "b"}))
    assert config.look()["github"].origin == "installed", "a record of an earlier version is read"


def test_an_edited_entry_is_the_operators_but_gets_no_more_than_was_approved(config: Config) -> None:
    record = install(config)
    changed = {**entry_of(record), "args": ["--stdio", "--all"]}
    add_server(config.path, "github", changed)
    one = config.look()["github"]
    assert (one.origin, one.args, one.trusted) == ("operator", ("--stdio", "--all"), False)
    assert one.sandboxed
    assert one.grants == Grants(network=True)
    assert one.missing == ("API_KEY",)
    add_server(config.path, "github", {**changed, "sandbox": False})
    assert not config.look()["github"].sandboxed


def test_an_installed_server_with_a_broken_record_does_not_become_the_operators(config: Config) -> None:
    install(config)
    assert config.look()["github"].origin == "installed"
    (config.folder / "mcp" / "github" / RECORD).write_text("{")
    one = config.look()["github"]
    assert one.origin == "installed"
    assert "install it again" in one.fault
    assert (one.command, one.env) == ("", ())


def test_a_broken_mcp_json_of_a_skill_is_a_fault_of_that_skill_alone(config: Config) -> None:
    config.write({"one": {"command": "x"}})
    config.skill("tides", {}, foreign=False).write_text("{")
    config.skill("lamps", {"sea": {"command": "x"}}, foreign=False)
    assert set(config.look()) == {"one", "sea"}
    (fault,) = config.configuration.faults
    assert fault.startswith("skill tides: ")
