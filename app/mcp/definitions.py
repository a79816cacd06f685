"""What a server is to us before it runs, and how it does once somebody started it."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.messages import JSON
from app.processes.sandbox import Grants
from app.tools.tool import Audience

Origin = Literal["operator", "installed", "skill"]
"""Who wrote it down: the operator's own file, an install that an owner agreed to, a skill's `mcp.json`."""

Phase = Literal["off", "starting", "ready", "waiting", "broken", "faulty"]
"""off: disabled. waiting: for its next start. broken: set aside after too many deaths. faulty: cannot be
started as it is written, or a secret is missing."""

LONGEST_NAME = 41
NAME_RULE = f"letters, digits, - and _, at most {LONGEST_NAME}, the first a letter or digit"
_FETCHING = frozenset({"npx", "uvx", "pipx", "bunx"})
_SHORTEST_SECRET = 4
_SHORTEST_TOLD = 8
"""The same in what tools say, which is to be of use: shorter ones are words of all sorts."""
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")


def is_server_name(name: str) -> bool:
    """Whether a server may be called so: it names its folder, its secrets and its tools."""
    return bool(_NAME.fullmatch(name))


@dataclass(frozen=True, slots=True)
class ServerDefinition:
    """One server, ready to be started: `command` or `url`, never both; `fault` says why it cannot be.

    Values of `env` and `headers` have their `${VARIABLE}` filled in: they are never shown. Two that are equal
    need no restart. `trusted`: its annotations are believed. `version` is of what runs, "" where unknown.
    """

    name: str
    origin: Origin = "operator"
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    folder: str = ""
    """Where it starts and what the sandbox shows of it; "" for the current folder."""
    home: str = ""
    """A folder of its own: the sandbox lets it write there, and it starts there; "" for none."""
    sha256: str = ""
    """Of the files in `folder`, where somebody approved them: looked at before each start."""
    sandboxed: bool = False
    grants: Grants = field(default_factory=Grants)
    audience: Audience = "everyone"
    trusted: bool = False
    enabled: bool = True
    version: str = ""
    description: str = ""
    """What its registry entry or its author says of it, in a line."""
    missing: tuple[str, ...] = ()
    """Secrets that it needs and nobody gave."""
    exposed: tuple[str, ...] = ()
    """Where its entry holds a secret as it is, such as "env API_KEY": for a warning."""
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """Secrets that it was given: what its tools say is told on without them."""
    kept_as: str = ""
    """Under which name its secrets are kept, "" for its own."""
    fault: str = ""

    @property
    def downloads(self) -> bool:
        """Whether its start first fetches what it does not find here, which may take minutes."""
        return self.command.rpartition("/")[2] in _FETCHING

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown: those of `env` and `headers`."""
        return tuple(value for _, value in (*self.env, *self.headers) if value)

    def masked(self, text: str) -> str:
        """A text of the server's without its secrets, before anything of it is cut off."""
        tokens = (value.rpartition(" ")[2] for _, value in self.headers)  # of "Bearer …"
        return _without((*self.secrets, *tokens), _SHORTEST_SECRET, text)

    def told(self, text: str) -> str:
        """What one of its tools says, without the secrets that it was given."""
        tokens = (value.rpartition(" ")[2] for value in self.hidden)
        return _without((*self.hidden, *tokens), _SHORTEST_TOLD, text)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A tool that differs from what was approved; `before` is its approved definition, None for a new one."""

    tool: str
    after: Mapping[str, JSON]
    before: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class ServerState:
    """How a server does; `reason` is for the owner and holds no secret. `tools` are offered names."""

    name: str
    phase: Phase
    reason: str = ""
    definition: ServerDefinition | None = None
    revision: str = ""
    """Of the protocol, as "2025-11-25"; "" before the first connection."""
    tools: tuple[str, ...] = ()
    held_back: tuple[HeldBack, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    """Tools whose definition is of no use, and why."""
    deaths: int = 0


def at_rest(definition: ServerDefinition) -> ServerState | None:
    """How one does that is not to be started, or cannot be; None for one that can."""
    name, reason = definition.name, definition.fault
    if not definition.enabled:
        return ServerState(name, "off", "", definition)
    if definition.missing and not reason:
        reason = f"it needs what nobody gave: {', '.join(definition.missing)}"
    return ServerState(name, "faulty", reason, definition) if reason else None


def _without(secrets: Iterable[str], shortest: int, text: str) -> str:
    long = [secret for secret in secrets if len(secret) >= shortest]
    for secret in sorted({form for one in long for form in _forms(one)}, key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def _forms(secret: str) -> tuple[str, ...]:
    """As it is and as it stands in JSON: that of a key's file, or of an account, has quotes and line ends."""
    return secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]
