"""Ending a process with everything below it; plain Python, so that a worker loads it in a moment."""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

_ROUNDS = 100


def prctl(option: int, value: int) -> None:
    """prctl(2) with a number; nothing where the system has none."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def kill_below(root: int) -> None:
    """Kills every process that came from `root`, in as many rounds as it takes them to stop multiplying."""
    for _ in range(_ROUNDS):
        living = _living_below(root)
        if not living:
            return
        for pid in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _living_below(root: int) -> set[int]:
    """Processes whose parent, or its parent …, is `root`.

    One that ended counts as a parent: it keeps its children until its last thread is gone.
    """
    children: dict[int, list[tuple[int, bool]]] = {}
    for pid, parent, lives in _processes():
        children.setdefault(parent, []).append((pid, lives))
    found: dict[int, bool] = {}
    waiting = [root]
    while waiting:
        for pid, lives in children.get(waiting.pop(), ()):
            if pid not in found:
                found[pid] = lives
                waiting.append(pid)
    return {pid for pid, lives in found.items() if lives}


def _processes() -> Iterator[tuple[int, int, bool]]:
    """Each process, its parent, and whether it lives, as proc(5) tells; none where there is no /proc."""
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):
            if name.isdecimal():
                with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                    yield int(name), int(parent), state not in (b"Z", b"X")
