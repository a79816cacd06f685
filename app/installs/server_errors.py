"""Why a server was not installed or removed."""

from typing import Literal

from app.errors import RecadoError

InstallCode = Literal[
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
    "BAD_VALUE",
    "SECRET_ARGUMENT",
    "UNKNOWN",
    "FAILED",
]


class InstallError(RecadoError):
    """A server that was not installed or removed: `code` says what kind of reason, the text is in English."""

    def __init__(self, code: InstallCode, text: str) -> None:
        super().__init__(text)
        self.code = code
