"""Errors that more than one room raises or catches."""


class RecadoError(Exception):
    """Base of our own errors; its text says what was expected, what came, and what to do."""


class ConfigurationError(RecadoError):
    """A setting that cannot work; the text names the variable and the cure."""


class StoreError(RecadoError):
    """The database could not take a write; nothing of it was kept."""


class StoreLockedError(StoreError):
    """Another server holds the database file."""
