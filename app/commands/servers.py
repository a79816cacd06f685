"""`recado mcp list`, `add` and `secret`: MCP servers in the configuration."""

import getpass
import json
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.running import find_server
from app.commands.skill_folders import read_skills
from app.commands.tables import table
from app.errors import RecadoError
from app.http.address import Address, FetchError, is_public
from app.mcp.configuration import Configuration
from app.mcp.definitions import ServerDefinition, ServerState, state_at_rest
from app.mcp.mapping_file import add_server
from app.mcp.server_entry import parse_entry
from app.messages import JSON
from app.settings import Settings, skill_environment

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

LONGEST_FILE = 1024 * 1024

_SEEN = "It is started at the next message, without a restart."
_ORIGINS = {"operator": "you", "installed": "registry", "skill": "a skill"}
_NEAR = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def servers_table(settings: Settings, *, as_json: bool) -> str:
    """Return a table of every server with its state; without a running server, what is configured."""
    server = find_server(settings.data_dir)
    known = server.ask("servers") if server is not None else _written(settings)
    if as_json:
        return json.dumps(known, ensure_ascii=False, indent=2)
    lines = [*known["faults"], *map(_wish, known["wanted"])]
    if not known["servers"]:
        lines.append("There are no MCP servers. Find one with: recado mcp search WORDS")
        lines.append(f"Or write it into {settings.mcp_config_path}: docs/mcp.md")
        return "\n".join(lines)
    head = ("SERVER", "STATE", "TOOLS", "FROM", "VERSION", "FOR")
    return "\n".join([table(head, [_row(one) for one in known["servers"]]), *lines])


def configuration(settings: Settings) -> Configuration:
    """Read the configuration as a server does."""
    return Configuration(settings, skill_environment(), read_skills(settings))


def definition_of(written: Configuration, name: str) -> ServerDefinition:
    """Return the server of that name. Raise RecadoError with the known names if there is none."""
    found = {one.name: one for one in written.look()}
    if name in found:
        return found[name]
    names = f"there are: {', '.join(found)}" if found else "there is none yet"
    raise RecadoError("\n".join([*written.faults, f"there is no server {name!r}; {names}"]))


def command_entry(command: Sequence[str], env: Iterable[str]) -> dict[str, JSON]:
    """Return the entry of a program. Raise RecadoError for a malformed variable."""
    variables = _pairs(env, "-e")
    return {"command": command[0], "args": list(command[1:]), **({"env": variables} if variables else {})}


def remote_entry(url: str, headers: Iterable[str]) -> dict[str, JSON]:
    """Return the entry of a public https address. Raise RecadoError for any other address."""
    _check_public(url)
    given = _pairs(headers, "-H")
    return {"url": url, **({"headers": given} if given else {})}


def file_entry(path: Path, name: str) -> JSON:
    """Return the entry from a file, alone or in an `mcpServers` mapping.

    Raise RecadoError if it has none, or none of that name among several.
    """
    try:
        content = sys.stdin.buffer.read(LONGEST_FILE) if str(path) == "-" else path.read_bytes()
        whole: JSON = json.loads(content[:LONGEST_FILE])
    except OSError as error:
        raise RecadoError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise RecadoError(f"{path} is not JSON: {error}") from error
    servers = whole.get("mcpServers", whole.get("servers")) if isinstance(whole, dict) else None
    if not isinstance(servers, dict):
        return whole
    if name in servers or len(servers) != 1:
        if name not in servers:
            raise RecadoError(f"{path} has no server {name!r}, but: {', '.join(servers) or 'none'}")
        return servers[name]
    return next(iter(servers.values()))


