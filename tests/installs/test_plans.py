"""The plan of an install: the command, the values that it is given, and its rights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.installs.entries import Entry, read_entry
from app.installs.pipeline import InstallError
from app.installs.servers import make_plan, short_name
from app.mcp.approved import InstalledServer, from_json, to_json
from app.processes.sandbox import Grants

HOME = Path("/data/mcp/x/data")
WORKSPACE = Path("/srv/workspace")


def entry_of(
    *, name: str = "io.github.ana/x-mcp", package: Mapping[str, Any] | None = None, **more: Any
) -> Entry:
    """An entry with one npm package, of which `package` says more."""
    known = {
        "registryType": "npm",
        "identifier": "@ana/x",
        "version": "1.2.3",
        "transport": {"type": "stdio"},
    }
    packages = [] if package is None else [{**known, **package}]
    entry = read_entry({"name": name, "description": "X", "version": "9", "packages": packages, **more})
    assert entry is not None
    return entry


def plan_of(entry: Entry, values: Mapping[str, str] | None = None, **more: Any) -> InstalledServer:
    return make_plan(entry, "x", home=HOME, workspace=WORKSPACE, values=values or {}, **more)


def refusal(entry: Entry, values: Mapping[str, str] | None = None) -> str:
    with pytest.raises(InstallError) as raised:
        plan_of(entry, values)
    return raised.value.code


def positional(**more: Any) -> dict[str, Any]:
    return {"packageArguments": [{"type": "positional", "valueHint": "place", **more}]}


def named(flag: str, **more: Any) -> dict[str, Any]:
    return {"packageArguments": [{"type": "named", "name": flag, **more}]}


def variable(name: str, **more: Any) -> dict[str, Any]:
    return {"environmentVariables": [{"name": name, **more}]}


def test_a_server_is_named_shortly() -> None:
    for name, short in [
        ("io.github.x/mcp-server-time", "time"),
        ("io.github.modelcontextprotocol/server-sequential-thinking", "sequential-thinking"),
        ("io.github.github/github-mcp-server", "github"),
        ("com.example/mcp", "example"),
        ("com.mcp/mcp-server", "server"),
        ("com.example/UPPER.Case_tool", "upper-case-tool"),
        ("com.example/" + "a" * 90, "a" * 32),
    ]:
        assert short_name(entry_of(name=name), ()) == short


ARGUMENTS: dict[str, tuple[dict[str, Any], dict[str, str], tuple[str, ...]]] = {
    "none": ({}, {}, ()),
    "fixed": (positional(value="stdio"), {}, ("stdio",)),
    "a default": (named("--zone", default="UTC"), {}, ("--zone", "UTC")),
    "a given value": (named("--zone", default="UTC"), {"zone": "Asia/Tokyo"}, ("--zone", "Asia/Tokyo")),
    "an optional one without a value": (named("--zone"), {}, ()),
    "a switch that is on": (named("--all", format="boolean", default="true"), {}, ("--all",)),
    "a switch that is off": (named("--all", format="boolean"), {}, ()),
    "a negative number": (named("--limit"), {"limit": "-7.5"}, ("--limit", "-7.5")),
    "a word with spaces": (positional(), {"place": "a b; rm -rf ~ $(x)"}, ("a b; rm -rf ~ $(x)",)),
    "an optional secret": (named("--token", isSecret=True), {}, ()),
}


def test_arguments_are_the_entrys_with_values_for_its_variables() -> None:
    for case in ARGUMENTS:
        package, values, args = ARGUMENTS[case]
        assert plan_of(entry_of(package=package), values).args == args


PATHS: dict[str, tuple[dict[str, Any], dict[str, str], str, tuple[Path, ...]]] = {
    "a file it cannot do without is its own": (
        {"valueHint": "db_path", "isRequired": True}, {}, f"{HOME}/db_path", ()
    ),
    "a relative default is its own": ({"default": "notes/kept.db"}, {}, f"{HOME}/notes/kept.db", ()),
    "a default elsewhere is none": ({"default": "/etc/passwd"}, {}, "", ()),
    "a default above is none": ({"default": "../../recado.db"}, {}, "", ()),
    "a given folder is in the workspace, and it alone": (
        {}, {"place": "repositories/x"}, "/srv/workspace/repositories/x", (WORKSPACE / "repositories/x",)
    ),
    "of a given file its folder is granted": (
        {}, {"place": "tables/x.db"}, "/srv/workspace/tables/x.db", (WORKSPACE / "tables",)
    ),
}  # fmt: skip


def test_a_path_is_one_that_the_server_may_write() -> None:
    for case in PATHS:
        argument, values, path, granted = PATHS[case]
        plan = plan_of(entry_of(package=positional(format="filepath", **argument)), values)
        assert plan.args == ((path,) if path else ())
        assert plan.grants.folders_write == granted
        assert plan.audience == ("owners" if granted else "members")


def test_a_given_value_is_no_way_to_say_more() -> None:
    entry = entry_of(package=positional(format="filepath"))
    outside = ("../people/p1", "/etc/passwd", "a/../../b")
    hidden = ("x\ny", "x\0y", "a\u202eb", "", "x" * 9999)
    for value in (*outside, *hidden, "-rf", "--allow-all", "${OPENAI_API_KEY}"):
        assert refusal(entry, {"place": value}) == "BAD_VALUE"
    for argument, key in [({"isSecret": True}, "place"), ({}, "elsewhere"), ({}, "place ")]:
        assert refusal(entry_of(package=positional(**argument)), {key: "x"}) == "BAD_VALUE"
    assert refusal(entry_of(package=positional(isRequired=True))) == "NEEDS_VALUE"
    assert refusal(entry_of(package=named("--api-key", isSecret=True, isRequired=True))) == "ODD_ENTRY"


def test_the_environment_refers_to_what_only_the_servers_own_secrets_fill_in() -> None:
    for package, env, asked in [
        (variable("LEVEL", default="info"), (("LEVEL", "info"),), ()),
        (variable("LEVEL"), (), ()),
        (variable("LEVEL", isRequired=True), (("LEVEL", "${LEVEL}"),), ("LEVEL",)),
        (variable("X_TOKEN", isRequired=True), (("X_TOKEN", "${X_TOKEN}"),), ("X_TOKEN",)),
        (variable("X_TOKEN"), (("X_TOKEN", "${X_TOKEN:-}"),), ("X_TOKEN",)),
        (
            variable("OPENAI_API_KEY", isRequired=True),
            (("OPENAI_API_KEY", "${SERVER_OPENAI_API_KEY}"),),
            ("SERVER_OPENAI_API_KEY",),
        ),
        (
            variable("AUTH", value="Bearer {key}", variables={"key": {"isSecret": True, "isRequired": True}}),
            (("AUTH", "Bearer ${key}"),),
            ("key",),
        ),
        (variable("FILE", format="filepath", default="memory.json"), (("FILE", f"{HOME}/memory.json"),), ()),
    ]:
        plan = plan_of(entry_of(package=package))
        assert plan.env == env
        assert tuple(plan.secrets) == asked
        assert plan.audience == ("owners" if asked else "members")


def test_a_remote_has_an_address_and_headers_and_no_command() -> None:
    remote = {
        "type": "streamable-http",
        "url": "https://mcp.example.com/{tenant}",
        "headers": [{"name": "Authorization", "value": "Bearer {token}", "isRequired": True}],
    }
    plan = plan_of(entry_of(remotes=[remote]))
    assert (plan.command_line, plan.args, plan.grants) == ("", (), Grants())
    assert plan.url == "https://mcp.example.com/${tenant}"
    assert plan.headers == (("Authorization", "Bearer ${token}"),)
    assert plan.audience == "owners"


def test_the_network_is_granted_unless_the_entry_or_an_owner_says_no() -> None:
    provided = {"io.modelcontextprotocol.registry/publisher-provided": {"sandbox": {"network": False}}}
    usual, offline = entry_of(package={}), entry_of(package={}, _meta=provided)
    for entry, choice, granted in (
        *((usual, None, True), (usual, True, True), (usual, False, False)),
        *((offline, None, False), (offline, True, True)),
    ):
        assert plan_of(entry, network=choice).grants.network == granted
    assert plan_of(entry_of(package={"identifier": "mcp-server-git"})).grants.programs
    assert not plan_of(entry_of(package={"identifier": "github-mcp"})).grants.programs


def test_the_command_is_shown_whole() -> None:
    package = {
        "packageArguments": [{"type": "positional", "value": "a b"}, {"type": "positional", "value": "c'd"}]
    }
    assert plan_of(entry_of(package=package)).command_line == """node @ana/x@1.2.3 'a b' 'c'"'"'d'"""
    python = entry_of(package={"registryType": "pypi", "identifier": "mcp-server-time", "version": "2026.1"})
    assert plan_of(python).command_line == "python mcp-server-time==2026.1"


def test_a_yes_is_for_everything_in_the_plan() -> None:
    entry = entry_of(package={**named("--zone", default="UTC"), **variable("X_TOKEN", isRequired=True)})
    first = plan_of(entry)
    others = [
        plan_of(entry, {"zone": "Asia/Tokyo"}),
        plan_of(entry, network=False),
        plan_of(entry, replaces="0" * 64),
        plan_of(entry_of(package={**named("--zone", default="UTC"), "version": "1.2.4"})),
        plan_of(entry_of(package={**named("--zone", default="UTC")}, description="Y")),
    ]
    assert len({to_json(plan) for plan in (first, *others)}) == 6
    assert to_json(plan_of(entry)) == to_json(first)
    assert from_json(to_json(first)) == first
