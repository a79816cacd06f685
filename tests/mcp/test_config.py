"""Servers that skills bring and that were installed, beside the operator's own."""

import json
from pathlib import Path
from typing import Any

from app.installs.quarantine import unpack
from app.mcp.configuration import WantedServer
from app.mcp.installed import RECORD, InstalledServer, entry_of, to_json
from app.mcp.mapping_file import add_server, set_enabled
from app.mcp.secrets import Secrets
from app.mcp.skill_servers import forget_unused_secrets, secret_names
from app.processes.sandbox import Grants
from tests.installs.archives import SKILL, install_tree, zipped
from tests.mcp.written import Written


def test_a_folder_that_a_person_put_on_disk_brings_servers_of_every_kind(written: Written) -> None:
    servers = {"sea": {"command": "python", "args": ["server.py"], "env": {"K": "${API_KEY}"}}}
    path = written.skill("tides", servers, foreign=False)
    one = written.look()["sea"]
    assert (one.origin, one.command, one.folder) == ("skill", "python", str(path.parent))
    assert one.env == (("K", "of-the-operator"),)
    path.unlink()
    assert written.look() == {}


def test_a_skill_from_elsewhere_brings_https_remotes_under_a_name_of_its_own(written: Written) -> None:
    written.configuration.secrets.put("sea", "API_KEY", "of another")
    servers = {
        "sea": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${API_KEY}"}},
        "run": {"command": "sh", "args": ["-c", "id"]},
        "near": {"url": "http://localhost/mcp"},
    }
    written.skill("tides", servers, foreign=True)
    (one,) = written.look().values()
    assert (one.name, one.origin, one.url) == ("tides_sea", "skill", "https://example.org/mcp")
    assert one.missing == ("API_KEY",), "neither the environment nor another server's secrets are its own"
    written.configuration.secrets.put("tides_sea", "API_KEY", "left by the operator's server of that name")
    assert written.look()["tides_sea"].missing == ("API_KEY",)
    written.configuration.secrets.put(one.kept_as, "API_KEY", "its own")
    assert written.look()["tides_sea"].headers == (("Authorization", "Bearer its own"),)
    assert written.look()["tides_sea"].audience == "owners"
    written.skills[0].installed.source = "https://example.com/other.zip"
    assert written.look()["tides_sea"].missing == ("API_KEY",), (
        "a skill of that name from elsewhere gets none"
    )


def test_secrets_that_a_changed_skill_has_no_server_for_are_forgotten(tmp_path: Path) -> None:
    def come(source: str, *names: str) -> None:
        servers = {name: {"url": "https://example.org/mcp", "headers": {"X-Key": "${KEY}"}} for name in names}
        content = json.dumps({"mcpServers": servers}).encode()
        tree = unpack(zipped({"SKILL.md": SKILL, "mcp.json": content}), source)
        before = secret_names(tmp_path, "demo")
        install_tree(tmp_path, tree)
        forget_unused_secrets(tmp_path, "demo", before)

    def have() -> list[str]:
        return sorted(path.name for path in secrets.folder.iterdir() if path.name[0] != ".")

    secrets = Secrets(tmp_path)
    come("https://example.org/demo.zip", "sea", "lake")
    kept = secret_names(tmp_path, "demo")
    for name in ("demo_sea", *kept):
        secrets.put(name, "KEY", "kept")
    come("https://example.org/demo.zip", "sea", "pond")
    assert len(have()) == 2, "those of the lake are gone"
    come("https://example.com/other.zip", "sea")
    assert have() == ["demo_sea"], "it comes from another address"


def test_secrets_stay_where_nobody_can_tell_whose_they_are(tmp_path: Path) -> None:
    tree = unpack(zipped({"SKILL.md": SKILL, "mcp.json": b"{}"}), "https://example.org/demo.zip")
    Secrets(tmp_path).put("skill-0123", "KEY", "kept")
    made = install_tree(tmp_path, tree)
    made.folder.chmod(0o700)
    (made.folder / "mcp.json").unlink()
    (made.folder / "mcp.json").mkdir()
    assert secret_names(tmp_path, "demo") == frozenset()
    forget_unused_secrets(tmp_path, "demo", frozenset({"skill-0123"}))
    assert Secrets(tmp_path).get("skill-0123") == {"KEY": "kept"}


