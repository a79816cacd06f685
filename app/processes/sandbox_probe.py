"""The trial of a sandbox from the inside: prints as JSON the names of what it reached.

    python -I -S sandbox_probe.py mark port path…

`mark`: a value in the environment of the process that started the sandbox; `port`: a TCP port that listens
outside, as the abstract unix socket "\\0<mark>" does; the paths must not be readable, nor the kernel's
settings writable.
"""

import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path


def main(mark: str, port: str, *paths: str) -> None:
    attempts: dict[str, Callable[[], object]] = {
        "the environment of another process": lambda: _environment(mark.encode()),
        "the network": lambda: socket.create_connection(("127.0.0.1", int(port)), 1),
        "a socket of another process": lambda: _abstract(mark),
        "the kernel's settings": lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
        "a new process": _process,
        "writing to its own folder": lambda: Path("written").write_bytes(b""),
        **{path: partial(os.open, path, os.O_RDONLY) for path in paths},
    }
    json.dump([name for name, attempt in attempts.items() if _succeeds(attempt)], sys.stdout)


def _succeeds(attempt: Callable[[], object]) -> bool:
    with contextlib.suppress(OSError, LookupError):
        attempt()
        return True
    return False


def _environment(mark: bytes) -> None:
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in file.read_bytes():
                return
    raise LookupError


def _abstract(mark: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"\0{mark}")


def _process() -> None:
    if os.fork() == 0:
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
