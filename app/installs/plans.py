"""The plan of a server's install: its command, what it is given, what it may do.

A plan is made of a registry entry and of values for its named variables; no other word of a command can be
supplied. Its `subject` is the hash of all of it, which an owner's yes is for.
"""

import dataclasses
import hashlib
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from app.installs.entries import Entry, Package, Reason, Remote, Variable
from app.installs.errors import InstallError
from app.mcp.definitions import is_server_name
from app.people import Audience
from app.processes.sandbox import Grants
from app.skills.findings import Finding, find
from app.text import visible
from app.tools.paths import PathTraversalError, validate_path

_LONGEST_VALUE = 2000
_NAME_LENGTH = 32
_COMMON = frozenset({"mcp", "server", "servers", "model", "context", "protocol", "the", "for", "official"})
# Words of package names whose servers are of no use without starting other programs.
_RUNS_PROGRAMS = frozenset({"git", "shell", "terminal", "ffmpeg"})
_FOLDER = re.compile(r"dir|folder|root|workspace|repo|vault|project|allowed", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?", re.ASCII)
_KEPT = re.compile(r"memory|stor(?:e|age)|data|db|sqlite|cache", re.IGNORECASE)


@dataclass(frozen=True)
class Plan:
    """An install of a package (`kind` npm or pypi) that runs here, or of a remote server (`kind` "").

    `env`, `url` and `headers` hold `${VARIABLE}` where its own `secrets` are filled in, which are given
    outside the chat. `home` is the folder where it starts and may write. `replaces` is the subject of the
    install that it would replace, or ""; `edited` tells that the operator changed that one's entry, which
    would be lost.
    """

    name: str
    registry_id: str
    title: str
    description: str
    version: str
    kind: str = ""
    identifier: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    home: str = ""
    secrets: tuple[Variable, ...] = ()
    grants: Grants = dataclasses.field(default_factory=Grants)
    audience: Audience = "members"
    findings: tuple[Finding, ...] = ()
    replaces: str = ""
    edited: bool = False

    @property
    def label(self) -> str:
        return f"{self.registry_id} {self.version}"

    @property
    def command_line(self) -> str:
        """The whole command: the package's own program with its arguments; "" for a remote."""
        if self.url:
            return ""
        runtime, joint = ("node", "@") if self.kind == "npm" else ("python", "==")
        return shlex.join([runtime, f"{self.identifier}{joint}{self.version}", *self.args])

    @cached_property
    def text(self) -> str:
        """The plan as canonical JSON."""
        return json.dumps(dataclasses.asdict(self), default=str, sort_keys=True, ensure_ascii=False)

    @cached_property
    def subject(self) -> str:
        """The sha256 of `text`."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_plan(text: str) -> Plan:
    """Read the `text` of a plan. Raise `ValueError` if it is none."""
    return TypeAdapter(Plan).validate_json(text)


def make_plan(
    entry: Entry,
    name: str,
    *,
    home: Path,
    workspace: Path,
    values: Mapping[str, str],
    folder: str = "",
    network: bool | None = None,
    replaces: str = "",
    edited: bool = False,
) -> Plan:
    """Plan the server `name` with its folder `home`; `values` are by the keys of its variables.

    `folder`, in the workspace, is for the variable that needs one and has no value; "." is all of it.
    It gets the network as `network` says; if that is None, unless its publisher says that it needs none.
    Raises `InstallError` if it cannot be installed, or needs a value that was not given.
    """
    choice = entry.choice
    if choice is None:
        reason = entry.reason or Reason("NO_PACKAGE")
        raise InstallError(reason.code, f"{entry.name} cannot be installed", reason.detail)
    for key, value in values.items():
        _check_value(entry.inputs.get(key), key, value)
    filler = _Filler(home, workspace, values, folder)
    grants = Grants()
    started: dict[str, Any]
    if isinstance(choice, Remote):
        filler.ask(choice.secrets)
        headers = tuple(filler.settings(choice.headers))
        started = {"version": entry.version, "url": choice.url, "headers": headers}
    else:
        started = {"kind": choice.kind, "identifier": choice.identifier, "version": choice.version}
        started |= {"home": str(home), "args": tuple(_arguments(choice, filler))}
        started |= {"env": tuple(filler.settings(choice.environment))}
        grants = Grants(
            network=not entry.offline if network is None else network,
            programs=bool(_RUNS_PROGRAMS & set(_words(choice.identifier))),
            folders_write=tuple(sorted(filler.granted)),
        )
    secrets = tuple(filler.asked.values())
    texts = {"title": entry.title, "description": entry.description}
    texts |= {one.name: one.description for one in entry.inputs.values()}
    return Plan(
        name=name,
        registry_id=entry.name,
        title=entry.title,
        description=entry.description,
        **started,
        secrets=secrets,
        grants=grants,
        audience="owners" if secrets or grants.folders_write else "members",
        findings=find({place: text.encode() for place, text in texts.items() if text.strip()}),
        replaces=replaces,
        edited=edited,
    )


def short_name(entry: Entry, taken: Collection[str]) -> str:
    """Choose a name that is not taken: the words of its registry name beside "mcp" and "server"."""
    own = entry.name.partition("/")[2]
    words = [word for word in _words(own) if word not in _COMMON]
    words = words or [word for word in _words(entry.namespace)[-1:] if word not in _COMMON]
    name = "-".join(words)[:_NAME_LENGTH].strip("-")
    name = name if is_server_name(name) else "server"
    lower = {one.lower() for one in taken}
    numbered = (f"{name}-{number}" for number in range(2, len(lower) + 3))
    return next(one for one in (name, *numbered) if one.lower() not in lower)


class _Filler:
    """Fills in given values, and collects the folders they grant and the values still to be given."""

    def __init__(self, home: Path, workspace: Path, values: Mapping[str, str], folder: str) -> None:
        self._home = home
        self._workspace = workspace
        self._values = values
        self._folder = folder
        self.granted: set[Path] = set()
        self.asked: dict[str, Variable] = {}

    def settings(self, variables: Iterable[Variable]) -> Iterator[tuple[str, str]]:
        """Yield the variables that have a value, or may be given one."""
        for variable in variables:
            self.ask(variable.secrets)
            if value := variable.value or self._later(variable):
                yield variable.name, value

    def ask(self, variables: Iterable[Variable]) -> None:
        """Note values that are filled in once they are given."""
        for one in variables:
            self.asked[one.key] = one

    def now(self, variable: Variable) -> str:
        """Return the value as it will stand in a command; "" for none, and for a secret."""
        if variable.secret:
            return ""
        given = self._values.get(variable.key, "")
        return self._path(variable, given) if variable.format == "filepath" else given or variable.default

    def _later(self, variable: Variable) -> str:
        """Return the value, or the reference that is filled in once it is given."""
        if value := self.now(variable):
            return value
        if not (variable.secret or variable.required):
            return ""
        self.ask([variable])
        return f"${{{variable.key}}}" if variable.required else f"${{{variable.key}:-}}"

    def _path(self, variable: Variable, given: str) -> str:
        """Return a path that it may write: in the workspace if a person named one, else in its own folder.

        Raises `InstallError` for a folder that it needs and that nobody named.
        """
        if given:
            return self._granted_path(variable, given)
        default = Path(variable.default)
        if variable.default and not default.is_absolute() and not {"..", "~"} & set(default.parts):
            return str(self._home / default)
        if variable.required and _FOLDER.search(variable.key):
            if not self._folder:
                raise InstallError("NEEDS_FOLDER", f"it needs a folder for {variable.key}")
            return self._granted_path(variable, self._folder)
        is_kept = _KEPT.search(variable.key)
        return str(self._home / variable.key.lower()) if variable.required or is_kept else ""

    def _granted_path(self, variable: Variable, given: str) -> str:
        try:
            place = validate_path(given, self._workspace)
        except PathTraversalError as error:
            raise InstallError("BAD_VALUE", f"{variable.key}: {error}", variable.key) from error
        is_file = place.suffix and not place.is_dir()
        self.granted.add(place.parent if is_file else place)
        return str(place)


def _arguments(package: Package, filler: _Filler) -> Iterator[str]:
    for variable in package.arguments:
        value = variable.value or filler.now(variable)
        if variable.required and not value:
            if variable.secret:
                why = f"it takes {variable.key} on its command line, where others see it"
                raise InstallError("SECRET_ARGUMENT", why, variable.key)
            raise InstallError("NEEDS_VALUE", f"it needs a value for {variable.key}", variable.key)
        if variable.format == "boolean" and variable.flag:
            yield from [variable.flag] if value == "true" else []
        elif value:
            yield from (variable.flag, value) if variable.flag else (value,)


def _check_value(variable: Variable | None, key: str, value: str) -> None:
    """Raise `InstallError` for a value that does not fit its variable, or could be more than a value."""
    fault = ""
    if variable is None:
        fault = f"it has no variable {visible(key)[:80]}"
    elif variable.secret:
        fault = f"{key} is a secret, which is given in the terminal or the console alone"
    elif not 0 < len(value) <= _LONGEST_VALUE or value != visible(value) or "${" in value:
        fault = f"{key} is a text of 1 to {_LONGEST_VALUE} characters, all of them visible"
    elif value.startswith("-") and not _NUMBER.fullmatch(value):
        fault = f"{key} does not begin with a hyphen: it would be read as an option"
    if fault:
        raise InstallError("BAD_VALUE", fault, key)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
