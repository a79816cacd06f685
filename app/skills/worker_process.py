"""One worker process as the server sees it: started, talked to in frames, ended whole."""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from app.errors import RecadoError
from app.messages import JSON
from app.processes.host import (
    APP_ROOT,
    CONNECTION,
    Command,
    HostedProcess,
    PrintedTail,
    kept_environment,
)
from app.rmtree import remove
from app.skills.frames import (
    CALL_BYTES,
    FROM_WORKER,
    HEADER,
    LEAST_BYTES,
    MOST_BYTES,
    TO_WORKER,
    Answer,
    Ask,
    Call,
    FrameError,
    Message,
    Ready,
    Result,
    decode,
    encode,
    length,
)
from app.skills.proxies import answer_ask, serialize_context
from app.tools.context import ToolContext
from app.tools.masking import mask_text
from app.tools.result import ToolResult

# For running a folder's code, with its imports.
START_SECONDS = 60.0

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
    """A process that runs a folder's tools. The task `life` runs it, and ends it when cancelled."""

    def __init__(self, folder: Path, prefix: Sequence[str], start_seconds: float) -> None:
        self.life: asyncio.Task[None] | None = None
        # A call was cancelled, so its code may be stuck.
        self.abandoned = False
        self._folder = folder
        self._prefix = prefix
        self._start_seconds = start_seconds
        self._home = ""
        # Holds why its code does not run, "" where it does.
        self._started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        # What is said about the running calls; None where the worker ended.
        self._calls: dict[int, asyncio.Queue[ToolResult | Ask | None]] = {}
        self._numbers = count(1)
        self._writer: asyncio.StreamWriter | None = None
        # How it ended; "" until its exit status tells.
        self._how = "it was ended"
        self._over = False
        self._sending = asyncio.Lock()
        self._bytes_left = 0
        self._printed = PrintedTail()
        self._idle: asyncio.TimerHandle | None = None
        self._waiting = 0

    @property
    def busy(self) -> bool:
        return self._waiting > 0

    @property
    def said(self) -> str:
        """Return the end of what its code printed, masked."""
        return mask_text(str(self._printed))

    def end(self) -> None:
        self.keep_awake()
        if self.life is not None and not self._over:  # else it is removing its home
            cancel(self.life)

    def rest(self, seconds: float, retire: Callable[[], None]) -> None:
        """Call `retire` after so many seconds without a call."""
        self._idle = asyncio.get_running_loop().call_later(seconds, retire)

    def keep_awake(self) -> None:
        if self._idle is not None:
            self._idle.cancel()

    async def call(self, function: str, args: dict[str, JSON], context: ToolContext) -> ToolResult:
        """Call a function. Raises WorkerFault where the worker ended before the call did."""
        self._waiting += 1
        try:
            fault = await asyncio.shield(self._started)
            if fault:
                raise WorkerFault(fault, started=False)
            return await self._run(function, args, context)
        finally:
            self._waiting -= 1

    async def _run(self, function: str, args: dict[str, JSON], context: ToolContext) -> ToolResult:
        if self._over:
            raise WorkerFault(self._how, started=False)
        number = next(self._numbers)
        inbox = self._calls[number] = asyncio.Queue()
        self._bytes_left = min(self._bytes_left + CALL_BYTES, MOST_BYTES)
        try:
            await self._send(encode(Call(number, function, args, serialize_context(context)), TO_WORKER))
            while isinstance(message := await inbox.get(), Ask):
                frame = _answer_frame(await answer_ask(message, context.store, context.http))
                self._bytes_left -= len(frame)
                await self._send(frame)
        except asyncio.CancelledError:
            self.abandoned = True
            raise
        finally:
            del self._calls[number]
        if message is None:
            raise WorkerFault(self._how, started=True)
        return message

    async def run(self) -> str:
        """Run from start to end; return how it ended by itself."""
        process: HostedProcess | None = None
        try:
            self._home = tempfile.mkdtemp(prefix="recado-worker-")
            process = await HostedProcess.start(self._command(), self._printed)
            assert process.connection is not None
            reader, self._writer = process.connection
            self._how = await self._converse(reader)
        except OSError as error:
            self._how = f"its process could not be started: {error.strerror or error}"
        finally:
            if process is not None:
                await process.end()
                self._how = self._how or f"its process {process.exit_reason or 'did not end'}"
            self._fail()
        return self._how

    async def remove_home(self) -> None:
        """Remove its home, after `run`."""
        if self._home:
            await asyncio.to_thread(remove, self._home)

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

    async def _converse(self, reader: asyncio.StreamReader) -> str:
        """Hand its messages to their calls until it ends; return why, "" where its exit status tells."""
        try:
            async with asyncio.timeout(self._start_seconds):
                first, _ = await _read(reader)
            if not isinstance(first, Ready):
                raise FrameError(f"a {type(first).__name__} before it was ready")
            if first.fault:
                return mask_text(first.fault[:_LONGEST_FAULT])
            self._started.set_result("")
            while True:
                self._take(*await _read(reader))
        except TimeoutError:
            return f"scripts/tools.py did not come to its end within {self._start_seconds:g} s"
        except FrameError as error:
            return f"its code wrote to the server's connection: {error}"
        except (asyncio.IncompleteReadError, ConnectionError):
            return ""

    def _take(self, message: Message, size: int) -> None:
        """Raise FrameError for what no worker of ours says, and for too much."""
        self._bytes_left -= max(size, LEAST_BYTES)  # also for calls that are over
        if self._bytes_left < 0:
            raise FrameError(f"more than {CALL_BYTES // 1024**2} MiB for each call")
        match message:
            case Ask(call=number) if number in self._calls:
                self._calls[number].put_nowait(message)
            case Result(id=number) if number in self._calls:
                self._calls[number].put_nowait(ToolResult.of(message.result))
            case Ask() | Result():
                return
            case _:
                raise FrameError(f"a {type(message).__name__} that nobody waits for")

    async def _send(self, frame: bytes) -> None:
        """Send once there is room: for a worker that does not read, one frame waits in memory."""
        assert self._writer is not None
        try:
            async with self._sending:
                await self._writer.drain()
                self._writer.write(frame)
        except ConnectionError:  # it ended: the reading side tells the call
            return

    def _fail(self) -> None:
        self._over = True
        if not self._started.done():
            self._started.set_result(self._how or "it ended")
        for inbox in self._calls.values():
            inbox.put_nowait(None)


async def _read(reader: asyncio.StreamReader) -> tuple[Message, int]:
    """Return the next message and its size in bytes."""
    size = length(await reader.readexactly(HEADER), FROM_WORKER)
    return decode(await reader.readexactly(size)), size


def _answer_frame(answer: Answer) -> bytes:
    try:
        return encode(answer, TO_WORKER)
    except FrameError:
        return encode(Answer(answer.id, error="that is too much at once: list fewer rows"), TO_WORKER)


def cancel(task: asyncio.Task[None]) -> None:
    """Cancel a task once: a second time would cut off its clean-up."""
    if not task.cancelling():
        task.cancel()
