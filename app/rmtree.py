"""Removing folders, however deep and with whatever permissions."""

import errno
import os
import subprocess
from contextlib import suppress
from pathlib import Path

PASSES = 5
PASS_SECONDS = 60.0


def remove(folder: str) -> None:
    """Remove a folder by the system's own programs; what cannot be removed stays. Blocks.

    Several passes, because a process that is just ending may still write into it.
    """
    for _ in range(PASSES):
        _run("rm", "-rf", "--", folder)
        if not os.path.lexists(folder):
            return
        if not os.path.islink(folder):  # whose target is not ours
            _run("chmod", "-R", "u+rwx", "--", folder)


def _run(*command: str) -> None:
    path = {"PATH": f"{os.defpath}:{os.environ.get('PATH', '')}"}  # ours may lead to no program of the system
    with suppress(subprocess.TimeoutExpired):  # of a disk that hangs
        subprocess.run(command, env=path, stderr=subprocess.DEVNULL, timeout=PASS_SECONDS, check=False)  # noqa: S603


def rmtree(folder: Path) -> None:
    """Remove a folder, if there is one, or what is in its place. Raise OSError if something of it stays."""
    remove(str(folder))
    if os.path.lexists(folder):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(folder))
