"""The beginning of what a server answers, however much it sends and however slowly."""

import time
from collections.abc import Iterator

ANSWER_SECONDS = 10.0


def read_beginning(chunks: Iterator[bytes], longest: int) -> bytes:
    """At most `longest` bytes, as far as they arrive within ANSWER_SECONDS."""
    read, until = b"", time.monotonic() + ANSWER_SECONDS
    for chunk in chunks:
        read += chunk
        if len(read) >= longest or time.monotonic() > until:
            break
    return read[:longest]
