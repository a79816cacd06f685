"""Entries of the MCP registry, read tolerantly and bounded: what a server is, and how it is installed.

The format is https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json. Texts that are
shown are cleaned; of what becomes part of a command every character is checked and none is changed: an odd
one makes its package unusable.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from app.errors import RecadoError
from app.installs.pipeline import EntryCode
from app.messages import JSON, array, mapping
from app.settings import is_own
from app.skills.servers import remote_fault
from app.text import on_one_line, visible

Format = Literal["string", "boolean", "filepath"]

NAME = re.compile(r"[a-zA-Z0-9.-]{1,100}/[a-zA-Z0-9._-]{1,100}")
OFFICIAL = "io.modelcontextprotocol.registry/official"
PROVIDED = "io.modelcontextprotocol.registry/publisher-provided"
SHORT_CHARACTERS = 100
DESCRIPTION_CHARACTERS = 400
DETAIL_CHARACTERS = 200
VALUE_CHARACTERS = 2000
MAX_WAYS = 16  # packages, and remotes, that are read
MAX_INPUTS = 64

FORMS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("packages.yaml").read_text("utf-8"))
_KINDS = FORMS["kinds"]
# Runtime arguments that mean nothing to a package that is installed before it is started.
_NEEDLESS = frozenset({"-y", "--yes"})

_FLAG = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
_VARIABLE_NAME = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_HEADER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_LOADER = re.compile("|".join(FORMS["loader_variables"]), re.IGNORECASE)
_TRANSPORT_HEADER = re.compile("|".join(FORMS["transport_headers"]), re.IGNORECASE)
_PLACEHOLDER = re.compile(r"(\$?)\{([A-Za-z_][\w.-]{0,63})\}", re.ASCII)
_SECRET = re.compile(r"token|secret|passw|credential|api_?key|private_?key|access_?key|authorization", re.I)


@dataclass(frozen=True)
class Reason:
    """The reason why something cannot be installed here; `detail` is the cleaned word at fault, or ""."""

    code: EntryCode
    detail: str = ""


@dataclass(frozen=True)
class Variable:
    """The value of an environment variable, a header or an argument.

    A `value` is the author's and fixed; it refers to its `secrets` as `${KEY}`. Without a `value` a person
    gives one, or `default` counts. An argument is written `flag value`, or is positional.
    """

    name: str
    description: str = ""
    required: bool = False
    secret: bool = False
    default: str = ""
    format: Format = "string"
    value: str = ""
    secrets: tuple["Variable", ...] = ()
    flag: str = ""

    @property
    def key(self) -> str:
        """The name under which a person's value is kept, such as X_API_KEY.

        Names of our own settings are never filled in for a server: SERVER_OPENAI_API_KEY stands for
        OPENAI_API_KEY.
        """
        key = re.sub(r"\W", "_", self.name.lstrip("-"), flags=re.ASCII)
        return f"SERVER_{key}" if key[:1].isdigit() or is_own(key) else key

    @property
    def inputs(self) -> tuple["Variable", ...]:
        """The values that a person may give: itself, or the secrets of its fixed value."""
        return self.secrets if self.value else (self,)


@dataclass(frozen=True)
class Package:
    """A package of npm or PyPI."""

    kind: str
    identifier: str
    version: str
    arguments: tuple[Variable, ...] = ()
    environment: tuple[Variable, ...] = ()


@dataclass(frozen=True)
class Remote:
    """A server on the web; `url` refers to `secrets` as `${KEY}`, but not for its host."""

    url: str
    headers: tuple[Variable, ...] = ()
    secrets: tuple[Variable, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A server of a registry. Its texts are its author's; only `namespace` says who that is.

    `choice` is what would be installed, a package before a remote; else there is a `reason` why nothing can
    be. `offline`: its publisher says that it needs no network.
    """

    name: str
    description: str
    version: str
    choice: Package | Remote | None = None
    reason: Reason | None = None
    offline: bool = False

    @property
    def namespace(self) -> str:
        """The domain (com.example) or account (io.github.ana) that its publisher proved to the registry."""
        return self.name.partition("/")[0]

    @property
    def publisher(self) -> str:
        """The name in the namespace: ana of io.github.ana, example of com.example.www."""
        labels = self.namespace.split(".")
        return labels[min(2 if labels[:2] == ["io", "github"] else 1, len(labels) - 1)]

    @property
    def own_name(self) -> str:
        """The name without its namespace."""
        return self.name.partition("/")[2]

    @property
    def inputs(self) -> Mapping[str, Variable]:
        """The values that a person may give, required or not, by their keys."""
        values: tuple[Variable, ...] = ()
        if isinstance(self.choice, Package):
            values = (*self.choice.arguments, *self.choice.environment)
        elif self.choice is not None:
            values = (*self.choice.secrets, *self.choice.headers)
        return {one.key: one for value in values for one in value.inputs}


