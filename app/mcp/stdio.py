"""A server as a process of its own: started, talked to line by line, ended with everything it started."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import orjson
import structlog
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from app.mcp.definitions import ServerDefinition
from app.mcp.wire import (
    MESSAGE_BYTES,
    TOO_LONG,
    Lines,
    Pace,
    TooLong,
    Unreachable,
    Unstartable,
    cause,
    messages,
)
from app.processes.reaper import kill_below
from app.processes.sandbox import Sandbox

log = structlog.get_logger(__name__)

GRACE_SECONDS = 2.0
"""That a server has to end by itself once its input is closed."""
_END_SECONDS = 1.0
_PIECE_BYTES = 256 * 1024
_SAID_BYTES = 8 * 1024
MOST_UNREAD = 500
"""Messages to a server that wait until it reads them: answers to what it asks, for the most part."""
RUBBISH_BYTES = 64 * 1024 * 1024
"""Of lines that are no messages, after which a server is given up; the shortest count as LEAST_LINE."""
LEAST_LINE = 64
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
_ROOT = Path(__file__).resolve().parents[2]
# Python has set both signals to be ignored, which a program that is then started would inherit.
_PROGRAM = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from app.processes.reaper import fork_below_reaper
connection = int(sys.argv[1])
os.set_inheritable(connection, False)
fork_below_reaper(connection)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
try:
    os.execvp(sys.argv[3], sys.argv[3:])
except OSError as error:
    sys.exit(f"cannot be started: {sys.argv[3]}: {error.strerror}")
"""


@asynccontextmanager
async def started(definition: ServerDefinition, sandbox: Sandbox) -> AsyncIterator["StdioServer"]:
    """The server while it runs; afterwards it and all that it started is gone, within 5 s.

    Raises Unstartable where this machine does not allow it.
    """
    server = StdioServer(definition)
    try:
        await server.start(sandbox)
        yield server
    finally:
        await server.end()


