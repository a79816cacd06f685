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
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from app.skills.frames import (
    ASKS,
    FROM_WORKER,
    HEADER,
    TO_WORKER,
    Answer,
    Ask,
    Call,
    Fault,
    FrameError,
    JsonText,
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
    documented_functions,
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
    """Reads in the main thread; a call of a `def` tool has its own thread, `async def` ones share a loop."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = threading.Lock()
        self._tools: dict[str, Tool] = {}
        self._left_out: list[str] = []
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
            self._send(Fault(str(error)[:2000]))
            os._exit(1)
        functions, self._left_out = documented_functions(self._module)
        for name, function in functions.items():
            self._add(name, function)
        self._send(Ready())

    def _add(self, name: str, function: ToolFunction) -> Tool | None:
        try:
            tool = Tool.from_function(function, name=name)
            if _takes_any(function):  # what it passes on was checked by the server, against the text
                tool = tool.replace(input_schema={**tool.input_schema, "additionalProperties": True})
        except Exception as error:  # a signature no schema can be made of leaves out this tool alone
            self._left_out.append(f"{name} cannot become a tool: {error}")
            return None
        self._tools[name] = tool
        return tool

    def _find(self, name: str) -> Tool | None:
        """Find a tool by the name that the server read in the text, where decorators were only words."""
        if name in self._tools:
            return self._tools[name]
        function = named_function(self._module, name)
        return None if function is None else self._add(name, function)

    def listen(self) -> None:
        with self._connection.makefile("rb") as stream:
            while header := stream.read(HEADER):
                message = decode(stream.read(length(header, TO_WORKER)))
                if isinstance(message, Call):
                    self._begin(message)
                else:
                    self._answered(message)
        os._exit(0)

    def _begin(self, call: Call) -> None:
        tool = self._find(call.function)
        if tool is None:
            self._finish(call, self._no_tool(call.function))
        elif tool.is_async:
            self._on_loop(self._run_async(call, tool))
        else:
            threading.Thread(target=self._run, args=(call, tool), daemon=True, name=call.function).start()

    def _no_tool(self, name: str) -> ToolResult:
        why = [text for text in self._left_out if text.startswith(f"{name} ")]
        sentence = f"scripts/tools.py has no tool {name} once it runs"
        return ToolResult.failure("UNAVAILABLE", ": ".join([sentence, *why[:1]]))

    def _run(self, call: Call, tool: Tool) -> None:
        try:
            value = self._bound(call, tool)()
            if inspect.isawaitable(value):
                self._on_loop(self._await(call, value))
                return
        except BaseException as error:  # exit() ends the call, not the worker
            value = _failure(call, error)
        self._finish(call, value)

    async def _run_async(self, call: Call, tool: Tool) -> None:
        try:
            awaitable = self._bound(call, tool)()
        except BaseException as error:
            self._finish(call, _failure(call, error))
        else:
            await self._await(call, awaitable)

    async def _await(self, call: Call, awaitable: Any) -> None:
        try:
            value = await awaitable
        except BaseException as error:  # raised here, SystemExit would end the loop of all calls
            value = _failure(call, error)
        self._finish(call, value)

    def _bound(self, call: Call, tool: Tool) -> Any:
        return tool.bind(tool.validate_args(call.args), self._context(call, tool))

    def _on_loop(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _context(self, call: Call, tool: Tool) -> ToolContext:
        asked = count(1)

        def ask(method: str, *args: Any) -> Future[Any]:
            if next(asked) > ASKS:
                raise RuntimeError(f"one call may use its context at most {ASKS} times")
            number = next(self._numbers)
            self._asks[number] = answer = Future[Any]()
            try:
                self._send(Ask(number, call.id, method, args))
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


def _takes_any(function: ToolFunction) -> bool:
    """Tell whether it has `**kwargs`, as the functions that decorators make often have."""
    return any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values())


def _frame(call: Call, result: ToolResult) -> bytes:
    return encode(Result(call.id, JsonText(result.to_json(limit=None))), FROM_WORKER)


def _failure(call: Call, error: BaseException) -> ToolResult:
    result = raised(call.function, error)
    if result.code == "INTERNAL":
        traceback.print_exception(error)
    return result
