"""Why something from outside was not fetched."""

from typing import Literal

from app.errors import RecadoError

Code = Literal[
    "BAD_ADDRESS",
    "NOT_PUBLIC",
    "NO_SUCH_HOST",
    "NO_CONNECTION",
    "BAD_CERTIFICATE",
    "BAD_REDIRECT",
    "BAD_STATUS",
    "BAD_ANSWER",
    "TOO_LARGE",
    "TIMED_OUT",
]
"""BAD_ADDRESS: not an http(s) address that we use. NOT_PUBLIC: this machine, its network, a special range.
BAD_REDIRECT: too many of them, or from https to http. BAD_STATUS: a download that is not 200. BAD_ANSWER:
broken off, not HTTP, headers without end, an encoding that nobody asked for."""


class FetchError(RecadoError):
    """Nothing usable came; `code` says why, the text says it in English without an address of ours."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code: Code = code


def too_large(limit: int) -> FetchError:
    return FetchError("TOO_LARGE", f"the answer has more than {limit} bytes")
