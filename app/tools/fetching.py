"""What a request that was refused or failed is to a tool's caller."""

from app.http.errors import FetchError
from app.tools.result import ToolResult

_REFUSED = frozenset({"BAD_ADDRESS", "NOT_PUBLIC", "BAD_REDIRECT"})


def fetch_code(error: FetchError) -> str:
    """The code of the contract for it."""
    if error.code in _REFUSED:
        return "BAD_REQUEST"
    return "TIMEOUT" if error.code == "TIMED_OUT" else "UPSTREAM_ERROR"


def fetch_failure(error: FetchError) -> ToolResult:
    """The result of a tool that did not catch it."""
    return ToolResult.failure(fetch_code(error), str(error))
