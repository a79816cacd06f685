"""What tool calls are counted by: models and tools make words up, and figures must stay bounded."""

import re
from collections.abc import Collection

UNKNOWN = "unknown"
"""In place of a name that no tool has."""
OK = "ok"
OTHER = "OTHER"
MOST_CODES = 32
"""Kinds of failure of one tool; what goes beyond them is counted as OTHER."""

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def counted_code(code: str, known: Collection[str] = ()) -> str:
    """The code itself; OTHER where it is a text that names no kind of failure, or one too many.

    `known` are the codes that the tool was counted by before.
    """
    if not _CODE.fullmatch(code):
        return OTHER
    room = code == OK or code in known or len(set(known) - {OK, OTHER}) < MOST_CODES
    return code if room else OTHER
