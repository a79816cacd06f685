"""The program of a worker process: runs the functions of one folder's scripts/tools.py for the server.

What the code prints goes to the server's log, and it reads nothing: neither touches the socket to the server.
"""

import asyncio
import inspect
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from app.skills.frames import (
    FROM_WORKER,
    HEADER,
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
from app.skills.modules import (
    ToolFunction,
    ToolsModuleError,
    named_function,
    run_module,
)
from app.skills.proxies import build_context
from app.tools.context import ToolContext
from app.tools.plain import TooLarge
from app.tools.result import OUTPUT_LIMIT, ToolResult, bounded, raised, too_large
from app.tools.tool import Tool

# Of address space, which also counts what is only reserved.
MEMORY_BYTES = 4 * 1024**3
OPEN_FILES = 256
# oom_score_adj: where memory runs out, a worker ends before the server.
OOM_SCORE = "500"


def work(connection: socket.socket, folder: Path) -> None:
    """Run the folder's tools until the server closes its end."""
    os.register_at_fork(after_in_child=lambda: _leave(connection))
    _limit()
    sys.dont_write_bytecode = True
    scripts = folder / "scripts"
    sys.path[:0] = [str(scripts)]
    worker = _Worker(connection)
    worker.load(scripts / "tools.py", folder.name)
    worker.listen()


def _leave(connection: socket.socket) -> None:
    """Detach a process that the code forked: it must not speak for the worker, and SIGTERM ends it."""
    os.close(connection.detach())  # close() alone would wait for the file that the worker reads from
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, wanted in ((resource.RLIMIT_NOFILE, OPEN_FILES), (resource.RLIMIT_AS, MEMORY_BYTES)):
        hard = resource.getrlimit(kind)[1]
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (most, most))
    with suppress(OSError):  # other systems have no such file
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, "ascii")


class _Worker:
    """Reads in the main thread; each call has its own thread, and what is awaited runs on one loop."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = threading.Lock()
        self._tools: dict[str, Tool] = {}
        self._asks: dict[int, Future[Any]] = {}
        self._numbers = count(1)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="async tools").start()

    def load(self, path: Path, skill: str) -> None:
        """Run the file; where that fails, tell the server why and end the process."""
        try:
            self._module = run_module(path, skill)
        except ToolsModuleError as error:
            traceback.print_exception(error)
            self._send(Ready(str(error)[:2000]))
            os._exit(1)
        self._send(Ready())

    def listen(self) -> None:
        with self._connection.makefile("rb") as stream:
            while header := stream.read(HEADER):
                message = decode(stream.read(length(header, TO_WORKER)))
                if isinstance(message, Call):
                    name = message.function
                    threading.Thread(target=self._run, args=(message,), daemon=True, name=name).start()
                else:
                    self._answered(message)
        os._exit(0)

    def _run(self, call: Call) -> None:
        value: object
        try:
            tool = self._tool(call.function)
            if tool is None:
                sentence = f"scripts/tools.py has no tool {call.function} once it runs"
                value = ToolResult.failure("UNAVAILABLE", sentence)
            else:
                value = tool.bind(tool.validate_args(call.args), self._context(call, tool))()
            if inspect.isawaitable(value):
                value = asyncio.run_coroutine_threadsafe(_awaited(call, value), self._loop).result()
        except BaseException as error:  # exit() ends the call, not the worker
            value = _failure(call, error)
        self._finish(call, value)

    def _tool(self, name: str) -> Tool | None:
        """Find a tool by the name that the server read in the text, where decorators were only words."""
        if name not in self._tools:
            function = named_function(self._module, name)
            if function is None:
                return None
            tool = Tool.from_function(function, name=name)
            if _takes_any(function):  # what it passes on was checked by the server, against the text
                tool = tool.replace(input_schema={**tool.input_schema, "additionalProperties": True})
            self._tools[name] = tool
        return self._tools[name]

    def _context(self, call: Call, tool: Tool) -> ToolContext:
        def ask(method: str, *args: Any) -> Future[Any]:
            number = next(self._numbers)
            self._asks[number] = answer = Future[Any]()
            try:
                self._send(Ask(number, call.id, method, list(args)))
            except BaseException:
                del self._asks[number]
                raise
            return answer

        return build_context(call.context, ask, is_async=tool.is_async)

    def _answered(self, answer: Answer) -> None:
        waiting = self._asks.pop(answer.id, None)
        if waiting is None or not waiting.set_running_or_notify_cancel():
            return
        if answer.error:
            waiting.set_exception(ValueError(answer.error))
        else:
            waiting.set_result(answer.value)

    def _finish(self, call: Call, value: object) -> None:
        try:
            result = bounded(value, OUTPUT_LIMIT)
            frame = _frame(call, result)
        except (TooLarge, FrameError):
            frame = _frame(call, too_large(call.function, OUTPUT_LIMIT))
        except BaseException as error:  # the code of the value's classes raises what it likes
            frame = _frame(call, _failure(call, error))
        try:
            self._write(frame)
        except OSError:  # the code closed what is not its own: nothing can be said any more
            os._exit(1)

    def _send(self, message: Message) -> None:
        self._write(encode(message, FROM_WORKER))

    def _write(self, frame: bytes) -> None:
        with self._writing:
            self._connection.sendall(frame)


async def _awaited(call: Call, awaitable: Awaitable[object]) -> object:
    try:
        return await awaitable
    except BaseException as error:  # raised here, SystemExit would end the loop of all calls
        return _failure(call, error)


def _takes_any(function: ToolFunction) -> bool:
    """Tell whether it has `**kwargs`, as the functions that decorators make often have."""
    return any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values())


def _frame(call: Call, result: ToolResult) -> bytes:
    return encode(Result(call.id, result.form), FROM_WORKER)


def _failure(call: Call, error: BaseException) -> ToolResult:
    result = raised(call.function, error)
    if result.code == "INTERNAL":
        traceback.print_exception(error)
    return result
