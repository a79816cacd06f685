"""The machine that one server runs on: its faults, which `inject/` brings about, and its memory."""

import os
from collections.abc import Callable
from pathlib import Path

from tests.world import Server

INJECT = Path(__file__).with_name("inject")
MEMORY = 200 * 1024 * 1024
"""Bytes by which no body and no burst of them may make the server grow."""


def injected(server: Server, **faults: object) -> dict[str, str]:
    """The environment that brings these faults about; see `inject/sitecustomize.py` for their names."""
    path = f"{INJECT}:{server.env['PYTHONPATH']}"
    return {"PYTHONPATH": path} | {f"CHAOS_{name}": str(value) for name, value in faults.items()}


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
