"""Entries of the MCP registry: what a server is, how it is installed, and why it cannot be installed here.

Texts are their author's word, cleaned to be shown; what becomes part of a command is exact
(app/installs/server_json.py).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.settings import is_own

ReasonCode = Literal[
    "DELETED",
    "DEPRECATED",
    "NO_PACKAGE",
    "OCI_ONLY",
    "OTHER_KIND",
    "SSE_ONLY",
    "NOT_STDIO",
    "NOT_EXACT",
    "BAD_IDENTIFIER",
    "OTHER_REGISTRY",
    "ODD_RUNTIME",
    "ODD_ARGUMENT",
    "ODD_VARIABLE",
    "BAD_ADDRESS",
    "TOO_LARGE",
]
"""Why nothing can be installed; `reason_said` says each."""
Format = Literal["string", "number", "boolean", "filepath"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something cannot be installed here; `detail` is the word at fault, cleaned, or ""."""

    code: ReasonCode
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """One value: an environment variable, a header, an argument's, or what stands for `{name}` in a template.

    `value` is the author's and not to be changed; each `{name}` in it that `variables` has is filled in.
    Without one a person gives it, or `default` counts.
    """

    name: str
    description: str = ""
    required: bool = False
    secret: bool = False
    default: str = ""
    placeholder: str = ""
    choices: tuple[str, ...] = ()
    format: Format = "string"
    value: str = ""
    variables: tuple["Variable", ...] = ()

    @property
    def key(self) -> str:
        """Under which name a value that a person gives is kept: X_API_KEY, db_path. The names of our own
        settings are never filled in for a server, so SERVER_OPENAI_API_KEY stands for OPENAI_API_KEY."""
        key = re.sub(r"\W", "_", self.name.lstrip("-"), flags=re.ASCII)
        return f"SERVER_{key}" if key[:1].isdigit() or is_own(key) else key

    @property
    def inputs(self) -> tuple["Variable", ...]:
        """What a person may give of it: itself, or the variables of its template."""
        return self.variables if self.value else (self,)


@dataclass(frozen=True, slots=True)
class Argument:
    """One of a package's own arguments: positional where `flag` is "", else written `flag value`."""

    flag: str
    input: Variable


@dataclass(frozen=True, slots=True)
class Package:
    """A package of npm or PyPI, ready to be installed, or of another kind. One with a `fault` has no
    arguments and no environment: it is only to be shown."""

    kind: str
    identifier: str
    version: str
    transport: str = "stdio"
    arguments: tuple[Argument, ...] = ()
    environment: tuple[Variable, ...] = ()
    sha256: str = ""
    """Of the package's file, where its author names it."""
    fault: Reason | None = None

    @property
    def inputs(self) -> tuple[Variable, ...]:
        """All that a person may give, required or not."""
        return _inputs((*(argument.input for argument in self.arguments), *self.environment))


@dataclass(frozen=True, slots=True)
class Remote:
    """A server on the web; `url` is a template that `variables` fill in, its host never is."""

    kind: str
    url: str
    headers: tuple[Variable, ...] = ()
    variables: tuple[Variable, ...] = ()
    fault: Reason | None = None

    @property
    def inputs(self) -> tuple[Variable, ...]:
        """All that a person may give, required or not."""
        return _inputs((*self.variables, *self.headers))


@dataclass(frozen=True, slots=True)
class Entry:
    """One server of the registry. Texts are its author's, and nothing says who that is but `namespace`."""

    name: str
    title: str
    description: str
    version: str
    packages: tuple[Package, ...] = ()
    remotes: tuple[Remote, ...] = ()
    status: str = "active"
    status_message: str = ""
    repository: str = ""
    offline: bool = False
    """Its publisher says that it needs no network."""
    programs: bool = False
    """Its publisher says that it starts other programs."""

    @property
    def namespace(self) -> str:
        """What its publisher proved to the registry: a domain (com.example), an account (io.github.ana)."""
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
    def _ways(self) -> Sequence[Package | Remote]:
        return (*self.packages, *self.remotes)

    @property
    def choice(self) -> Package | Remote | None:
        """What would be installed: a package that runs here, else a remote; None where nothing can be."""
        if self.status in ("deleted", "deprecated"):
            return None
        return next((way for way in self._ways if way.fault is None), None)

    @property
    def reason(self) -> Reason | None:
        """Why nothing can be installed; None where something can."""
        if self.choice is not None:
            return None
        if self.status == "deleted":
            return Reason("DELETED", self.status_message)
        if self.status == "deprecated":
            return Reason("DEPRECATED", self.status_message)
        faults = [way.fault for way in self._ways if way.fault is not None]
        return min(faults, key=_is_of_other_kind, default=Reason("NO_PACKAGE"))

    @property
    def needed(self) -> tuple[Variable, ...]:
        """What a person must give before it can run."""
        given = self.choice.inputs if self.choice is not None else ()
        return tuple(one for one in given if one.required and not one.default)


def _inputs(values: Iterable[Variable]) -> tuple[Variable, ...]:
    """By key, each once."""
    return tuple({one.key: one for value in values for one in value.inputs}.values())


def _is_of_other_kind(reason: Reason) -> bool:
    return reason.code in ("OCI_ONLY", "OTHER_KIND", "SSE_ONLY")
