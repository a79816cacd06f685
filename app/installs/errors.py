"""Errors of finding, fetching, installing and removing."""

from typing import Literal

from app.errors import RecadoError

InstallCode = Literal[
    # of an entry of the registry; ODD_ENTRY: it asks for what could be more than it seems
    "DELETED",
    "DEPRECATED",
    "NO_PACKAGE",
    "OTHER_KIND",
    "ODD_ENTRY",
    "REGISTRY_AWAY",
    "NOT_A_SKILL",
    "SKILL_NOT_FOUND",
    "UNAVAILABLE",
    "NOT_FOUND",
    "AWAY",
    "NO_PROGRAM",
    "TOO_LARGE",
    "NO_SPACE",
    "TOO_SLOW",
    "CHANGED",
    "NOT_INSTALLABLE",
    "NO_SANDBOX",
    "NO_NODE",
    "NO_PIP",
    "NEEDS_VALUE",
    "NEEDS_FOLDER",
    "BAD_VALUE",
    "SECRET_ARGUMENT",
    "UNKNOWN",
    "FAILED",
]


class InstallError(RecadoError):
    """Something that was not installed or removed: `code` is the kind of reason, the text is in English.

    `about` is the name of the variable or package that it is about, which a person is told too.
    """

    def __init__(self, code: InstallCode, text: str, about: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.about = about


class QuarantineError(InstallError):
    """Bytes that do not become a skill; outside names in the text are made visible."""

    def __init__(self, text: str) -> None:
        super().__init__("NOT_A_SKILL", text)


class RegistryError(InstallError):
    """A registry that did not answer a question; the text says why, without its address."""

    def __init__(self, text: str) -> None:
        super().__init__("REGISTRY_AWAY", text)