class StdioServer:
    """The two streams that the SDK talks through, over the process's own input and output.

    `grace`: whether it may end by itself first; one that never became ready is just killed.
    """

    def __init__(self, definition: ServerDefinition) -> None:
        self.grace = False
        self.forgotten = False
        self.streams = (self, self)
        self.expired, self.doubted = asyncio.Event(), asyncio.Event()
        self._definition = definition
        self._process: Process | None = None
        self._keeper: socket.socket | None = None
        self._listening: asyncio.Task[None] | None = None
        self._said = bytearray()
        self._lines = Lines()
        self._came: deque[tuple[SessionMessage, int]] = deque()
        """With the bytes of each."""
        self._pace = Pace()
        self._unread = 0
        self._rubbish = 0
        self._fault = ""

    async def start(self, sandbox: Sandbox) -> None:
        definition = self._definition
        if definition.sandboxed:
            try:
                command, environment = await asyncio.to_thread(sandbox.server_command, definition)
            except ValueError as error:
                raise Unstartable(str(error)) from error
        else:
            command, environment = [definition.command, *definition.args], _environment(definition)
        if definition.sandboxed and not sandbox.off:
            self._process = await self._spawn(command, environment)  # bubblewrap ends all that is in it
        else:
            self._keeper, theirs = socket.socketpair()
            with theirs:
                number = theirs.fileno()
                keeper = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(number), str(_ROOT)]
                self._process = await self._spawn([*keeper, *command], environment, number)
        self._listening = asyncio.create_task(self._listen(self._process))

    async def _spawn(self, command: list[str], environment: dict[str, str], *kept: int) -> Process:
        folder = self._definition.home or self._definition.folder or None
        try:
            return await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                env=environment,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                pass_fds=kept,
                start_new_session=True,
                limit=_PIECE_BYTES,
            )
        except (OSError, ValueError) as error:
            raise Unreachable(f"its process could not be started: {error}") from error

    @property
    def _input(self) -> asyncio.StreamWriter:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> asyncio.StreamReader:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def said(self) -> str:
        """The last lines that it wrote to stderr, without its secrets."""
        text = self._said.decode("utf-8", "replace")
        whole = text if len(self._said) < _SAID_BYTES else text.partition("\n")[2]  # half a secret is one too
        return self._definition.masked(whole)

    async def why(self) -> str:
        """How it ended; "" where it did not."""
        if self._fault or self._process is None or not self.expired.is_set():
            return self._fault
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
                if self._listening is not None:
                    await self._listening
        return ": ".join(part for part in (_status(self._process.returncode), cause(self.said)) if part)

    # What the SDK reads from.

    async def receive(self) -> SessionMessage:
        """Raises EndOfStream once its output has ended."""
        await self._pace.rest()
        while not (self._came or self._fault):
            data = await self._output.read(_PIECE_BYTES)
            if not data:
                break
            for line in self._lines.feed(data):
                self._take(line)
        if self._fault or not self._came:
            self.expired.set()
            raise anyio.EndOfStream
        message, size = self._came.popleft()
        self._pace.count(size)
        return message

    def _take(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            self._refuse(line)
            return
        try:
            found = [jsonrpc_message_adapter.validate_python(message) for message in messages(line)]
        except ValueError:
            self._count_rubbish(len(line))
            return
        self._came.extend((SessionMessage(message), len(line) // len(found)) for message in found)

    def _refuse(self, line: TooLong) -> None:
        """An answer that is too long is an error to who asked; the connection goes on."""
        log.warning("a server's message was too long", server=self._definition.name)
        if line.request is None:
            self._count_rubbish(MESSAGE_BYTES)
            return
        text = f"its answer has more than {MESSAGE_BYTES // 1024**2} MiB"
        error = ErrorData(code=TOO_LONG, message=text)
        self._came.append((SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.request, error=error)), 0))

    def _count_rubbish(self, size: int) -> None:
        """Some greet their users on stdout; who writes nothing else is no server."""
        if not self._rubbish:
            log.info("a server writes what is no message", server=self._definition.name)
        self._rubbish += max(size, LEAST_LINE)
        if self._rubbish > RUBBISH_BYTES:
            self._give_up(f"it wrote over {RUBBISH_BYTES // 1024**2} MiB that are no messages")

    def _give_up(self, fault: str) -> None:
        self.grace = False
        self._fault = fault

    # What the SDK writes to.

    async def send(self, item: SessionMessage) -> None:
        """Raises BrokenResourceError where nobody reads any more."""
        if self._unread == MOST_UNREAD:
            self._give_up("it does not read what it is sent")
            raise anyio.BrokenResourceError
        message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        self._unread += 1
        try:
            self._input.write(orjson.dumps(message) + b"\n")
            await self._input.drain()
        except (ConnectionError, RuntimeError) as error:
            raise anyio.BrokenResourceError from error
        finally:
            self._unread -= 1

    async def aclose(self) -> None:
        """Of the SDK's: `end` does it."""

    async def __aenter__(self) -> "StdioServer":
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    def __aiter__(self) -> "StdioServer":
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def end(self) -> None:
        """Closes its input, waits for a moment, kills what is left."""
        reading = [self._listening] if self._listening is not None else []
        try:
            if self._process is not None:
                reading.append(asyncio.create_task(self._drain()))
                if self.grace:
                    await self._ask_to_end(self._process)
        finally:
            if self._keeper is not None:
                self._keeper.close()  # the process beyond sees that, and kills all below it
            if self._process is not None:
                await self._kill(self._process)
            for task in reading:
                task.cancel()

    async def _drain(self) -> None:
        """Who cannot get rid of its last words does not end."""
        while await self._output.read(_PIECE_BYTES):
            pass

    async def _ask_to_end(self, process: Process) -> None:
        self._input.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()

    async def _kill(self, process: Process) -> None:
        if self._keeper is None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for _ in range(2):
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await process.wait()
                    return
            kill_below(process.pid)
            with suppress(ProcessLookupError):
                process.kill()

    async def _listen(self, process: Process) -> None:
        assert process.stderr is not None
        while text := await process.stderr.read(_SAID_BYTES):
            self._said += text
            del self._said[:-_SAID_BYTES]


def _environment(definition: ServerDefinition) -> dict[str, str]:
    """Nothing of ours but what every program needs."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | dict(definition.env)


def _status(code: int | None) -> str:
    if code is None:
        return ""
    number = -code if code < 0 else code - 128
    try:
        return f"it was killed by {signal.Signals(number).name}"
    except ValueError:
        return f"it exited with status {code}"
