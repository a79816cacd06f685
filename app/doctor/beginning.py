"""Bounded reading of what a server answers."""

import time
from collections.abc import Iterator

ANSWER_SECONDS = 10.0


def read_beginning(chunks: Iterator[bytes], longest: int) -> bytes:
    """Return up to `longest` bytes, as far as they arrive within ANSWER_SECONDS."""
    read, until = b"", time.monotonic() + ANSWER_SECONDS
    for chunk in chunks:
        read += chunk
        if len(read) >= longest or time.monotonic() > until:
            break
    return read[:longest]
