"""One worker process as the server sees it: started, talked to in frames, ended whole."""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from app.errors import RecadoError
from app.i18n import lazy
from app.messages import JSON
from app.processes.host import APP_ROOT, CONNECTION, Command, HostedProcess, PrintedTail, kept_environment
from app.rmtree import remove
from app.skills import frames
from app.skills.frames import FrameError
from app.tools.context import ToolContext
from app.tools.masking import mask_text
from app.tools.result import ToolResult

# The reaper is split off before the rest is loaded: it stays small.
_PROGRAM = """
import socket, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from app.processes.reaper import fork_below_reaper
connection = socket.socket(fileno=int(sys.argv[1]))
connection.set_inheritable(False)
fork_below_reaper(connection.fileno())
from app.skills.worker import work
sys.path.remove(sys.argv[3])
work(connection, Path(sys.argv[2]))
"""
_LONGEST_FAULT = 2000


class WorkerFault(RecadoError):
    """A worker that ended; the text says how. `started`: its code ran before that."""

    def __init__(self, how: str, *, started: bool) -> None:
        super().__init__(how)
        self.started = started


class Worker:
    """A process that runs a folder's tools, one call after the other. It starts at once."""

    def __init__(self, folder: Path, prefix: Sequence[str], start_seconds: float) -> None:
        self.printed = PrintedTail()
        self._folder = folder
        self._prefix = prefix
        self._home = tempfile.mkdtemp(prefix="recado-worker-")
        self._numbers = count(1)
        self._spawning = asyncio.create_task(HostedProcess.start(self._command(), self.printed))
        self._starting = asyncio.create_task(self._start(start_seconds))
        self._ending: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self.is_stuck = False  # a call was given up, whose code may still run

    @property
    def is_alive(self) -> bool:
        return not self._starting.done() or self._starting.result() != "" or self._process.status is None

    async def call(self, function: str, args: dict[str, JSON], context: ToolContext) -> ToolResult:
        """Call a function. Raises WorkerFault where the worker ended before the call did."""
        if fault := await asyncio.shield(self._starting):  # a call that is given up leaves it starting
            raise WorkerFault(fault, started=False)
        number = next(self._numbers)
        frame = frames.encode(frames.Call(number, function, args, frames.serialize_context(context)))
        try:
            await self._send(frame)
            while isinstance(message := await self._read(number), frames.Ask):
                answer = await frames.answer_ask(message, context.store, context.http)
                try:
                    frame = frames.encode(answer)
                except FrameError:
                    frame = frames.encode(frames.Answer(error="that is too much at once: list fewer rows"))
                await self._send(frame)
            return ToolResult.of(message.result)
        except asyncio.CancelledError:
            self.is_stuck = True
            raise
        except FrameError as error:
            why = lazy("its code wrote to the server's connection: {error}", error=str(error))
            raise WorkerFault(why, started=True) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise WorkerFault(await self._end_reason(), started=True) from error

    def rest(self, seconds: float, retire: Callable[[], None]) -> None:
        """Call `retire` after so many seconds without a call."""
        self._idle = asyncio.get_running_loop().call_later(seconds, retire)

    def wake(self) -> None:
        """Forget that it rests."""
        if self._idle is not None:
            self._idle.cancel()

    async def end(self) -> None:
        """End it with all that it started."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _start(self, seconds: float) -> str:
        """Start the process; return why its code does not run, "" where it does."""
        try:
            await self._spawning
            async with asyncio.timeout(seconds):
                ready = await self._read()
        except TimeoutError:
            return lazy("scripts/tools.py did not come to its end within {n} s", n=f"{seconds:g}")
        except FrameError as error:
            return lazy("its code wrote to the server's connection: {error}", error=str(error))
        except asyncio.IncompleteReadError:
            return await self._end_reason()
        except (OSError, ValueError) as error:
            return lazy("its process could not be started: {error}", error=str(error))
        return mask_text(ready.fault[:_LONGEST_FAULT])

    async def _end_reason(self) -> str:
        await self._process.end()
        how = self._process.exit_reason or lazy("it did not end")
        return lazy("its process ended: {how}", how=how)

    async def _end(self) -> None:
        with suppress(OSError, ValueError):
            await (await self._spawning).end()
        await self._starting
        await asyncio.to_thread(remove, self._home)

    @property
    def _process(self) -> HostedProcess:
        return self._spawning.result()

    def _command(self) -> Command:
        python = [sys.executable, "-I", "-X", "utf8", "-u", "-c", _PROGRAM]
        arguments = [CONNECTION, str(self._folder), str(APP_ROOT)]
        return Command(
            [*self._prefix, *python, *arguments],
            {**kept_environment(), "HOME": self._home, "TMPDIR": self._home},
            self._folder,
            ended_by="itself",
            confined=bool(self._prefix),
        )

    async def _read(self, call: int = 0) -> Any:
        """Return what it says about the call, 0 for its start. Raises FrameError for anything else."""
        assert self._process.connection is not None
        reader, _ = self._process.connection
        size = frames.length(await reader.readexactly(frames.HEADER), frames.FROM_WORKER)
        message = frames.decode(await reader.readexactly(size))
        if isinstance(message, frames.Ask | frames.Result) and call and message.call == call:
            return message
        if isinstance(message, frames.Ready) and not call:
            return message
        raise FrameError(f"a {type(message).__name__} that nobody waits for")

    async def _send(self, frame: bytes) -> None:
        assert self._process.connection is not None
        _, writer = self._process.connection
        writer.write(frame)
        await writer.drain()
