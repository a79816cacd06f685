"""`${VARIABLE}` and `${VARIABLE:-default}` in what is written of a server, filled in."""

import re
from collections.abc import Mapping

from app.errors import RecadoError
from app.settings import is_own

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_]\w{0,127})(?::-(.*))?", re.ASCII | re.DOTALL)


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