class _Unusable(RecadoError):
    def __init__(self, detail: str, code: EntryCode = "ODD_ENTRY") -> None:
        super().__init__(code)
        self.reason = Reason(code, _text(detail, DETAIL_CHARACTERS))


def read_entry(raw: JSON) -> Entry | None:
    """Read an entry as the registry lists it (`{"server": …, "_meta": …}`) or a bare server.json.

    Return None if it is neither or has no proper name. Never raises.
    """
    outer = mapping(raw)
    server = mapping(outer.get("server")) or outer
    meta = mapping(mapping(outer.get("_meta")).get(OFFICIAL))
    needs = mapping(mapping(mapping(server.get("_meta")).get(PROVIDED)).get("sandbox"))
    name = server.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return None
    entry = Entry(
        name=name,
        description=_text(server.get("description"), DESCRIPTION_CHARACTERS),
        version=_text(server.get("version"), SHORT_CHARACTERS),
        offline=needs.get("network") is False,
    )
    status = _text(meta.get("status") or server.get("status"), 20)
    if status in ("deleted", "deprecated"):
        why = _text(meta.get("statusMessage"), DETAIL_CHARACTERS)
        return replace(entry, reason=Reason("WITHDRAWN", why))
    reasons: list[Reason] = []
    for read, key in ((_package, "packages"), (_remote, "remotes")):
        for way in _objects(server.get(key))[:MAX_WAYS]:
            try:
                return replace(entry, choice=read(way))
            except _Unusable as unusable:
                reasons.append(unusable.reason)
    reason = min(reasons, key=lambda one: one.code == "OTHER_KIND", default=Reason("OTHER_KIND"))
    return replace(entry, reason=reason)


def _package(raw: Mapping[str, JSON]) -> Package:
    """Read a package. Raise `_Unusable` if it is not installed and started by its name and version alone.

    What is checked is what is shown: a text that cleaning changed has none of these forms.
    """
    kind, transport = _text(raw.get("registryType"), 20).lower(), mapping(raw.get("transport"))
    if kind not in _KINDS or transport.get("type", "stdio") != "stdio":
        raise _Unusable(kind if kind not in _KINDS else str(transport["type"]), "OTHER_KIND")
    form = _KINDS[kind]
    identifier = _text(raw.get("identifier"), DETAIL_CHARACTERS)
    version = _text(raw.get("version"), SHORT_CHARACTERS)
    home, runtime = str(raw.get("registryBaseUrl") or ""), _text(raw.get("runtimeHint"), 40)
    harmless = _NEEDLESS | {identifier, f"{identifier}{form['joint']}{version}"}
    given = [
        " ".join(str(one[key]) for key in ("name", "value", "default") if one.get(key))
        for one in _objects(raw.get("runtimeArguments"))
    ]
    checks = (
        (re.fullmatch(form["name"], identifier), identifier),
        (re.fullmatch(form["version"], version, re.ASCII), version),
        (home.rstrip("/") in form["homes"], home),
        (runtime in form["runtimes"], runtime),
        *((argument in harmless, argument) for argument in given),
    )
    for is_fine, detail in checks:
        if not is_fine:
            raise _Unusable(detail)
    arguments = [_argument(number, one) for number, one in enumerate(_few(raw, "packageArguments"), 1)]
    environment = [_named(one, _VARIABLE_NAME, _LOADER) for one in _few(raw, "environmentVariables")]
    return Package(kind, identifier, version, tuple(arguments), tuple(environment))


