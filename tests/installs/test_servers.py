"""Servers installed from registries on this machine, removed, and what a kill in between leaves."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.installs.card_text import CardWriter
from app.installs.entries import read_entry
from app.installs.pipeline import Approval, InstallError, keep_plan
from app.installs.servers import ServerInstaller
from app.mcp import approved
from app.mcp.approved import digest, integrity_fault
from app.mcp.configuration import Configuration, Secrets
from app.processes.sandbox import Sandbox
from app.settings import Settings
from tests.deep import make_deep
from tests.installs.made_packages import NpmRegistry, make_sdist, make_wheel

pytestmark = pytest.mark.slow

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


class Place:
    """A data folder, an installer for it, and entries to install."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir(exist_ok=True)
        self.config = self.data / "mcp_servers.json"
        self.settings = Settings(
            _env_file=None,
            DATA_DIR=self.data,
            DATABASE_URL=f"sqlite:///{self.data}/recado.db",
            mcp_config_path=self.config,
            **{"free_space_mb": 0} | more,
        )
        self.sandbox = Sandbox(self.settings)
        self.installer = ServerInstaller(self.settings, self.sandbox)

    def entry(self, kind: str, identifier: str, version: str = "1.0.0", **more: Any) -> Any:
        package = {
            "registryType": kind,
            "identifier": identifier,
            "version": version,
            "transport": {"type": "stdio"},
        }
        return read_entry(
            {"name": f"io.github.ana/{identifier.rpartition('/')[2]}", "packages": [package | more]}
        )

    def plan(self, entry: Any, name: str = "") -> approved.InstalledServer:
        return asyncio.run(self.installer.propose(entry, name))

    def commit(
        self, plan: approved.InstalledServer, approved_by: str = "p0", trusted: bool = False
    ) -> approved.InstalledServer:
        return asyncio.run(self.installer.commit(Approval(plan.subject, approved_by, trusted)))

    def install(self, entry: Any) -> approved.InstalledServer:
        return self.commit(self.plan(entry))

    def refusal(self, entry: Any) -> InstallError:
        with pytest.raises(InstallError) as raised:
            self.install(entry)
        return raised.value

    def entries(self) -> Any:
        return json.loads(self.config.read_text())["mcpServers"] if self.config.exists() else {}

    def answer(self, record: approved.InstalledServer) -> str:
        """Start the installed server as ours would; give the name by which it answers."""
        command, environment = self.sandbox.server_command(approved.to_definition(record, {}))
        asked = json.dumps(INITIALIZE) + "\n"
        done = subprocess.run(
            command, env=environment, input=asked, capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["result"]["serverInfo"]["name"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    fault = made.sandbox.probe()
    if fault:
        pytest.skip(fault)
    return made


@pytest.fixture
def npm(monkeypatch: pytest.MonkeyPatch) -> Iterator[NpmRegistry]:
    registry = NpmRegistry()
    monkeypatch.setenv("npm_config_registry", registry.url)
    yield registry
    registry.stop()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def test_a_package_of_npm_is_installed_pinned_without_its_scripts_and_not_started_once_changed(
    place: Place, npm: NpmRegistry
) -> None:
    names = ("preinstall", "install", "postinstall", "prepare", "prepublish")
    run = dict.fromkeys(names, f"touch {place.folder}/ran")
    npm.add("left", "2.0.0", scripts=run, gypfile=True, files={"index.js": "", "binding.gyp": "{}"})
    npm.add("@ana/x-mcp", "1.0.0", scripts=run, dependencies={"left": "^2.0.0"})
    npm.add("@ana/x-mcp", "1.1.0")
    record = place.install(place.entry("npm", "@ana/x-mcp"))
    folder = place.data / "mcp/x" / Path(record.folder).name
    program = folder / "node_modules/@ana/x-mcp/index.js"
    assert (record.command, record.args[-1]) == ("node", str(program))
    lock = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert lock["node_modules/@ana/x-mcp"]["version"] == "1.0.0"
    assert all(one["integrity"].startswith("sha512-") for path, one in lock.items() if path)
    assert place.answer(record) == "x"
    assert not (place.folder / "ran").exists()
    assert integrity_fault(record.folder, record.sha256) == ""
    times, text = program.stat(), program.read_text()
    program.write_text(text.replace("x", "y"))
    os.utime(program, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "was changed" in integrity_fault(record.folder, record.sha256)
    program.write_text(text)
    assert integrity_fault(record.folder, record.sha256) == ""
    (program.parent / "more.js").symlink_to("/etc/passwd")
    assert "link out of the package" in integrity_fault(record.folder, record.sha256)


def test_a_package_of_pypi_is_installed_pinned_with_hashes_and_started_directly(
    place: Place, wheels: Path
) -> None:
    make_wheel(wheels, "left", "2.0.0")
    make_wheel(wheels, "x-mcp", "1.0.0", requires=("left>=1",))
    make_wheel(wheels, "x-mcp", "1.1.0")
    record = place.install(place.entry("pypi", "x-mcp"))
    folder = Path(record.folder)
    assert (record.command, record.args) == (f"{folder}/bin/python", (f"{folder}/bin/x-mcp",))
    lock = (folder / "requirements.lock").read_text().splitlines()
    assert [line.split(" --hash=sha256:")[0] for line in lock] == ["left==2.0.0", "x-mcp==1.0.0"]
    assert all(len(line.split("sha256:")[1]) == 64 for line in lock)
    assert place.answer(record) == "x"


def test_what_was_approved_stands_in_the_operators_file_where_a_word_of_theirs_counts(
    place: Place, npm: NpmRegistry
) -> None:
    npm.add("x-mcp")
    wanted = [{"name": "X_TOKEN", "isRequired": True}, {"name": "LEVEL", "default": "info"}]
    entry = place.entry("npm", "x-mcp", environmentVariables=wanted)
    plan = place.plan(entry)
    record = place.commit(plan, trusted=True)
    assert (record.subject, record.approved_by, record.trusted) == (plan.subject, "p0", True)
    assert place.commit(plan, "p1") == record  # a second time is the same as once
    assert approved.read_record(place.data, "x") == record
    assert approved.records(place.data) == [record]
    assert place.entries()["x"] == {
        "command": "node",
        "args": list(record.args),
        "cwd": record.folder,
        "env": {"X_TOKEN": "${X_TOKEN}", "LEVEL": "info"},
        "sandbox": {"network": True},
        "enabled": True,
    }
    assert stat.S_IMODE(place.config.stat().st_mode) == 0o600
    assert stat.S_IMODE((place.data / "mcp/x").stat().st_mode) == 0o700
    (definition,) = Configuration(place.settings, {"X_TOKEN": "of the operator"}).look()
    assert (definition.origin, definition.sandboxed, definition.audience) == ("installed", True, "owners")
    assert definition.missing == ("X_TOKEN",)
    Secrets(place.data).put("x", "X_TOKEN", "word")
    (definition,) = Configuration(place.settings, {}).look()
    assert definition.env == (("X_TOKEN", "word"), ("LEVEL", "info"))
    assert definition.missing == ()
    off = place.entries()["x"] | {"enabled": False}
    assert approved.agrees(record, off)
    assert not approved.agrees(record, off | {"args": [*record.args, "--more"]})
    place.config.write_text('{"mcpServers": {}}')
    Place(place.folder).installer.tidy()
    assert place.entries() == {}
    assert approved.read_record(place.data, "x") == record


def test_an_update_keeps_the_data_and_what_changed_since_its_card_was_shown_asks_again(
    place: Place, npm: NpmRegistry
) -> None:
    npm.add("x-mcp", "1.0.0")
    npm.add("x-mcp", "2.0.0", files={"index.js": "// two"})
    of_another = place.plan(place.entry("npm", "x-mcp", "2.0.0"))
    first = place.install(place.entry("npm", "x-mcp", "1.0.0"))
    data = place.data / "mcp/x/data"
    data.mkdir()
    (data / "kept").write_text("x")
    Secrets(place.data).put("x", "WORD", "x")
    unaware = place.plan(place.entry("npm", "x-mcp", "2.0.0"))
    assert (first.updated_from, unaware.edited, unaware.replaces) == ("", False, first.subject)
    edited = {"x": place.entries()["x"] | {"env": {"MORE": "1"}}}
    place.config.write_text(json.dumps({"mcpServers": edited}))
    for plan in (of_another, unaware):
        with pytest.raises(InstallError, match="changed meanwhile"):
            place.commit(plan)
    Place(place.folder).installer.tidy()
    assert place.entries() == edited
    plan = place.plan(place.entry("npm", "x-mcp", "2.0.0"))
    assert "What you changed in its entry" in CardWriter(place.settings).whole("en", plan).text
    second = place.commit(plan)
    assert place.entries()["x"] == approved.entry_of(second)
    assert second.updated_from == "1.0.0"
    assert (data / "kept").exists()
    assert Secrets(place.data).get("x") == {"WORD": "x"}
    assert [path.name for path in (place.data / "mcp/x").glob("package-*")] == [Path(second.folder).name]


def test_nothing_but_a_kept_plan_is_installed(place: Place) -> None:
    for subject in ("", "x", "../../etc", "0" * 64):
        with pytest.raises(InstallError, match="ask again"):
            asyncio.run(place.installer.commit(Approval(subject, "p0")))
    plan = place.plan(place.entry("npm", "x-mcp"))
    kept = place.data / "quarantine" / plan.subject / "plan.json"
    kept.write_text(kept.read_text().replace("x-mcp", "y-mcp"))
    with pytest.raises(InstallError, match="ask again"):
        place.commit(plan)


@pytest.mark.usefixtures("deep_ground")
def test_a_server_is_removed_with_all_that_is_its_own_and_deeper_than_any_path(
    place: Place, npm: NpmRegistry
) -> None:
    npm.add("x-mcp")
    place.config.write_text('{"mcpServers": {"other": {"command": "true"}}}')
    place.install(place.entry("npm", "x-mcp"))
    Secrets(place.data).put("x", "WORD", "x")
    (place.data / "mcp/x/pins.json").write_text("{}")
    make_deep(place.data / "mcp/x/data")
    with pytest.raises(OSError, match="too long"):
        digest(place.data / "mcp/x/data")
    asyncio.run(place.installer.remove("x"))
    assert list(place.entries()) == ["other"]
    assert approved.records(place.data) == []
    assert list((place.data / "mcp").iterdir()) == []
    assert Secrets(place.data).get("x") == {}
    for name in ("x", "other", "../mcp"):
        with pytest.raises((InstallError, ValueError)):
            asyncio.run(place.installer.remove(name))
    make_deep(place.data / "mcp/.y-0123")
    Place(place.folder).installer.tidy()
    assert list((place.data / "mcp").iterdir()) == []


def test_the_hash_of_a_package_stays_the_same_in_the_next_version(tmp_path: Path) -> None:
    """Else no server that an owner approved would start after an update."""
    for place in ("a/one.txt", "a/deep/two.txt", "b/three.txt", "c.txt"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(place)
        path.chmod(0o644)
    assert digest(tmp_path) == "c63d7c4f7464f111f6bd44b3eed77b888c40eaa9f09ebc93c82c033dc8952f1b"


def test_a_name_that_is_taken_or_none_is_refused_also_where_only_its_secrets_are_left(place: Place) -> None:
    place.config.write_text('{"mcpServers": {"x": {"command": "true"}}}')
    assert place.plan(place.entry("npm", "x-mcp")).name == "x-2"
    with pytest.raises(InstallError, match="already"):
        place.plan(place.entry("npm", "x-mcp"), "x")
    Secrets(place.settings.data_dir).put("y", "TOKEN", "of another")
    assert place.plan(place.entry("npm", "y-mcp")).name == "y-2"
    assert place.plan(place.entry("npm", "z-mcp"), "y").name == "y"
    for name in ("../x", "a b", ".x", "x" * 60):
        with pytest.raises(InstallError, match="no name for a server"):
            place.plan(place.entry("npm", "x-mcp"), name)


def test_where_the_operators_file_is_broken_nothing_changes(place: Place, npm: NpmRegistry) -> None:
    npm.add("x-mcp")
    plan = place.plan(place.entry("npm", "x-mcp"))
    place.config.write_text("{")
    with pytest.raises(InstallError, match="not JSON"):
        place.commit(plan)
    assert place.config.read_text() == "{"
    assert list((place.data / "mcp").iterdir()) == []


HOSTILE_NPM: dict[str, tuple[dict[str, Any], str]] = {
    "a program outside of it": ({"bin": "../../../../../../../../bin/sh"}, "NOT_INSTALLABLE"),
    "a program of another package": (
        {"bin": "../left/index.js", "dependencies": {"left": "2"}},
        "NOT_INSTALLABLE",
    ),
    "many programs, none of its name": ({"bin": {"a": "a.js", "b": "b.js"}}, "NOT_INSTALLABLE"),
    "a program that is no text": ({"bin": {"x-mcp": 7}}, "NOT_INSTALLABLE"),
    "a dependency of git": ({"dependencies": {"y": "git+https://127.0.0.1:1/y.git"}}, ""),
    "a dependency of GitHub": ({"dependencies": {"y": "github:ana/y#" + "a" * 40}}, ""),
    "a dependency of this disk": ({"dependencies": {"y": "file:/etc"}}, ""),
    "a version that is not there": ({"version": "0.9.0"}, "NOT_FOUND"),
}


def test_of_a_hostile_package_of_npm_nothing_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {}
    for case, (package, code) in HOSTILE_NPM.items():
        registry = NpmRegistry()
        monkeypatch.setenv("npm_config_registry", registry.url)
        registry.add("left", "2.0.0")
        registry.add("x-mcp", **package)
        error = place.refusal(place.entry("npm", "x-mcp"))
        registry.stop()
        if (code and error.code != code) or place.entries() or list((place.data / "mcp").iterdir()):
            kept[case] = str(error)
    assert kept == {}


def test_no_repository_is_fetched_or_prepared(place: Place, npm: NpmRegistry) -> None:
    repository = place.folder / "repository"
    repository.mkdir()
    prepare = {"prepare": f"touch {place.folder}/ran"}
    (repository / "package.json").write_text(
        json.dumps({"name": "y", "version": "1.0.0", "scripts": prepare})
    )
    ana = ("-c", "user.name=Ana", "-c", "user.email=ana@example.com")
    for command in (("init", "-q"), ("add", "."), (*ana, "commit", "-q", "-m", "Begin")):
        subprocess.run(["git", *command], cwd=repository, check=True, timeout=30)
    npm.add("x-mcp", dependencies={"y": f"git+file://{repository}"})
    place.refusal(place.entry("npm", "x-mcp"))
    assert not (place.folder / "ran").exists()
    assert list((place.data / "mcp").iterdir()) == []


def test_what_is_not_the_file_that_the_registry_lists_is_refused(place: Place, npm: NpmRegistry) -> None:
    npm.add("x-mcp")
    npm.replace_archives(b"something else")
    assert place.refusal(place.entry("npm", "x-mcp")).code == "FAILED"


def test_nothing_of_a_package_for_python_is_built(place: Place, wheels: Path) -> None:
    setup = f"import pathlib; pathlib.Path({str(place.folder / 'ran')!r}).touch()"
    source = make_sdist(wheels, "source-only", "1.0.0", setup)
    make_wheel(wheels, "x-mcp", requires=("source-only",))
    make_wheel(wheels, "y-mcp", requires=(f"source-only @ {source.as_uri()}",))
    make_wheel(wheels, "z-mcp", requires=("source-only @ git+https://127.0.0.1:1/x.git",))
    codes = [
        place.refusal(place.entry("pypi", name)).code for name in ("source-only", "x-mcp", "y-mcp", "z-mcp")
    ]
    assert codes == ["NOT_FOUND", "NOT_FOUND", "FAILED", "FAILED"]
    assert not (place.folder / "ran").exists()
    assert list((place.data / "mcp").iterdir()) == []


def test_of_a_package_without_a_program_of_its_name_nothing_stays(place: Place, wheels: Path) -> None:
    for scripts in ({}, {"a": "x_mcp:main", "b": "x_mcp:main"}, {"../../../x": "x_mcp:main"}):
        make_wheel(wheels, "x-mcp", scripts=scripts)
        assert place.refusal(place.entry("pypi", "x-mcp")).code in ("NOT_INSTALLABLE", "FAILED")
        assert list((place.data / "mcp").iterdir()) == []


def test_a_server_gets_the_older_sdk_unless_it_asks_for_the_newest(place: Place, wheels: Path) -> None:
    make_wheel(wheels, "mcp", "1.9.0", scripts={})
    make_wheel(wheels, "mcp", "2.3.0", scripts={})
    make_wheel(wheels, "old-mcp", requires=("mcp>=1",))
    make_wheel(wheels, "new-mcp", requires=("mcp>=2",))
    make_wheel(wheels, "bare-mcp")
    for name, pinned in {"old-mcp": "mcp==1.9.0 ", "new-mcp": "mcp==2.3.0 ", "bare-mcp": ""}.items():
        record = place.install(place.entry("pypi", name))
        lock = Path(record.folder, "requirements.lock").read_text().splitlines()
        assert len(lock) == (2 if pinned else 1)
        assert any(line.startswith(pinned) for line in lock)
        assert sorted(path.name for path in Path(record.folder).glob("*.txt")) == []


def fake_npm(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put another program in the place of npm."""
    (folder / "programs").mkdir()
    program = folder / "programs" / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_npm_and_pip_are_given_what_the_operator_set_up_and_nothing_of_ours(
    place: Place, npm: NpmRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_npm(tmp_path, monkeypatch, f"env > {tmp_path}/seen\nexit 1")
    monkeypatch.setenv("OPENAI_API_KEY", "of ours")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:1")
    monkeypatch.setenv("NODE_OPTIONS", "--require=/x")
    monkeypatch.setenv("npm_config_ignore_scripts", "false")
    place.refusal(place.entry("npm", "x-mcp"))
    seen = (tmp_path / "seen").read_text()
    assert f"npm_config_registry={npm.url}" in seen
    assert "HTTPS_PROXY=http://proxy.example:1" in seen
    assert "of ours" not in seen
    assert "NODE_OPTIONS" not in seen
    assert "npm_config_ignore_scripts" not in seen


def test_an_install_that_is_given_up_leaves_no_process_and_no_file(
    place: Place, npm: NpmRegistry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    fake_npm(tmp_path, monkeypatch, f"sleep 1000 &\necho $! > {pid}.new && mv {pid}.new {pid}\nwait")

    async def give_up() -> None:
        plan = await place.installer.propose(place.entry("npm", "x-mcp"))
        installing = asyncio.create_task(place.installer.commit(Approval(plan.subject, "p0")))
        async with asyncio.timeout(20):
            while not pid.exists():
                await asyncio.sleep(0.02)
        installing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await installing

    asyncio.run(give_up())
    status = Path(f"/proc/{pid.read_text().strip()}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] in "ZX"
    assert list((place.data / "mcp").iterdir()) == []


def test_a_package_that_unpacks_to_too_much_is_stopped(place: Place, wheels: Path) -> None:
    make_wheel(wheels, "x-mcp", padding=450)
    assert place.refusal(place.entry("pypi", "x-mcp")).code == "TOO_LARGE"
    assert list((place.data / "mcp").iterdir()) == []


def test_nothing_is_installed_where_the_disk_is_full(place: Place, npm: NpmRegistry) -> None:
    npm.add("x-mcp")
    full = Place(place.folder, free_space_mb=10**9)
    error = full.refusal(full.entry("npm", "x-mcp"))
    assert error.code == "NO_SPACE"
    assert list((place.data / "mcp").iterdir()) == []


def test_without_a_sandbox_no_package_is_installed_but_a_remote_is(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    without = Place(place.folder)
    assert without.refusal(without.entry("pypi", "x-mcp")).code == "NO_SANDBOX"
    assert without.refusal(without.entry("npm", "x-mcp")).code == "NO_INSTALLER"
    remote = {"type": "streamable-http", "url": "https://mcp.example.com/x"}
    record = without.install(read_entry({"name": "com.example/r", "remotes": [remote]}))
    assert (record.url, record.folder, record.command) == ("https://mcp.example.com/x", "", "")
    assert without.entries()["r"] == {"type": "http", "url": "https://mcp.example.com/x", "enabled": True}
    (definition,) = Configuration(without.settings, {}).look()
    assert (definition.origin, definition.sandboxed, definition.fault) == ("installed", False, "")


def test_an_install_that_was_killed_after_its_record_is_done_again(place: Place, npm: NpmRegistry) -> None:
    npm.add("x-mcp")
    plan = place.plan(place.entry("npm", "x-mcp"))
    killed, written = place.commit(plan), place.entries()
    place.config.unlink()
    assert keep_plan(place.data, approved.to_json(replace(plan, subject=""))) == plan.subject
    record = place.commit(plan)
    assert place.entries().keys() == written.keys()
    assert (record.subject, record.updated_from) == (killed.subject, "")
    home = place.data / "mcp/x"
    (home / ".staging-0").mkdir()
    (home / "package-0").mkdir()
    Place(place.folder).installer.tidy()
    assert sorted(path.name for path in home.iterdir()) == ["installed.json", Path(record.folder).name]
    assert place.answer(record) == "x"
