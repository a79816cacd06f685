"""What a call came to that gave no result: the same words in the server and in a worker."""

from app.http.errors import FetchError
from app.tools.fetching import fetch_failure
from app.tools.masking import mask_text, without_paths
from app.tools.result import ToolResult
from app.tools.validation import InvalidArguments

_LONGEST_MESSAGE = 500


def raised(tool: str, error: BaseException) -> ToolResult:
    """The result of a call that raised; INTERNAL where the fault is the tool's own."""
    if isinstance(error, FetchError):
        return fetch_failure(error)
    if isinstance(error, InvalidArguments):
        return ToolResult.failure("BAD_REQUEST", str(error), "mend the arguments and call it again")
    return ToolResult.failure("INTERNAL", f"{tool} failed with {type(error).__name__}: {own_words(error)}")


def too_large(tool: str, limit: int) -> ToolResult:
    """The result of a call that returned more than `limit` bytes of JSON."""
    return ToolResult.failure(
        "OUTPUT_TOO_LARGE",
        f"{tool} returned more than {limit} bytes",
        "ask for less: a narrower search, fewer items or a part of the file",
    )


def own_words(error: BaseException) -> str:
    """An exception's own words on one line, without paths and secrets."""
    try:
        text = str(error)
    except BaseException:  # the class is the tool's: its text may raise anything
        return "(its message cannot be read)"
    line = " ".join(text[: _LONGEST_MESSAGE * 2].split())
    return mask_text(without_paths(line))[:_LONGEST_MESSAGE] or "no message"
