"""A server as it is configured, and the state of one: plain data."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.messages import JSON
from app.processes.sandbox import Grants
from app.tools.tool import Audience

# Who configured it: the operator's own file, an install that an owner approved, a skill's `mcp.json`.
Origin = Literal["operator", "installed", "skill"]
# off: disabled. waiting: for its next start. broken: set aside after too many deaths. faulty: cannot be
# started as it is configured, or a secret is missing.
Phase = Literal["off", "starting", "ready", "waiting", "broken", "faulty"]

LONGEST_NAME = 41
NAME_RULE = f"letters, digits, - and _, at most {LONGEST_NAME}, the first a letter or digit"
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")
_FETCHING_COMMANDS = frozenset({"npx", "uvx", "pipx", "bunx"})
_MIN_SECRET = 4
# In what tools say shorter ones are left: they are words of all sorts.
_MIN_SECRET_IN_RESULTS = 8


def is_server_name(name: str) -> bool:
    """Tell whether a server may have that name: it names its folder, its secrets and its tools."""
    return bool(_NAME.fullmatch(name))


@dataclass(frozen=True, slots=True)
class ServerDefinition:
    """A server ready to be started: `command` or `url`, never both; `fault` says why it cannot be.

    Values of `env` and `headers` have their `${VARIABLE}` filled in and are never shown. A change of any
    field restarts the server.
    """

    name: str
    origin: Origin = "operator"
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    # Where it starts and what the sandbox shows of it; "" for the current folder.
    folder: str = ""
    # A folder of its own, which the sandbox lets it write to, and where it starts; "" for none.
    home: str = ""
    # Of the approved files in `folder`: checked before each start.
    sha256: str = ""
    sandboxed: bool = False
    grants: Grants = field(default_factory=Grants)
    audience: Audience = "everyone"
    # Its annotations are believed.
    trusted: bool = False
    enabled: bool = True
    # Of what runs; "" where unknown.
    version: str = ""
    # A line of its author's.
    description: str = ""
    # Secrets that it needs and does not have.
    missing: tuple[str, ...] = ()
    # Where its entry holds a secret in plain text, such as "env API_KEY".
    exposed: tuple[str, ...] = ()
    # Secrets that it was given: removed from what its tools say.
    hidden: tuple[str, ...] = field(default=(), repr=False)
    # The name under which its secrets are kept, "" for its own.
    kept_as: str = ""
    fault: str = ""

    @property
    def downloads(self) -> bool:
        """Tell whether its command first fetches what is not here, which may take minutes."""
        return self.command.rpartition("/")[2] in _FETCHING_COMMANDS

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown: those of `env` and `headers`."""
        return tuple(value for _, value in (*self.env, *self.headers) if value)

    def mask(self, text: str) -> str:
        """Remove the server's secrets from a text of its own; to be done before the text is cut."""
        tokens = (value.rpartition(" ")[2] for _, value in self.headers)  # of "Bearer …"
        return _without((*self.secrets, *tokens), _MIN_SECRET, text)

    def redact(self, text: str) -> str:
        """Remove the secrets that the server was given from what one of its tools says."""
        tokens = (value.rpartition(" ")[2] for value in self.hidden)
        return _without((*self.hidden, *tokens), _MIN_SECRET_IN_RESULTS, text)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A tool that differs from what was approved; `before` is its approved definition, None for a new one."""

    tool: str
    after: Mapping[str, JSON]
    before: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a server. `reason` is for the owner and holds no secret; `tools` are offered names.

    `revision` is of the protocol, "" before the first connection; `dropped` are unusable tools and why.
    """

    name: str
    phase: Phase
    reason: str = ""
    definition: ServerDefinition | None = None
    revision: str = ""
    tools: tuple[str, ...] = ()
    held_back: tuple[HeldBack, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    deaths: int = 0


def state_at_rest(definition: ServerDefinition) -> ServerState | None:
    """Return the state of a server that is off or cannot be started; None for any other."""
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
    """Return it in plain text and inside of JSON: a key's file has quotes and line ends."""
    return secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]
