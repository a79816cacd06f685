"""Ending processes whole: whatever a program starts ends with it, and it ends with the server.

A program that runs the code of others may hang, fork and detach, so it cannot be trusted to end things. Its
reaper runs nothing but the lines below, adopts what detaches, and waits for one of two events. Plain Python,
which loads in a moment.
"""

import ctypes
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

_ROUNDS = 100


def fork_below_reaper(connection: int) -> None:
    """Fork: return in the new process, which becomes the program; the caller is its reaper.

    Once the other end of the socket `connection` is closed, or the program has ended, the reaper kills
    everything below it and exits with the program's status, or 128 + the signal that killed it.
    """
    reaper = os.getpid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    ended: dict[int, int] = {}
    noticed, notice = os.pipe()
    os.set_blocking(noticed, False)
    os.set_blocking(notice, False)
    signal.signal(signal.SIGTERM, lambda *_: None)  # systemd sends it to all: the server still drains
    signal.signal(signal.SIGCHLD, lambda *_: _reap(ended))
    signal.set_wakeup_fd(notice, warn_on_full_buffer=False)
    worker = os.fork()
    if worker == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(noticed)
        os.close(notice)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != reaper:  # it was killed before we asked to die with it
            os._exit(1)
        os.setsid()
        return
    _wait(connection, noticed, worker, ended)
    with suppress(ProcessLookupError):
        os.killpg(worker, signal.SIGKILL)  # at once, before it can fork once more
    kill_below(reaper)
    _reap(ended)
    status = os.waitstatus_to_exitcode(ended.get(worker, signal.SIGKILL))
    os._exit(status if status >= 0 else 128 - status)


def _wait(connection: int, noticed: int, worker: int, ended: dict[int, int]) -> None:
    """Wait until the server closed its end (poll(2) tells that unasked) or the worker ended."""
    events = select.poll()
    events.register(connection, 0)
    events.register(noticed, select.POLLIN)
    while worker not in ended:
        if any(source == connection for source, _ in events.poll()):
            return
        with suppress(BlockingIOError):
            os.read(noticed, 64)


def _reap(ended: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]


def prctl(option: int, value: int) -> None:
    """Call prctl(2) with a number; do nothing where the system has none."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def kill_below(root: int) -> None:
    """Kill every process below `root`, in as many rounds as it takes them to stop multiplying."""
    for _ in range(_ROUNDS):
        living = _living_below(root)
        if not living:
            return
        for pid in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def threads_below(root: int) -> int:
    """Count the threads of a process and of all below it."""
    family = {root, *_living_below(root)}
    return sum(threads for pid, _, _, threads in _processes() if pid in family)


def _living_below(root: int) -> set[int]:
    """Return the living processes whose parent, or its parent …, is `root`.

    One that ended counts as a parent: it keeps its children until its last thread is gone.
    """
    children: dict[int, list[tuple[int, bool]]] = {}
    for pid, parent, lives, _ in _processes():
        children.setdefault(parent, []).append((pid, lives))
    found: dict[int, bool] = {}
    waiting = [root]
    while waiting:
        for pid, lives in children.get(waiting.pop(), ()):
            if pid not in found:
                found[pid] = lives
                waiting.append(pid)
    return {pid for pid, lives in found.items() if lives}


def _processes() -> Iterator[tuple[int, int, bool, int]]:
    """Yield each process, its parent, if it lives, and the number of its threads, where there is /proc."""
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):
            if name.isdecimal():
                with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                    state, parent, *rest = file.read().rpartition(b")")[2].split()
                    yield int(name), int(parent), state not in (b"Z", b"X"), int(rest[15])
