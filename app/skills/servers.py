"""The MCP servers of an installed skill: registry entries and https remotes, never a command."""

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError, model_validator

from app.errors import first_fault
from app.messages import JSON
from app.settings import is_own
from app.text import on_one_line
from app.tools.plain import sendable

MAX_SERVERS = 32
_LONGEST_NAME, _LONGEST_REASON, _LONGEST_ADDRESS = 100, 500, 2000
_HOST = re.compile(r"(?=.*[a-z])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_Text = Annotated[str, Field(max_length=1000)]
_Texts = Annotated[dict[_Text, _Text], Field(max_length=32)]


@dataclass(frozen=True, slots=True)
class RefusedServer:
    """A server that is left out, and why; the words may hold outside text."""

    name: str
    reason: str


class Server(BaseModel, strict=True, extra="forbid", frozen=True):
    """A server that may be offered: an entry of the registry (`version` "": the newest), or a remote."""

    name: str = Field(max_length=_LONGEST_NAME)
    type: Any = None
    enabled: Any = None
    command: Any = Field(None, exclude=True)
    args: Any = Field(None, exclude=True)
    registry: str = Field("", pattern=r"^([a-zA-Z0-9.-]{1,100}/[a-zA-Z0-9._-]{1,100})?$")
    version: str = Field("", pattern=r"^[0-9A-Za-z.+_-]{0,64}$")
    url: str = ""
    headers: _Texts = {}
    env: _Texts = {}

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the names that its `${VAR}` ask for."""
        texts = (self.url, *self.headers.values(), *self.env.values())
        return tuple(dict.fromkeys(name for text in texts for name in _VARIABLE.findall(text)))

    @model_validator(mode="after")
    def _check(self) -> "Server":
        if self.command is not None or self.args is not None:
            words = [self.command, *(self.args if isinstance(self.args, list) else [])]
            raise ValueError(f"it brings a command: {' '.join(map(str, words))}")
        if bool(self.url) == bool(self.registry):
            raise ValueError("it must name either a registry entry or an https address")
        if self.url and (fault := remote_fault(self.url)):
            raise ValueError(fault)
        for name in self.secrets:
            if not _VARIABLE_NAME.fullmatch(name):
                raise ValueError(f"${{{name}}} is no variable's name")
            if is_own(name):
                raise ValueError(f"it asks for {name}, a setting of this assistant")
        return self


def read_servers(content: bytes) -> tuple[tuple[Server, ...], tuple[RefusedServer, ...]]:
    """Read the servers of an installed `mcp.json`, and those left out; never raises.

    `{"mcpServers": {NAME: {"registry": "io.x/y", "version": "1.2"} | {"url": "https://…", "headers": {…}}}}`
    """
    try:
        entries = _entries(content)
        if len(entries) > MAX_SERVERS:
            raise ValueError(f"it names {len(entries)} servers; at most {MAX_SERVERS} are read")
    except ValueError as error:
        return (), (RefusedServer("mcp.json", str(error)),)
    servers: list[Server] = []
    refused: list[RefusedServer] = []
    for name, entry in entries.items():
        try:
            named = {**entry, "name": name} if isinstance(entry, dict) else entry
            servers.append(Server.model_validate(named))
        except ValidationError as error:
            reason = on_one_line(first_fault(error), _LONGEST_REASON)
            refused.append(RefusedServer(on_one_line(name, _LONGEST_NAME), reason))
    return tuple(servers), tuple(refused)


def _entries(content: bytes) -> dict[str, JSON]:
    """Return the entries of an `mcp.json` by name. Raises ValueError for other content."""
    try:
        value = sendable(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    entries = value.get("mcpServers", value.get("servers")) if isinstance(value, dict) else None
    if not isinstance(entries, dict):
        raise ValueError("it has no object mcpServers")
    return entries


def remote_fault(url: JSON) -> str:
    """Say what is wrong with the form of an address; its target is checked when it is opened."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        _ = parts.port
    except ValueError:
        return f"{url} is no address"
    if parts.scheme != "https" or not _HOST.fullmatch(parts.hostname or "") or len(url) > _LONGEST_ADDRESS:
        return f"{url} is no https address of a named host"
    if parts.username is not None or _VARIABLE.search(parts.netloc):
        return f"{url} holds a user name or a variable before its path"
    return ""
