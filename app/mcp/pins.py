"""Definitions of tools that an owner approved: a changed one is held back until it is approved again."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from app.messages import JSON
from app.processes.sandbox import Grants
from app.security import write_private
from app.tools.tool import Audience

# Who configured it: the operator's own file, an install that an owner approved, a skill's `mcp.json`.
Origin = Literal["operator", "installed", "skill"]
# off: disabled. waiting: for its next start. broken: set aside after too many deaths. faulty: cannot be
# started as it is configured, or a secret is missing.
Phase = Literal["off", "starting", "ready", "waiting", "broken", "faulty"]

# In the reason of a server that runs elsewhere.
NEEDS_SIGN_IN = "it needs a sign-in, which is not supported yet"

LONGEST_NAME = 41
NAME_RULE = f"letters, digits, - and _, at most {LONGEST_NAME}, the first a letter or digit"
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")
# Commands that fetch a program before they run it; by their first argument, where others of theirs do not.
_FETCHING_COMMANDS = {
    "npx": "",
    "uvx": "",
    "bunx": "",
    "pipx": "run",
    "docker": "run",
    "podman": "run",
    "uv": "tool",
    "npm": "exec",
    "pnpm": "dlx",
}
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
        first = _FETCHING_COMMANDS.get(self.command.rpartition("/")[2])
        return first is not None and (not first or self.args[:1] == (first,))

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


# A tool as `tools/list` gives it.
Definition = Mapping[str, JSON]

# What the model or an owner is told of a tool: a change of any of them is a change of the tool.
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")

_VERSION = 1

Part = Literal["title", "description", "annotation", "parameter", "parameters", "result"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The tools that are still what was approved, in their order, and those that differ or are new."""

    approved: tuple[Definition, ...] = ()
    held_back: tuple[HeldBack, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """One part that changed; `name` is of the parameter or annotation. None stands for one that is not there.

    `parameters` stands for what the schema says beside its parameters.
    """

    part: Part
    name: str = ""
    before: JSON = None
    after: JSON = None


def definition_hash(raw: Definition) -> str:
    """Return the sha256 of what is pinned of a definition. Raises ValueError if that is nested too deeply."""
    try:
        text = _canonical(_pinned(raw))
    except RecursionError:
        raise ValueError("the definition is nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()


def differences(before: Definition | None, after: Definition) -> tuple[Difference, ...]:
    """Return what an owner has to know of a change; everything for a new tool."""
    return tuple(_differences(before or {}, after))


def hashes(held_back: Sequence[HeldBack]) -> dict[str, str]:
    """Return the sha256 of each definition that is held back, by tool."""
    return {one.tool: definition_hash(one.after) for one in held_back}


def subject_of(state: ServerState) -> str:
    """Return the hash of all that an approval of what a server has held back covers."""
    return hashlib.sha256(_canonical([state.name, hashes(state.held_back)]).encode()).hexdigest()


class Pins:
    """One server's approved definitions, kept whole in a file that only we can read.

    A file that cannot be read, or whose hashes do not fit, approves nothing; `fault` says so. Reads and
    writes the disk: not for the event loop.
    """

    def __init__(self, path: Path) -> None:
        self.fault = ""
        self._path = path

    def exists(self) -> bool:
        """Tell whether anything was ever approved."""
        return self._path.exists()

    def compare(self, raws: Sequence[Definition]) -> Comparison:
        """Tell which of these may be offered. Raises ValueError for one that is nested too deeply."""
        pinned = self._read() or {}
        hashes = {name: definition_hash(definition) for name, definition in pinned.items()}
        approved, held_back = [], []
        for raw in raws:
            name = raw["name"]
            if hashes.get(name) == definition_hash(raw):
                approved.append(raw)
            else:
                held_back.append(HeldBack(name, after=raw, before=pinned.get(name)))
        return Comparison(tuple(approved), tuple(held_back))

    def approve_first(self, raws: Sequence[Definition]) -> bool:
        """Approve all of these if nothing was ever approved; tell whether it did.

        With a faulty file an owner is asked instead.
        """
        if self._read() is not None or self.fault:
            return False
        self._write({raw["name"]: raw for raw in raws})
        return True

    def approve(self, raws: Sequence[Definition], shown: Mapping[str, str]) -> Collection[str]:
        """Approve those that are what was shown (sha256 by tool); return their names. Earlier ones stay."""
        chosen = {raw["name"]: raw for raw in raws if shown.get(raw["name"]) == definition_hash(raw)}
        if chosen:
            self._write({**(self._read() or {}), **chosen})
        return frozenset(chosen)

    def _read(self) -> dict[str, Definition] | None:
        """Return approved definitions by name; None if there is no file or it is faulty."""
        self.fault = ""
        try:
            return _checked(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            self.fault = f"{self._path} cannot be trusted, so no tool in it is approved: {error}"
            return None

    def _write(self, definitions: Mapping[str, Definition]) -> None:
        tools = {
            name: {"sha256": definition_hash(definition), "definition": _pinned(definition)}
            for name, definition in sorted(definitions.items())
        }
        write_private(self._path, json.dumps({"version": _VERSION, "tools": tools}))
        self.fault = ""


def _checked(written: JSON) -> dict[str, Definition]:
    """Return the definitions of a file. Raises ValueError unless each has its own hash."""
    tools = written.get("tools") if isinstance(written, dict) and written.get("version") == _VERSION else None
    if not isinstance(tools, dict):
        raise ValueError(f"it does not hold tools in version {_VERSION} of the form")
    definitions: dict[str, Definition] = {}
    for name, pin in tools.items():
        definition = pin.get("definition") if isinstance(pin, dict) else None
        if not isinstance(definition, dict) or definition.get("name") != name:
            raise ValueError(f"it holds no definition of {name!r}")
        if definition_hash(definition) != pin.get("sha256"):
            raise ValueError(f"the definition of {name!r} is not the one that was approved")
        definitions[name] = definition
    return definitions


def _canonical(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _pinned(raw: Definition) -> dict[str, JSON]:
    return {key: raw[key] for key in PINNED if raw.get(key) is not None}


def _differences(before: Definition, after: Definition) -> Iterator[Difference]:
    titles: tuple[Part, ...] = ("title", "description")
    for part in titles:
        yield from _changed(part, "", before.get(part), after.get(part))
    was, now = _mapping(before.get("inputSchema")), _mapping(after.get("inputSchema"))
    yield from _by_name("parameter", _mapping(was.get("properties")), _mapping(now.get("properties")))
    yield from _changed("parameters", "", _beside(was), _beside(now))
    yield from _by_name("annotation", _mapping(before.get("annotations")), _mapping(after.get("annotations")))
    yield from _changed("result", "", before.get("outputSchema"), after.get("outputSchema"))


def _by_name(part: Part, before: Definition, after: Definition) -> Iterator[Difference]:
    for name in dict.fromkeys((*before, *after)):
        yield from _changed(part, name, before.get(name), after.get(name))


def _changed(part: Part, name: str, before: JSON, after: JSON) -> Iterator[Difference]:
    if _canonical(before) != _canonical(after):  # 1, 1.0 and True are equal to Python
        yield Difference(part, name, before, after)


def _beside(schema: Definition) -> JSON:
    return {key: value for key, value in schema.items() if key != "properties"} or None


def _mapping(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, dict) else {}
