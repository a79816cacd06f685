"""A server as it is configured, its state, and the entry of an `mcpServers` mapping that describes it."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, StrictBool, ValidationError

from app.errors import RecadoError, first_fault
from app.http.address import Address, FetchError
from app.i18n import lazy
from app.messages import JSON
from app.people import Audience
from app.processes.sandbox import Grants, Program
from app.settings import is_own
from app.text import on_one_line

# Who configured it: the operator's own file, an install that an owner approved, a skill's `mcp.json`.
Origin = Literal["operator", "installed", "skill"]
# off: disabled. starting: also between two tries. broken: it failed too often in a row, its entry has a
# fault, or a secret is missing. stopped: no assistant runs that would start it.
Phase = Literal["off", "starting", "ready", "broken", "stopped"]

# In the reason of a server that runs elsewhere.
NEEDS_SIGN_IN = lazy("it needs a sign-in, which is not supported yet")

LONGEST_NAME = 41
NAME_RULE = lazy("letters, digits, - and _, at most {n}, the first a letter or digit", n=LONGEST_NAME)
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")
# Commands that fetch a program before they run it, alone or with their first argument.
_FETCHING_COMMANDS = frozenset(
    {"npx", "uvx", "bunx", "pipx", "docker", "podman", "npm exec", "pnpm dlx", "uv tool"}
)
_MIN_SECRET = 4
_MIN_SECRET_IN_RESULTS = 8  # in what tools say shorter ones are left: they are words of all sorts


def is_server_name(name: str) -> bool:
    """Tell whether a server may have that name: it names its folder, its secrets and its tools."""
    return bool(_NAME.fullmatch(name))


@dataclass(frozen=True, slots=True)
class ServerDefinition(Program):
    """A server ready to be started: `command` or `url`, never both; `fault` says why it cannot be.

    Values of `env` and `headers` have their `${VARIABLE}` filled in and are never shown. A change of any
    field restarts the server.
    """

    name: str
    origin: Origin = "operator"
    url: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    sha256: str = ""  # of the approved files in `folder`: checked before each start
    sandboxed: bool = False
    audience: Audience = "members"
    trusted: bool = False  # its annotations are believed
    enabled: bool = True
    version: str = ""  # of what runs; "" where unknown
    description: str = ""  # a line of its author's
    missing: tuple[str, ...] = ()  # secrets that it needs and does not have
    exposed: bool = False  # its entry holds a secret in plain text
    # Secrets that it was given: removed from what its tools say.
    hidden: tuple[str, ...] = field(default=(), repr=False)
    kept_as: str = ""  # the name under which its secrets are kept, "" for its own
    fault: str = ""

    @property
    def downloads(self) -> bool:
        """Tell whether its command first fetches what is not here, which may take minutes."""
        program = self.command.rpartition("/")[2]
        return not _FETCHING_COMMANDS.isdisjoint({program, " ".join([program, *self.args[:1]])})

    def mask(self, text: str) -> str:
        """Remove the values of `env` and `headers` from a text of its own; before the text is cut."""
        return _without((value for _, value in (*self.env, *self.headers)), _MIN_SECRET, text)

    def redact(self, text: str) -> str:
        """Remove the secrets that the server was given from what one of its tools says."""
        return _without(self.hidden, _MIN_SECRET_IN_RESULTS, text)


class Unreachable(RecadoError):
    """A server that could not be started or reached, or whose connection ended; the text says why."""


class ConnectionLost(RecadoError):
    """A call whose connection ended. `sent`: it may have arrived."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Refused(RecadoError):
    """A request that the server answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


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


def state_at_rest(definition: ServerDefinition) -> ServerState | None:
    """Return the state of a server that is off or cannot be started; None for any other."""
    name, reason = definition.name, definition.fault
    if not definition.enabled:
        return ServerState(name, "off", "", definition)
    if definition.missing and not reason:
        reason = lazy("it needs what nobody gave: {names}", names=", ".join(definition.missing))
    return ServerState(name, "broken", reason, definition) if reason else None


def _without(secrets: Iterable[str], shortest: int, text: str) -> str:
    """Remove secrets, also the last word of each (of "Bearer …"), in plain text and inside of JSON."""
    words = {word for secret in secrets for word in (secret, secret.rpartition(" ")[2])}
    forms = (
        (word, json.dumps(word)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1])
        for word in words
        if len(word) >= shortest
    )
    for form in sorted(set(chain.from_iterable(forms)), key=len, reverse=True):
        text = text.replace(form, "…")
    return text


LONGEST_TEXT = 32 * 1024

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_]\w{0,127})(?::-(.*))?", re.ASCII | re.DOTALL)
_SECRET_NAME = re.compile(
    r"(?:^|[_-]|api)key(?:$|[_-])|token|secret|passw|pwd|credential|authorization|cookie", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf|AKIA|AIza)[-_]?[\w-]{12,}"
    r"|\b(?:bearer|basic)\s+\S{8,}|://[^\s/@:]+:[^\s/@]+@"
    r"|\b[\w-]*(?:key|token|secret|password)=[^\s&]{4,}",
    re.IGNORECASE,
)
# What a variable with a secret's name may hold in plain text: a switch, or the path of a file.
_NO_SECRET = re.compile(r"(?:true|false|none|null|[~.]*/.*|.{0,3})", re.IGNORECASE | re.DOTALL)


class EntryError(RecadoError):
    """An entry, or a reference in it, that cannot be used; the text says what to write instead."""


class Template:
    """Fills `${VARIABLE}` and `${VARIABLE:-default}` in texts, and remembers which had a value.

    A setting of ours is never filled in, whoever asks. A variable without a value and a default is `missing`
    and left in the text.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.given: dict[str, str] = {}
        self.missing: dict[str, None] = {}

    def fill(self, text: str) -> str:
        """Return the text with its values. Raises EntryError."""
        return _REFERENCE.sub(self._value, text)

    def _value(self, reference: re.Match[str]) -> str:
        variable = _VARIABLE.fullmatch(reference[1])
        if variable is None:
            told = lazy("{text} is no variable; write ${{NAME}} or ${{NAME:-default}}", text=reference[0])
            raise EntryError(told)
        name, default = variable.groups()
        if is_own(name):
            raise EntryError(
                lazy(
                    "{name} is a setting of this assistant, which no server is given; "
                    "use another name, such as {other}",
                    name=f"${{{name}}}",
                    other=f"${{SERVER_{name.upper()}}}",
                )
            )
        if value := self._values.get(name):
            self.given[name] = value
            return value
        if default is not None:
            return default
        self.missing[name] = None
        return reference[0]


