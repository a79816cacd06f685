"""Run the web application: uvicorn with our own signals, and server.json for commands."""

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import orjson
import structlog
import uvicorn
from fastapi import FastAPI

from app.errors import RecadoError
from app.http.limits import CONNECTIONS, ImpatientConnection, allow_open_files
from app.main import create_app
from app.processes.reaper import PR_SET_DUMPABLE, prctl
from app.security import write_private
from app.settings import Settings

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 2
EXIT_SECONDS = 9.0
RESTART_SECONDS = 0.5
SERVER_FILE = "server.json"


def serve(
    settings: Settings,
    make_app: Callable[[Settings], FastAPI] = create_app,
    configure: Callable[[Settings], None] = lambda settings: None,
) -> NoReturn:
    """Serve until a signal stops it, then end the process with 0, or another status if it could not start.

    `configure` is told of settings that were changed in the console: with those it starts anew.
    """
    status = 0
    wanted: Settings | None = settings
    try:
        with asyncio.Runner() as runner:
            while wanted is not None:
                status, wanted = runner.run(_serve(wanted, make_app))
                if wanted is not None:
                    configure(wanted)
    except RecadoError as error:
        print(f"recado: {error}", file=sys.stderr)  # noqa: T201
        status = 1
    except SystemExit as leaving:  # uvicorn's way to say that it could not listen
        status = leaving.code if isinstance(leaving.code, int) else 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the terminal was closed
            stream.flush()
    os._exit(status)  # a tool's stuck thread must not keep the process: everything of ours is closed


async def _serve(settings: Settings, make_app: Callable[[Settings], FastAPI]) -> tuple[int, Settings | None]:
    """Serve once; return the exit status, and the settings to start anew with."""
    if os.geteuid() == 0:
        log.warning("running as root: use an account of its own")
    prctl(PR_SET_DUMPABLE, 0)  # what runs for skills has our user: our memory is not for it
    allow_open_files(CONNECTIONS + 256)
    app = make_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=ImpatientConnection,
        ws="none",
        lifespan="off",  # entered here, so that its faults reach us and its end comes after the intake's
        log_config=None,
        log_level="error",  # its warnings are of requests: strangers could fill the disk with them
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=15,
        limit_concurrency=CONNECTIONS + 128,
    )
    server = _Server(config, app, settings)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            loop.add_signal_handler(number, server.stop)

    async def stop_when_pruned() -> None:
        await app.state.assistant.must_stop.wait()
        log.error("this worker was silent for too long; others have its work, start it again")
        server.stop()

    async with app.router.lifespan_context(app):
        pruned = asyncio.create_task(stop_when_pruned())
        try:
            await server.serve()
        finally:
            pruned.cancel()
            server.remove_server_file()
    if server.deadline is not None and server.changed is not None:
        server.deadline.cancel()  # the process goes on, with other settings
    return server.status, server.changed


class _Server(uvicorn.Server):
    """uvicorn with our own signal handlers and time limit.

    `uvicorn.run` ends with 143 after SIGTERM and waits for open event streams.
    """

    def __init__(self, config: uvicorn.Config, app: FastAPI, settings: Settings) -> None:
        super().__init__(config)
        self._app = app
        self._settings = settings
        self._closing: asyncio.Future[None] | None = None
        self.deadline: asyncio.TimerHandle | None = None
        self.changed: Settings | None = None
        app.state.restart = self.restart

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to our own handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            await self._announce()

    def stop(self) -> None:
        if self.should_exit:
            self.force_exit = True
            return
        self.should_exit = True
        self._closing = asyncio.ensure_future(self._app.state.close_streams())  # uvicorn would wait for them
        self.deadline = asyncio.get_running_loop().call_later(EXIT_SECONDS, self._leave)

    def restart(self, settings: Settings) -> None:
        """Start anew with other settings, once what is being answered was sent."""
        self.changed = settings
        asyncio.get_running_loop().call_later(RESTART_SECONDS, self.stop)

    @property
    def status(self) -> int:
        """Return the exit status: 1 if it could not start, or if others have taken over its work."""
        return 0 if self.started and not self._app.state.assistant.must_stop.is_set() else 1

    def _leave(self) -> None:
        """End the process: the time to drain is used up, and everything unfinished is in its rows."""
        log.warning("stopping took too long, leaving", seconds=EXIT_SECONDS)
        os._exit(self.status)

    def remove_server_file(self) -> None:
        """Remove server.json, unless another process has written its own meanwhile."""
        file = self._settings.data_dir / SERVER_FILE
        with suppress(OSError, ValueError, KeyError):
            if orjson.loads(file.read_bytes())["token"] == self._app.state.guard.server_token:
                file.unlink()

    async def _announce(self) -> None:
        """Write server.json, print the address and let statuses come, now that the port listens."""
        state = self._app.state
        port = self.servers[0].sockets[0].getsockname()[1]
        url = self._settings.model_copy(update={"port": port}).own_url
        state.guard.server_token = secrets.token_urlsafe(32)
        if self._settings.role == "worker":
            print(f"Recado works at {url}", flush=True)  # noqa: T201
            return
        await state.assistant.listening()
        record = {"pid": os.getpid(), "url": url, "token": state.guard.server_token}
        try:
            write_private(self._settings.data_dir / SERVER_FILE, orjson.dumps(record))
        except OSError as error:
            log.error("server.json cannot be written: commands will not find this server", error=str(error))
        link = f"\nOpen the phone simulator: {state.simulator.link(url)}" if state.simulator else ""
        with suppress(OSError):  # nobody reads the output any more
            print(f"Recado is running at {url}\nOpen the console: {url}/console{link}", flush=True)  # noqa: T201
        for name in self._settings.missing_credentials:
            log.error("a WhatsApp credential is missing: /webhook answers 401 until it is set", variable=name)
