"""Errors of finding, fetching, installing and removing."""

from typing import Literal

from app.errors import RecadoError

# Of an entry of the registry; ODD_ENTRY: it asks for what could be more than it seems.
EntryCode = Literal["DELETED", "DEPRECATED", "NO_PACKAGE", "OTHER_KIND", "ODD_ENTRY"]
# Of npm, pip and the disk.
PackageCode = Literal["NO_NODE", "NO_PIP", "NOT_FOUND", "AWAY", "NO_SPACE", "TOO_LARGE", "TOO_SLOW", "FAILED"]
ContentCode = Literal["NOT_A_SKILL", "NO_PROGRAM", "NOT_INSTALLABLE", "CHANGED"]
ValueCode = Literal["NEEDS_VALUE", "NEEDS_FOLDER", "BAD_VALUE", "SECRET_ARGUMENT"]
PlaceCode = Literal["REGISTRY_AWAY", "SKILL_NOT_FOUND", "UNKNOWN", "UNAVAILABLE", "NO_SANDBOX"]
InstallCode = EntryCode | PackageCode | ContentCode | ValueCode | PlaceCode


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
