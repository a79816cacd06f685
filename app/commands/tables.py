"""Plain aligned tables."""

from collections.abc import Sequence
from datetime import datetime

from app.text import visible


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the rows under their heads, each column as wide as its widest cell; a row is one line."""
    lines = [tuple(head), *(tuple(map(visible, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def moment(at: float) -> str:
    """Format a time in this machine's zone."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
