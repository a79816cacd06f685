"""The process above a worker: whatever the worker starts ends with it, and it ends with the server.

A worker runs code of others, which may hang, fork and detach. So it is not the one who has to end things: its
keeper runs nothing but the lines below, adopts what detaches, and waits for one of two events.
"""

import os
import select
import signal
import tempfile
from contextlib import suppress

from app.processes.system import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, kill_below, prctl
from app.rmtree import remove


def keep(connection: int, home: str = "") -> None:
    """Returns in a new process, the worker, with this home ("": its own); the one that called keeps it.

    Once the other end of the socket `connection` is closed, or the worker has ended, everything below the
    keeper is killed, the home removed, and the keeper exits with the worker's status: 128 + the signal that
    killed it.
    """
    if os.getpid() == 1:  # of a sandbox, which ends with it and with the server
        return
    keeper = os.getpid()
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
        if os.getppid() != keeper:  # it was killed before we asked to die with it
            os._exit(1)
        os.setsid()
        if home:
            os.environ.update(HOME=home, TMPDIR=home)
            tempfile.tempdir = None  # chosen before; to be chosen again
        return
    _wait(connection, noticed, worker, ended)
    with suppress(ProcessLookupError):
        os.killpg(worker, signal.SIGKILL)  # at once, before it can fork once more
    kill_below(keeper)
    _reap(ended)
    if home:
        remove(home)
    status = os.waitstatus_to_exitcode(ended.get(worker, signal.SIGKILL))
    os._exit(status if status >= 0 else 128 - status)


def _wait(connection: int, noticed: int, worker: int, ended: dict[int, int]) -> None:
    """Until the server closed its end (poll(2) tells that unasked) or the worker ended."""
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