def test_a_skill_from_elsewhere_whose_address_is_lost_stays_one_from_elsewhere(written: Written) -> None:
    written.skill("tides", {"sea": {"command": "sh", "env": {"K": "${API_KEY}"}}}, foreign=True)
    written.skills[0].installed.source = ""
    assert written.look() == {}


def test_servers_of_the_registry_that_a_skill_wants_are_named_only(written: Written) -> None:
    registry = {"registry": "io.github.ana/sea", "version": "1.2.0"}
    written.skill("tides", {"sea": registry}, foreign=True)
    written.skill("lamps", {"sea": registry}, foreign=False)
    assert written.look() == {}
    assert list(written.configuration.wanted) == [
        WantedServer("tides", "io.github.ana/sea", "1.2.0"),
        WantedServer("lamps", "io.github.ana/sea", "1.2.0"),
    ]


def test_a_skill_never_takes_the_name_of_the_operators_server(written: Written) -> None:
    written.write({"sea": {"command": "mine"}, "tides_sea": {"command": "mine"}})
    written.skill("tides", {"sea": {"command": "theirs"}}, foreign=False)
    written.skill("lamps", {"sea": {"command": "theirs"}, "a b": {"command": "x"}}, foreign=False)
    long = "n" * 60
    written.skill(
        "long",
        {long: {"url": "https://example.org"}, f"{long}x": {"url": "https://example.org"}},
        foreign=True,
    )
    found = written.look()
    assert found["sea"].command == found["tides_sea"].command == "mine"
    assert found["lamps_sea"].command == "theirs"
    assert "its name cannot be used" in found["a b"].fault
    assert sum(name.startswith("long_n") and len(name) == 41 for name in found) == 2
    (fault,) = written.configuration.faults
    assert "there is another tides_sea" in fault


def test_a_broken_file_of_a_skill_is_named_and_stops_nothing(written: Written) -> None:
    written.write({"one": {"command": "x"}})
    written.skill("tides", {}, foreign=False).write_text("{")
    written.skill("lamps", {"sea": {"command": "x"}}, foreign=False)
    assert set(written.look()) == {"one", "sea"}
    (fault,) = written.configuration.faults
    assert fault.startswith("skill tides: ")


def install(written: Written, **changes: Any) -> InstalledServer:
    """The record of a server, and its entry in the file."""
    package = written.folder / "mcp" / "github" / "package"
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
    add_server(written.path, "github", entry_of(record))
    return record


def test_an_installed_server_is_what_was_approved_and_has_its_own_secrets_only(written: Written) -> None:
    install(written)
    one = written.look()["github"]
    assert (one.origin, one.version, one.audience) == ("installed", "1.2.0", "owners")
    assert one.sandboxed
    assert one.trusted
    assert one.grants == Grants(network=True)
    assert one.missing == ("API_KEY",), "the environment is the operator's"
    written.configuration.secrets.put("github", "API_KEY", "its own")
    assert written.look()["github"].env == (("API_KEY", "its own"),)
    set_enabled(written.path, "github", False)
    assert (written.look()["github"].origin, written.look()["github"].enabled) == ("installed", False)


def test_an_entry_that_the_operator_edited_is_theirs_and_gets_no_more_than_was_approved(
    written: Written,
) -> None:
    record = install(written)
    changed = {**entry_of(record), "args": ["--stdio", "--all"]}
    add_server(written.path, "github", changed)
    one = written.look()["github"]
    assert (one.origin, one.args, one.trusted) == ("operator", ("--stdio", "--all"), False)
    assert one.sandboxed
    assert one.grants == Grants(network=True)
    assert one.missing == ("API_KEY",)
    add_server(written.path, "github", {**changed, "sandbox": False})
    assert not written.look()["github"].sandboxed


def test_an_installed_server_whose_record_is_spoilt_does_not_become_the_operators(written: Written) -> None:
    install(written)
    assert written.look()["github"].origin == "installed"
    (written.folder / "mcp" / "github" / RECORD).write_text("{")
    one = written.look()["github"]
    assert one.origin == "installed"
    assert "install it again" in one.fault
    assert (one.command, one.env) == ("", ())


def test_what_a_skill_wants_is_named_until_it_is_installed(written: Written) -> None:
    written.skill("tides", {"sea": {"registry": "io.github.ana/server"}}, foreign=True)
    written.look()
    assert [one.registry_id for one in written.configuration.wanted] == ["io.github.ana/server"]
    install(written)
    written.look()
    assert written.configuration.wanted == ()
