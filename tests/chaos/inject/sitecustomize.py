"""Faults of the machine for one server: Python imports this first where the folder is on PYTHONPATH.

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

CLOCK, DISK = (os.environ.get(f"CHAOS_{name}", "") for name in ("CLOCK", "DISK"))
RENAMING = os.environ.get("CHAOS_DIE_RENAMING", "")
DIE = {when: os.environ.get(f"CHAOS_DIE_{when}", "") for when in ("BEFORE", "AFTER")}


def seconds(path: str) -> float:
    return float(Path(path).read_text() or 0)


class Connection(sqlite3.Connection):
    """Commits slowly, or as the last thing it does."""

    def execute(self, sql, *parameters):
        if sql != "COMMIT":
            return super().execute(sql, *parameters)
        until = time.monotonic()
        while DISK and time.monotonic() < until + seconds(DISK):
            time.sleep(0.01)
        self.die("BEFORE")
        done = super().execute(sql)
        self.die("AFTER")
        return done

    def die(self, when):
        if DIE[when] and super().execute(DIE[when]).fetchone():
            os.kill(os.getpid(), signal.SIGKILL)


def die_renaming(event, details):
    if event == "os.rename" and re.search(RENAMING, str(details[1])):
        os.kill(os.getpid(), signal.SIGKILL)


if RENAMING:
    sys.addaudithook(die_renaming)
if CLOCK:
    true_time = time.time
    time.time = lambda: true_time() + seconds(CLOCK)
if DISK or any(DIE.values()):
    sqlite3.connect = functools.partial(sqlite3.connect, factory=Connection)
