"""The machine that one server runs on: its faults, which `faults.py` brings about, and its memory."""

import os
from collections.abc import Callable
from pathlib import Path

from tests.world import Server

MEMORY = 200 * 1024 * 1024
"""Bytes by which no body and no burst of them may make the server grow."""


def injected(**faults: object) -> dict[str, str]:
    """Return the environment that brings these faults about; see `faults.py` for their names."""
    return {f"CHAOS_{name}": str(value) for name, value in faults.items()}


def dial(path: Path) -> Callable[[float], None]:
    """Makes a file of seconds for `injected`, 0 at first; gives what sets it while the server runs."""

    def turn(seconds: float) -> None:
        new = path.with_suffix(".new")
        new.write_text(str(seconds))
        os.replace(new, path)

    turn(0)
    return turn


def resident(server: Server) -> int:
    """Bytes of memory that the server holds now."""
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