def add(settings: Settings, name: str, entry: JSON) -> str:
    """Write an entry into the configuration and return what is left to do. Raise RecadoError for a faulty
    one.
    """
    trial = parse_entry(name, entry, {})
    if trial.fault:
        raise RecadoError(f"{name}: {trial.fault}")
    written = configuration(settings)
    if name in {one.name for one in written.look()}:
        raise RecadoError(f"there is a server {name} already; remove it first, or choose another name")
    add_server(settings.mcp_config_path, name, entry, replace=False)
    definition = definition_of(written, name)
    lines = [f"Added {name} to {settings.mcp_config_path}. {_SEEN}"]
    if definition.command and shutil.which(definition.command) is None:
        lines.append(
            f"The program {definition.command} is not found here: install it, or give its whole path."
        )
    lines += [f"It needs {variable}: recado mcp secret {name} {variable}" for variable in definition.missing]
    if definition.exposed:
        lines.append(f"{exposed_text(definition)}: {exposed_cure(name)}")
    return "\n".join(lines)


def keep_secret(settings: Settings, name: str, variable: str) -> str:
    """Ask for a secret and keep it for that server alone. Raise RecadoError if it cannot be kept."""
    written = configuration(settings)
    kept_as = definition_of(written, name).kept_as
    written.secrets.put(kept_as or name, variable, _value(name, variable))
    missing = definition_of(written, name).missing
    lines = [f"{variable} is kept for {name}. It counts from the next message on."]
    lines += [f"It still needs {other}: recado mcp secret {name} {other}" for other in missing]
    return "\n".join(lines)


def exposed_text(definition: ServerDefinition) -> str:
    """Say which fields of an entry hold a secret in plain text."""
    return f"its entry holds a secret as it is ({', '.join(definition.exposed)})"


def exposed_cure(name: str) -> str:
    """Say how to move such a secret out of the entry."""
    return f"write ${{NAME}} in its place, and give it with: recado mcp secret {name} NAME"


def _written(settings: Settings) -> JSON:
    written = configuration(settings)
    states = [state_at_rest(one) or ServerState(one.name, "off", "", one) for one in written.look()]
    known = written.report(states)
    for row, state in zip(known["servers"], states, strict=True):
        if state.definition is not None and state_at_rest(state.definition) is None:
            row["phase"] = "stopped"
    return known


def _row(one: Mapping[str, JSON]) -> Sequence[str]:
    tools = str(len(one["tools"])) if one["phase"] == "ready" else "-"
    return one["name"], _state(one), tools, _ORIGINS[one["origin"]], one["version"] or "-", one["audience"]


def _state(one: Mapping[str, JSON]) -> str:
    if one["missing"] and one["phase"] == "faulty":
        return f"needs {', '.join(one['missing'])}: recado mcp secret {one['name']} {one['missing'][0]}"
    if one["phase"] == "stopped":
        return "no server runs that would start it"
    held = len(one["held_back"])
    if held:
        return f"{one['phase']}; {held} held back: recado mcp approve {one['name']}"
    return f"{one['phase']}: {one['reason']}" if one["reason"] else str(one["phase"])


def _wish(one: Mapping[str, JSON]) -> str:
    wanted = one["registry_id"]
    return f"The skill {one['skill']} would use the server {wanted}: recado mcp add NAME --registry {wanted}"


def _pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise RecadoError(f"{option} {name!r}: write {option} NAME='${{VARIABLE}}'")
    return {name: value for name, _, value in pairs}


def _check_public(url: str) -> None:
    """Raise RecadoError unless the address is https and on the internet."""
    own = "write a server of your own network into the file yourself"
    try:
        address = Address.parse(url)
    except FetchError as error:
        raise RecadoError(f"that address is not taken: {error}") from error
    if address.host == "localhost" or address.host.endswith(_NEAR) or not all(map(is_public, _ips(address))):
        raise RecadoError(f"{address.host} is this machine or its own network; {own}")
    if address.scheme != "https":
        raise RecadoError("only https addresses are taken: over http anybody on the way reads and changes it")


def _ips(address: Address) -> "Iterable[IPv4Address | IPv6Address]":
    """Resolve an address; empty without a network, since the connection checks it again."""
    from ipaddress import ip_address

    if address.ip is not None:
        return [address.ip]
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [ip_address(str(place[4][0]).partition("%")[0]) for place in found]


def _value(name: str, variable: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"{variable} of {name} (it is not shown): ").strip()
    return sys.stdin.read(LONGEST_FILE).rstrip("\r\n")
