"""A server as a process: the pair of streams that the SDK talks through, bounded in what they take."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import orjson
import structlog
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from app.i18n import lazy
from app.mcp.definitions import ServerDefinition
from app.mcp.wire import MESSAGE_BYTES, RateLimiter, ServerLink, Unreachable, Unstartable
from app.messages import JSON
from app.processes.host import PIECE_BYTES, Command, HostedProcess, kept_environment
from app.processes.sandbox import Sandbox
from app.rmtree import remove
from app.text import Private
from app.tools.plain import sendable

log = structlog.get_logger(__name__)

GRACE_SECONDS = 2.0
MAX_UNREAD = 500  # messages that may wait until the server reads them: mostly answers to what it asks
# Where npx keeps a program: the cache, and a hash of the program's name.
_NPX_PROGRAM = re.compile(r"(/[^\s'\":]+)/_npx/([0-9a-f]{16})/")

END_SECONDS = 0.5  # in which the output of a program that died ends
_TELLING = re.compile(
    r"error|exception|missing|required|denied|not found|no such|cannot|could not|invalid|must|fail|unable",
    re.IGNORECASE,
)
_TRACE = re.compile(r"\s+at |\s*\^+\s*$|  File |Node\.js v")
_CAUSE_CHARACTERS = 300


@asynccontextmanager
async def run_program(definition: ServerDefinition, sandbox: Sandbox) -> AsyncIterator["StdioLink"]:
    """Run a server's program; afterwards it and all that it started is gone, within 6 s.

    Raises Unstartable if this machine does not allow it, Unreachable if it cannot be started.
    """
    try:
        process = await HostedProcess.start(await _command(definition, sandbox))
    except (OSError, ValueError) as error:
        raise Unreachable(lazy("its process could not be started: {error}", error=str(error))) from error
    link = StdioLink(definition, process)
    try:
        yield link
    finally:
        await process.end(GRACE_SECONDS)
        if definition.downloads:
            await asyncio.to_thread(_remove_half_install, definition, str(process.printed))


async def _command(definition: ServerDefinition, sandbox: Sandbox) -> Command:
    folder = definition.home or definition.folder or None
    if not definition.sandboxed:
        args = [definition.command, *definition.args]
        return Command(args, kept_environment("HOME") | dict(definition.env), folder, piped=True)
    try:
        args, environment = await asyncio.to_thread(sandbox.server_command, definition)
    except ValueError as error:
        raise Unstartable(str(error)) from error
    return Command(args, environment, folder, "reaper" if sandbox.off else "sandbox", piped=True)


def _remove_half_install(definition: ServerDefinition, printed: str) -> None:
    """Remove a program that `npx` left half installed, as what it printed says: the next start fetches it."""
    if "MODULE_NOT_FOUND" not in printed:
        return
    environment = {**os.environ, **dict(definition.env)}
    homes = (definition.home, environment.get("HOME", ""))
    caches = {environment.get("npm_config_cache", ""), *(f"{home}/.npm" for home in homes if home)}
    for cache, program in set(_NPX_PROGRAM.findall(printed)):
        if cache in caches:
            log.warning("a half installed program is removed", server=definition.name, program=program)
            remove(f"{cache}/_npx/{program}")


class StdioLink(ServerLink, ObjectReceiveStream[SessionMessage], ObjectSendStream[SessionMessage]):
    """Reads and writes messages over the input and output of a server's process."""

    def __init__(self, definition: ServerDefinition, process: HostedProcess) -> None:
        super().__init__()
        self.streams = (self, self)
        self._definition = definition
        self._process = process
        self._begun = bytearray()  # read, and not ended by a line feed yet
        self._rate = RateLimiter()
        self._unread = 0
        self._was_called = False

    async def end_reason(self) -> str:
        if self.fault:
            return self.fault
        with suppress(TimeoutError):  # a write may fail before the end of the output is read
            async with asyncio.timeout(END_SECONDS):
                await self.ended.wait()
        if not self.ended.is_set():
            return ""
        await self._process.wait()
        text = str(self._process.printed)
        if self._process.printed.is_cut:  # half a secret on a half line would not be recognised
            text = text.partition("\n")[2]
        exited, cause = self._process.exit_reason, find_cause(self._definition.mask(text))
        if cause and self._was_called:  # what it printed may be of any person's call
            log.info("a server's last words", server=self._definition.name, said=Private(cause))
            cause = ""
        return lazy("{fact}: {reason}", fact=exited, reason=cause) if exited and cause else exited or cause

    async def receive(self) -> SessionMessage:
        """Return the next message. Raises EndOfStream once the output has ended."""
        while (line := await self._line()) is not None:
            self._rate.count(len(line))
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_python(parse_message(line)))
            except ValueError:  # a greeting, or a log line
                log.debug("a server writes what is no message", server=self._definition.name)
        self.end()
        raise anyio.EndOfStream

    async def _line(self) -> bytes | None:
        """Return the next line, None at the end of the output and for a line that is too long."""
        await self._rate.wait()
        while not self.fault and (end := self._begun.find(b"\n")) < 0:
            data = await self._process.output.read(PIECE_BYTES)
            if not data:
                return None
            self._begun += data
            if len(self._begun) > MESSAGE_BYTES:
                self.fault = lazy("it wrote a message of more than {n} MiB", n=MESSAGE_BYTES // 1024**2)
        if self.fault:
            return None
        line = bytes(self._begun[:end])
        del self._begun[: end + 1]
        return line

    async def send(self, item: SessionMessage) -> None:
        """Write a message. Raises BrokenResourceError if the server does not read any more."""
        if self._unread == MAX_UNREAD:
            self.fault = lazy("it does not read what it is sent")
            raise anyio.BrokenResourceError
        message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        self._was_called = self._was_called or message.get("method") == "tools/call"
        self._unread += 1
        try:
            self._process.input.write(orjson.dumps(message) + b"\n")
            await self._process.input.drain()
        except (ConnectionError, RuntimeError) as error:
            raise anyio.BrokenResourceError from error
        finally:
            self._unread -= 1

    async def aclose(self) -> None:
        """Do nothing: `run_program` ends the process."""


def parse_message(line: bytes) -> JSON:
    """Return the message of a line. Raises ValueError for anything else."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:  # half of an emoji, or NaN: JavaScript and Python write them
        try:
            return sendable(json.loads(line))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def find_cause(printed: str) -> str:
    """Return the last printed line that tells best why a server ended; "" if it printed nothing."""
    lines = [line for line in printed.splitlines() if line.strip() and not _TRACE.match(line)]
    telling = [line for line in lines if _TELLING.search(line)]
    found = (telling or lines or [""])[-1].strip()
    return found if len(found) <= _CAUSE_CHARACTERS else f"{found[:_CAUSE_CHARACTERS]}…"
