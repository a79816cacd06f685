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
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.skills import frames
from app.skills.tools import ToolsModuleError, run_module
from app.tools.plain import TooLarge
from app.tools.result import ToolResult, bounded, raised
from app.tools.tool import Tool, ToolContext

MEMORY_BYTES = 4 * 1024**3  # of address space, which also counts what is only reserved
OPEN_FILES = 256
OOM_SCORE = "500"  # oom_score_adj: where memory runs out, a worker ends before the server


def work(connection: socket.socket, folder: Path) -> None:
    """Run the folder's tools until the server closes its end."""
    os.register_at_fork(after_in_child=lambda: _leave(connection))
    signal.signal(signal.SIGTERM, lambda *_: None)  # systemd sends it to all: the server still drains
    _limit()
    sys.dont_write_bytecode = True
    scripts = folder / "scripts"
    sys.path[:0] = [str(scripts)]
    worker = _Worker(connection)
    worker.load(scripts / "tools.py", folder.name)
    worker.serve()


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
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb")
        self._tools: dict[str, Tool] = {}
        self._loop = asyncio.new_event_loop()
        self._speaking = threading.Lock()
        self._running = 0  # the id of the call, which alone may use the connection; 0 for none

    def load(self, path: Path, skill: str) -> None:
        """Run the file; where that fails, tell the server why and end the process."""
        try:
            self._module = run_module(path, skill)
        except ToolsModuleError as error:
            traceback.print_exception(error)
            self._send(frames.Ready(str(error)[:2000]))
            os._exit(1)
        self._send(frames.Ready())

    def serve(self) -> None:
        while (call := self._read()) is not None:
            self._running = call.id
            frame = self._result(call)
            with self._speaking:
                self._running = 0
                try:
                    self._connection.sendall(frame)
                except OSError:  # the code closed what is not its own: nothing can be said any more
                    os._exit(1)
        os._exit(0)

    def _read(self) -> Any:
        header = self._stream.read(frames.HEADER)
        return frames.decode(self._stream.read(frames.length(header, frames.TO_WORKER))) if header else None

    def _send(self, message: frames.Message) -> None:
        self._connection.sendall(frames.encode(message))

    def _result(self, call: frames.Call) -> bytes:
        try:
            result = bounded(self._value(call))
        except BaseException as error:  # exit() ends the call, not the worker
            result = raised(call.function, error)
            if result.code == "INTERNAL":
                traceback.print_exception(error)
        try:
            return frames.encode(frames.Result(call.id, result.form))
        except frames.FrameError:
            return frames.encode(frames.Result(call.id, raised(call.function, TooLarge()).form))

    def _value(self, call: frames.Call) -> object:
        tool = self._tool(call.function)
        if tool is None:
            sentence = f"scripts/tools.py has no tool {call.function} once it runs"
            return ToolResult.failure("UNAVAILABLE", sentence)
        value = tool.bind(tool.validate_args(call.args), self._context(call, tool))()
        return self._loop.run_until_complete(value) if inspect.isawaitable(value) else value

    def _tool(self, name: str) -> Tool | None:
        """Find a tool by the name that the server read in the text, where decorators were only words."""
        if name not in self._tools:
            value = vars(self._module).get(name)
            # a cache, a callable object, or an object with the function as `fn`, as some MCP packages make
            function = value if callable(value) else getattr(value, "fn", None)
            if not callable(function):
                return None
            tool = Tool.from_function(function, name=name)
            parameters = inspect.signature(function).parameters.values()
            if any(one.kind is one.VAR_KEYWORD for one in parameters):  # as decorators often make
                # what it passes on was checked by the server, against the text
                tool = tool.replace(input_schema={**tool.input_schema, "additionalProperties": True})
            self._tools[name] = tool
        return self._tools[name]

    def _context(self, call: frames.Call, tool: Tool) -> ToolContext:
        def ask(method: str, *args: Any) -> Any:
            with self._speaking:
                if self._running != call.id:
                    raise RuntimeError("the call is over, and so is its context")
                self._send(frames.Ask(call.id, method, list(args)))
                answer = self._read()
            if answer.error:
                raise ValueError(answer.error)
            return answer.value

        return frames.build_context(call.context, ask, is_async=tool.is_async)
