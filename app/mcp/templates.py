"""`${VARIABLE}` and `${VARIABLE:-default}` in what is written of a server, filled in."""

import re
from collections.abc import Mapping

from app.errors import RecadoError
from app.settings import is_own

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
_NO_SECRET = re.compile(r"(?:true|false|none|null|[~.]*/.*|.{0,3})", re.IGNORECASE | re.DOTALL)
"""What a variable with a secret's name may hold openly: a switch, or the path of a file."""


class TemplateError(RecadoError):
    """A reference that is never filled in; the text says what to write instead."""


class Filling:
    """Fills in texts from `values`, and keeps the names that it found there and those that it did not.

    A setting of ours is never filled in, whoever asks: TemplateError.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._given: dict[str, None] = {}
        self._missing: dict[str, None] = {}

    @property
    def given(self) -> tuple[str, ...]:
        """Variables that had a value."""
        return tuple(self._given)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values among them that are secrets, by their names or by what they look like."""
        return tuple(self._values[name] for name in self._given if is_secret(name, self._values[name]))

    @property
    def missing(self) -> tuple[str, ...]:
        """Variables without a value and without a default; they are left as they stand."""
        return tuple(self._missing)

    def fill(self, text: str) -> str:
        """Raises TemplateError."""
        return _REFERENCE.sub(self._value, text)

    def _value(self, reference: re.Match[str]) -> str:
        variable = _VARIABLE.fullmatch(reference[1])
        if variable is None:
            raise TemplateError(f"{reference[0]} is no variable; write ${{NAME}} or ${{NAME:-default}}")
        name, default = variable.groups()
        if is_own(name):
            raise TemplateError(
                f"${{{name}}} is a setting of this assistant, which no server is given; use another name, "
                f"such as ${{SERVER_{name.upper()}}}"
            )
        if value := self._values.get(name):
            self._given[name] = None
            return value
        if default is not None:
            return default
        self._missing[name] = None
        return reference[0]


def has_reference(text: str) -> bool:
    """Whether anything in a text is filled in."""
    return _REFERENCE.search(text) is not None


def is_secret(name: str, value: str) -> bool:
    """Whether the value of a variable or header of that name is to be kept to oneself."""
    named = _SECRET_NAME.search(name) is not None and not _NO_SECRET.fullmatch(value)
    return named or is_secret_text(value)


def is_secret_text(text: str) -> bool:
    """Whether a text looks like a secret, or holds one."""
    return _SECRET_VALUE.search(text) is not None
