"""An application of a test's, served on a port of its own by a thread, at whose end nothing is waited for."""

import asyncio
import threading
from typing import Any

import uvicorn


class Listener(uvicorn.Server):
    """Serves from its making until `stop`."""

    def __init__(self, app: Any) -> None:
        super().__init__(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", access_log=False))
        self._serving = threading.Event()
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        if not self._serving.wait(10):
            raise AssertionError("a stand-in did not start")
        self.port = int(self.servers[0].sockets[0].getsockname()[1])

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(10)

    async def main_loop(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._serving.set()
        await self._ended.wait()

    async def shutdown(self, sockets: Any = None) -> None:
        """Ends what still hangs, where uvicorn's own pauses for it."""
        for server in self.servers:
            server.close()
        await self.lifespan.shutdown()
        for task in self.server_state.tasks:
            task.cancel()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
