"""Programs that the server starts: each is ended whole, with everything it started, and leaves a reason."""

import asyncio
import os
import secrets
import signal
import socket
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from app.i18n import lazy
from app.processes.reaper import kill_below, threads_below

# Stands in `args` for the number of the socket to the server, which is closed for a program without it.
CONNECTION = secrets.token_hex(16)  # which no argument of somebody else's can name
APP_ROOT = Path(__file__).resolve().parents[2]
PIECE_BYTES = 256 * 1024
PRINTED_BYTES = 8 * 1024
END_SECONDS = 1.0
MOST_THREADS = 256
COUNTED_SECONDS = 0.5

# Python ignores both signals, and a program that is then executed would inherit that.
_REAPER_PROGRAM = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from app.processes.reaper import fork_below_reaper
number, _, mark, *args = sys.argv[1:]
os.set_inheritable(int(number), mark in args)
fork_below_reaper(int(number))
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
try:
    os.execvp(args[0], [number if arg == mark else arg for arg in args])
except OSError as error:
    sys.exit(f"cannot be started: {args[0]}: {error.strerror}")
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to start, in a session of its own, below a reaper: a small process that ends what it starts.

    `env` is the whole environment, but see `kept_environment`. `confined`: it runs in the sandbox. `piped`:
    its input and output are for the caller, and only stderr counts as printed; otherwise it has no input, and
    all that it writes is printed.
    """

    args: Sequence[str]
    env: Mapping[str, str]
    folder: Path | str | None = None
    piped: bool = False
    confined: bool = False


class PrintedTail:
    """The last bytes that a program printed."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def is_cut(self) -> bool:
        """Tell whether it may have printed more, so that the first line is perhaps half a line."""
        return len(self._bytes) >= PRINTED_BYTES

    def add(self, text: bytes) -> None:
        self._bytes += text
        del self._bytes[:-PRINTED_BYTES]

    def __str__(self) -> str:
        return self._bytes.decode("utf-8", "replace")


class HostedProcess:
    """A running program. Whoever started it calls `end`, however it went."""

    def __init__(
        self,
        command: Command,
        process: Process,
        printed: PrintedTail,
        connection: tuple[StreamReader, StreamWriter],
    ) -> None:
        self.printed = printed
        # The server's end of the socket; the reaper ends all once that is closed.
        self.connection = connection
        self._process = process
        # Both are there where it is piped.
        self.input = cast(StreamWriter, process.stdin)
        self.output = cast(StreamReader, process.stdout)
        self._reading = [asyncio.create_task(_read(process.stderr or self.output, printed))]
        # The kernel's own limit of threads (`confine`) holds every account but root's.
        if command.confined and os.geteuid() == 0:
            self._reading.append(asyncio.create_task(self._end_at_limit(), name="count threads"))

    @classmethod
    async def start(cls, command: Command, printed: PrintedTail | None = None) -> "HostedProcess":
        """Start a program. Raises OSError or ValueError where that fails."""
        printed = printed or PrintedTail()
        reaper = [sys.executable, "-I", "-S", "-c", _REAPER_PROGRAM]
        ours, theirs = socket.socketpair()
        with theirs:
            connection = await asyncio.open_connection(sock=ours)
            args = [*reaper, str(theirs.fileno()), str(APP_ROOT), CONNECTION, *command.args]
            try:
                return cls(command, await _spawn(command, args, theirs.fileno()), printed, connection)
            except BaseException:
                connection[1].transport.abort()
                raise

    @property
    def status(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def exit_reason(self) -> str:
        """Say how it ended; "" while it runs."""
        code = self._process.returncode
        if code is None:
            return ""
        number = -code if code < 0 else code - 128
        try:
            return lazy("it was killed by {signal}", signal=signal.Signals(number).name)
        except ValueError:
            return lazy("it exited with status {code}", code=code)

    async def wait(self, seconds: float = END_SECONDS) -> bool:
        """Wait until it has ended and all that it printed is read; False where that takes longer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
                await asyncio.gather(*self._reading)
                return True
        return False

    async def end(self, grace_seconds: float = 0.0) -> None:
        """End it with all that it started; `grace_seconds`: how long it may take to end by itself first.

        The grace begins with its input closed. Takes 4 s beyond the grace at most.
        """
        try:
            if self._process.stdin is not None:
                self._reading.append(asyncio.create_task(_read(self.output)))  # or it may never end
                if grace_seconds:
                    self.input.close()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(grace_seconds):
                            await self._process.wait()
        finally:
            await self._kill()
            for task in self._reading:
                task.cancel()

    async def _kill(self) -> None:
        self.connection[1].transport.abort()  # its reaper sees that, and kills all below it
        for _ in range(2):
            with suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await self._process.wait()
                    return
            kill_below(self._process.pid)
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _end_at_limit(self) -> None:
        while self._process.returncode is None:
            if await asyncio.to_thread(threads_below, self._process.pid) > MOST_THREADS:
                self.printed.add(f"it started more than {MOST_THREADS} threads\n".encode())
                await self._kill()
                return
            await asyncio.sleep(COUNTED_SECONDS)


def kept_environment(*names: str) -> dict[str, str]:
    """Return what every program needs of our environment, and these variables; nothing else of ours."""
    kept = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", *names)
    return {name: os.environ[name] for name in kept if name in os.environ}


async def _spawn(command: Command, args: list[str], kept: int) -> Process:
    return await asyncio.create_subprocess_exec(
        *args,
        cwd=command.folder,
        env=command.env,
        stdin=PIPE if command.piped else DEVNULL,
        stdout=PIPE,
        stderr=PIPE if command.piped else STDOUT,
        pass_fds=[kept],
        start_new_session=True,
        limit=PIECE_BYTES,
    )


async def _read(stream: StreamReader, printed: PrintedTail | None = None) -> None:
    while text := await stream.read(PIECE_BYTES):
        if printed is not None:
            printed.add(text)