def _argument(position: int, raw: Mapping[str, JSON]) -> Variable:
    if raw.get("type") != "named":
        hint = _text(raw.get("valueHint"), 40)
        flag, name = "", hint if _VARIABLE_NAME.fullmatch(hint) else f"argument_{position}"
    else:
        flag = name = str(raw.get("name"))
        if not _FLAG.fullmatch(flag) or len(flag) > SHORT_CHARACTERS:
            raise _Unusable(flag)
    variable = _variable(name, raw)
    if variable.secrets or (variable.secret and variable.required):  # every process would see them
        raise _Unusable(variable.value or name)
    return replace(variable, flag=flag)


def _named(
    raw: Mapping[str, JSON], form: re.Pattern[str], refused: re.Pattern[str], *, is_remote: bool = False
) -> Variable:
    name = raw.get("name")
    if not isinstance(name, str) or not form.fullmatch(name) or refused.fullmatch(name):
        raise _Unusable(str(name))
    return _variable(name, raw, is_remote=is_remote)


def _remote(raw: Mapping[str, JSON]) -> Remote:
    kind, shown = _text(raw.get("type"), 40), _text(raw.get("url"), VALUE_CHARACTERS)
    if kind != "streamable-http":
        raise _Unusable(kind, "OTHER_KIND")
    if shown != raw.get("url") or remote_fault(shown):
        raise _Unusable(shown)
    url, secrets = _with_references(shown, is_remote=True)
    headers = [_named(one, _HEADER_NAME, _TRANSPORT_HEADER, is_remote=True) for one in _few(raw, "headers")]
    return Remote(url, tuple(headers), secrets)


def _variable(name: str, raw: Mapping[str, JSON], *, is_remote: bool = False) -> Variable:
    form = raw.get("format")
    default = _exact(raw.get("default"), name)
    value, secrets = _with_references(
        _exact(raw.get("value"), name), mapping(raw.get("variables")), is_remote=is_remote
    )
    return _checked(
        Variable(
            name=name,
            description=_text(raw.get("description"), DETAIL_CHARACTERS),
            required=raw.get("isRequired") is True and not value,
            secret=raw.get("isSecret") is True or (form != "filepath" and bool(_SECRET.search(name))),
            default="" if value or "${" in default else default,  # another host's own variables
            format=form if form in ("boolean", "filepath") else "string",
            value=value,
            secrets=secrets,
        )
    )


def _with_references(
    text: str, declared: Collection[str] = (), *, is_remote: bool
) -> tuple[str, tuple[Variable, ...]]:
    """Write each value that a person fills in as a reference to a secret; return the text and the secrets.

    Those are `${NAME}`, which must never mean a variable of this machine, and `{name}` if it is declared or
    stands in a remote.
    """
    found: dict[str, Variable] = {}

    def reference(match: re.Match[str]) -> str:
        dollar, name = match.groups()
        if not (dollar or is_remote or name in declared):
            return match[0]
        secret = _checked(Variable(name, required=True, secret=True))
        found[secret.key] = secret
        return f"${{{secret.key}}}"

    if "${" in _PLACEHOLDER.sub("", text):
        raise _Unusable(text)
    return _PLACEHOLDER.sub(reference, text), tuple(found.values())


def _checked(variable: Variable) -> Variable:
    if not _VARIABLE_NAME.fullmatch(variable.key):
        raise _Unusable(variable.name)
    return variable


def _exact(value: JSON, name: str) -> str:
    """Return a text that is used unchanged. Raise `_Unusable` if a reader would not see all of it."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value) if isinstance(value, (str, int, float)) else ""
    if len(text) > VALUE_CHARACTERS:
        raise _Unusable(name)
    if text != visible(text):
        raise _Unusable(text)
    return text


def _few(raw: Mapping[str, JSON], key: str) -> list[dict[str, JSON]]:
    found = _objects(raw.get(key))
    if len(found) > MAX_INPUTS:
        raise _Unusable(key)
    return found


def _objects(value: JSON) -> list[dict[str, JSON]]:
    return [one for one in array(value) if isinstance(one, dict)]


def _text(value: JSON, limit: int) -> str:
    """Return a text to be shown: on one line, nothing in it hidden, cut."""
    return on_one_line(visible(" ".join(value[: 4 * limit].split())), limit) if isinstance(value, str) else ""
