"""The MCP servers of an installed skill: registry entries and https remotes, never a command."""

import json
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.messages import JSON
from app.settings import Settings
from app.skills.manifest import shortened
from app.tools.plain import sendable

MAX_SERVERS = 32
_LONGEST_NAME, _LONGEST_REASON = 100, 500
_MOST_TEXTS, _LONGEST_TEXT = 32, 1000

_REGISTRY_NAME = re.compile(r"[a-zA-Z0-9.-]{1,100}/[a-zA-Z0-9._-]{1,100}")
_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,64}")
_HOST = re.compile(r"(?=.*[a-z])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_KEYS = frozenset({"type", "url", "headers", "registry", "version", "env", "enabled"})


@dataclass(frozen=True, slots=True)
class Server:
    """A server that may be offered: `registry` names an entry, or `url` a remote.

    `version` "" is the newest. `secrets` are the names that its `${VAR}` ask for.
    """

    name: str
    registry: str = ""
    version: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedServer:
    """A server that is left out, and why; the words may hold outside text."""

    name: str
    reason: str


def read_servers(content: bytes) -> tuple[tuple[Server, ...], tuple[RefusedServer, ...]]:
    """Read the servers of an installed `mcp.json`, and those left out; never raises.

    `{"mcpServers": {NAME: {"registry": "io.x/y", "version": "1.2"} | {"url": "https://…", "headers": {…}}}}`
    """
    try:
        value = sendable(json.loads(content))
    except (ValueError, RecursionError) as error:
        return (), (RefusedServer("mcp.json", f"it is not JSON: {error}"),)
    block = value.get("mcpServers", value.get("servers")) if isinstance(value, dict) else None
    if not isinstance(block, dict):
        return (), (RefusedServer("mcp.json", "it has no object mcpServers"),)
    if len(block) > MAX_SERVERS:
        return (), (
            RefusedServer("mcp.json", f"it names {len(block)} servers; at most {MAX_SERVERS} are read"),
        )
    servers: list[Server] = []
    refused: list[RefusedServer] = []
    for name, entry in block.items():
        reason = _why_not(name, entry)
        if reason:
            refused.append(RefusedServer(shortened(name, _LONGEST_NAME), shortened(reason, _LONGEST_REASON)))
        else:
            servers.append(_server(name, entry))
    return tuple(servers), tuple(refused)


def _why_not(name: str, entry: JSON) -> str:
    """Say why an entry is refused; "" where it is fine."""
    if len(name) > _LONGEST_NAME:
        return "its name is too long"
    if not isinstance(entry, dict):
        return "it is not an object"
    if "command" in entry or "args" in entry:
        words = [entry.get("command"), *(entry["args"] if isinstance(entry.get("args"), list) else [])]
        return f"it brings a command: {' '.join(str(word) for word in words)}"
    if unknown := sorted(set(entry) - _KEYS):
        return f"it has what is not known here: {', '.join(unknown)}"
    if ("url" in entry) == ("registry" in entry):
        return "it must name either a registry entry or an https address"
    for key in ("headers", "env"):
        if not _is_texts(entry.get(key, {})):
            return f"{key} must be at most {_MOST_TEXTS} texts by name, each of {_LONGEST_TEXT} characters"
    for variable in _variables(entry):
        if not _VARIABLE_NAME.fullmatch(variable):
            return f"${{{variable}}} is no variable's name"
        if variable.upper() in _ours():
            return f"it asks for {variable}, a setting of this assistant"
    return _registry_fault(entry) if "registry" in entry else remote_fault(entry["url"])


def _registry_fault(entry: dict[str, JSON]) -> str:
    if not isinstance(entry["registry"], str) or not _REGISTRY_NAME.fullmatch(entry["registry"]):
        return f"{entry['registry']} is no name of the registry, such as io.github.owner/server"
    version = entry.get("version", "")
    if not isinstance(version, str) or (version and not _VERSION.fullmatch(version)):
        return "its version is no version"
    return ""


def remote_fault(url: JSON) -> str:
    """Say what is wrong with the form of an address; its target is checked when it is opened."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        _ = parts.port
    except ValueError:
        return f"{url} is no address"
    if parts.scheme != "https" or not _HOST.fullmatch(parts.hostname or "") or len(url) > 2000:
        return f"{url} is no https address of a named host"
    if parts.username is not None or _VARIABLE.search(parts.netloc):
        return f"{url} holds a user name or a variable before its path"
    return ""


def _server(name: str, entry: dict[str, JSON]) -> Server:
    return Server(
        name=name,
        registry=entry.get("registry", ""),
        version=entry.get("version", ""),
        url=entry.get("url", ""),
        headers=tuple(entry.get("headers", {}).items()),
        env=tuple(entry.get("env", {}).items()),
        secrets=tuple(dict.fromkeys(_variables(entry))),
    )


def _variables(entry: dict[str, JSON]) -> list[str]:
    texts = [entry.get("url"), *entry.get("headers", {}).values(), *entry.get("env", {}).values()]
    return [found for text in texts if isinstance(text, str) for found in _VARIABLE.findall(text)]


def _is_texts(value: JSON) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= _MOST_TEXTS
        and all(
            isinstance(text, str) and len(text) <= _LONGEST_TEXT for pair in value.items() for text in pair
        )
    )


def _ours() -> frozenset[str]:
    fields = Settings.model_fields.items()
    return frozenset(name.upper() for key, field in fields for name in (key, field.alias or key))
