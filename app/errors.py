"""Errors that more than one room raises or catches."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class RecadoError(Exception):
    """Base of our own errors; its text says what was expected, what came, and what to do.

    `field` names the field of a form that it is about, "" for none.
    """

    def __init__(self, *args: object, field: str = "") -> None:
        super().__init__(*args)
        self.field = field

    @property
    def told(self) -> str:
        """Return the text as it was raised: a lazy one can be said in another language."""
        return self.args[0] if self.args and isinstance(self.args[0], str) else str(self)


def first_fault(error: "ValidationError") -> str:
    """Say where the first fault is, and which; without the value, which may be a secret."""
    fault = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, fault["loc"]))
    return ": ".join(filter(None, (where, fault["msg"].removeprefix("Value error, "))))


class ConfigurationError(RecadoError):
    """A setting that cannot work; the text names the variable and the cure."""


class StoreError(RecadoError):
    """The database could not take a write; nothing of it was kept."""


class StoreLockedError(StoreError):
    """Another server holds the database file."""
