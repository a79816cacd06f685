"""Faults of the machine for one server, which its process brings about before anything of ours runs.

Each is switched by an environment variable, so that the product is started exactly as its users start it:

    CHAOS_CLOCK=FILE      the wall clock is off by the seconds that FILE holds; the monotonic one is not
    CHAOS_DISK=FILE       every commit takes the seconds that FILE holds, as on a disk that is slow to sync
    CHAOS_DIE_AFTER=SQL   kill -9 in the instant after the first commit after which SQL finds a row
    CHAOS_DIE_BEFORE=SQL  the same in the instant before that commit, so that nothing of it is kept
    CHAOS_DIE_RENAMING=RE kill -9 in the instant before a file or folder gets a path in which RE is found
"""

import functools
import os
import re
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

_FAULTS: dict[str, str] = {}
_true_time = time.time


def switch_on() -> None:
    """Bring about the faults that the environment names."""
    _FAULTS.update({name[6:]: value for name, value in os.environ.items() if name.startswith("CHAOS_")})
    if "DIE_RENAMING" in _FAULTS:
        sys.addaudithook(_die_renaming)
    if _FAULTS.keys() & {"DISK", "DIE_BEFORE", "DIE_AFTER"}:
        sqlite3.connect = functools.partial(sqlite3.connect, factory=_Connection)


def _time() -> float:
    return _true_time() + _seconds("CLOCK") if "CLOCK" in _FAULTS else _true_time()


def _seconds(name: str) -> float:
    return float(Path(_FAULTS[name]).read_text() or 0)


class _Connection(sqlite3.Connection):
    """Commits slowly, or as the last thing it does."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql != "COMMIT":
            return super().execute(sql, *parameters)
        begun = time.monotonic()
        while "DISK" in _FAULTS and time.monotonic() < begun + _seconds("DISK"):
            time.sleep(0.01)
        self._die("DIE_BEFORE")
        done = super().execute(sql)
        self._die("DIE_AFTER")
        return done

    def _die(self, when: str) -> None:
        if when in _FAULTS and super().execute(_FAULTS[when]).fetchone():
            os.kill(os.getpid(), signal.SIGKILL)


def _die_renaming(event: str, details: Any) -> None:
    if event == "os.rename" and re.search(_FAULTS["DIE_RENAMING"], str(details[1])):
        os.kill(os.getpid(), signal.SIGKILL)


time.time = _time  # at import, before others keep a reference to it