def is_secret(name: str, value: str) -> bool:
    """Tell whether the value of a variable or header of that name is a secret."""
    named = _SECRET_NAME.search(name) is not None and not _NO_SECRET.fullmatch(value)
    return named or _SECRET_VALUE.search(value) is not None


def _to_text(value: JSON) -> JSON:
    """Return a number or a switch as a text, which other hosts take them for."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_Text = Annotated[str, BeforeValidator(_to_text), Field(max_length=LONGEST_TEXT)]


class _Sandbox(BaseModel, extra="forbid"):
    network: StrictBool = False
    programs: StrictBool = False
    read: list[Path] = []
    write: list[Path] = []


class _Entry(BaseModel):
    """An entry as the operator, or the author of a skill, writes it; other hosts' own fields are left out."""

    command: _Text = ""
    args: list[_Text] = []
    env: dict[str, _Text] = {}
    url: _Text = Field("", validation_alias=AliasChoices("url", "serverUrl", "httpUrl"))
    headers: dict[str, _Text] = {}
    cwd: _Text = ""
    type: _Text = Field("", validation_alias=AliasChoices("type", "transport"))
    sandbox: StrictBool | _Sandbox = False
    audience: Audience | None = None
    trust: StrictBool = False
    enabled: StrictBool = True
    disabled: StrictBool = False
    description: _Text = ""

    def is_exposed(self) -> bool:
        """Tell whether it holds a secret in plain text."""
        unnamed = (("", text) for text in (*self.args, self.url))
        named = chain(self.env.items(), self.headers.items(), unnamed)
        return any(is_secret(name, value) and not _REFERENCE.search(value) for name, value in named)


def parse_entry(
    name: str, entry: JSON, values: Mapping[str, str], *, origin: Origin = "operator", folder: str = ""
) -> ServerDefinition:
    """Return the server that an entry describes, with `values` for its variables.

    `folder` is where it starts unless the entry has a `cwd`. Never raises: `fault` says what to mend.
    """
    try:
        if not is_server_name(name):
            raise EntryError(lazy("its name cannot be used: {rule}; rename it", rule=NAME_RULE))
        if not isinstance(entry, dict):
            raise EntryError(lazy('it is no object; write {{"command": …, "args": […]}} or {{"url": …}}'))
        read = _Entry.model_validate({key: value for key, value in entry.items() if value is not None})
        return _filled(name, read, Template(values), origin, folder)
    except ValidationError as error:  # its own text would show values, which may be secrets
        fault = first_fault(error)
    except EntryError as error:
        fault = error.told
    off = isinstance(entry, dict) and (entry.get("enabled") is False or entry.get("disabled") is True)
    shown = on_one_line(name, 100) or "(no name)"
    return ServerDefinition(shown, origin, enabled=not off, audience="owners", fault=fault)


def _filled(name: str, entry: _Entry, template: Template, origin: Origin, folder: str) -> ServerDefinition:
    command, url = template.fill(entry.command.strip()), template.fill(entry.url.strip())
    args = tuple(map(template.fill, entry.args))
    env = tuple((key, template.fill(value)) for key, value in entry.env.items())
    headers = tuple((key, template.fill(value)) for key, value in entry.headers.items())
    _check(entry, command, url, headers, is_whole=not template.missing)
    given = (*template.given.items(), *env, *headers)
    exposed = entry.is_exposed()
    holds_secret = bool(template.given or template.missing or exposed)
    audience = entry.audience or ("owners" if holds_secret else "members")
    grants, wanted = Grants(), entry.sandbox
    if not isinstance(wanted, bool):
        grants = Grants(wanted.network, wanted.programs, tuple(wanted.read), tuple(wanted.write))
    return ServerDefinition(
        name=name,
        origin=origin,
        command=command,
        args=args,
        env=env,
        url=url,
        headers=headers,
        folder=entry.cwd or folder,
        sandboxed=entry.sandbox is not False,
        grants=grants,
        audience="owners" if audience == "owners" else "members",
        trusted=entry.trust,
        enabled=entry.enabled and not entry.disabled,
        description=on_one_line(entry.description.strip(), 300),
        missing=tuple(template.missing),
        exposed=exposed,
        hidden=tuple(value for key, value in given if is_secret(key, value)),
    )


def _check(
    entry: _Entry, command: str, url: str, headers: Iterable[tuple[str, str]], *, is_whole: bool
) -> None:
    """Raise EntryError for what cannot be started. Addresses and headers may be secrets and are not shown."""
    if bool(command) == bool(url):
        raise EntryError(lazy('give it one of "command" (a program here) and "url" (a server elsewhere)'))
    if any(character.isspace() for character in command) and not Path(command).exists():
        raise EntryError(lazy('"command" is the program alone; its arguments belong into "args"'))
    if entry.type.lower() == "sse":
        raise EntryError(
            lazy("the transport SSE is not spoken; look for the server's streamable HTTP address")
        )
    for name, value in headers:
        if not (value.isascii() and value.isprintable()):
            fault = lazy("headers: the value of {name} holds line breaks or letters beyond ASCII", name=name)
            raise EntryError(fault)
    if url and is_whole:
        try:
            Address.parse(url)
        except FetchError as error:
            raise EntryError(lazy('"url" cannot be used: {error}', error=error.told)) from error
