"""What happens, told to every open page."""

import asyncio
from collections.abc import AsyncGenerator

from app.messages import JSON

_WAITING = 1000


class Feed:
    """Hands each event to every follower; one that does not keep up is let go and comes back by itself."""

    def __init__(self) -> None:
        self._followers: set[asyncio.Queue[JSON]] = set()
        self._closed = False

    def publish(self, event: JSON) -> None:
        for queue in list(self._followers):
            if queue.qsize() < _WAITING:
                queue.put_nowait(event)
            else:
                self._followers.discard(queue)
                queue.put_nowait(None)

    def follow(self, heartbeat: float) -> AsyncGenerator[JSON]:
        """Follows from this call on: events, and None after `heartbeat` seconds without one.

        Ends when the feed closes.
        """
        queue: asyncio.Queue[JSON] = asyncio.Queue()
        self._followers.add(queue)
        return self._events(queue, heartbeat)

    async def _events(self, queue: asyncio.Queue[JSON], heartbeat: float) -> AsyncGenerator[JSON]:
        try:
            while not self._closed:
                try:
                    event = await asyncio.wait_for(queue.get(), heartbeat)
                except TimeoutError:
                    yield None
                    continue
                if event is None:
                    return
                yield event
        finally:
            self._followers.discard(queue)

    def open(self) -> None:
        self._closed = False

    def close(self) -> None:
        """Ends every stream at once."""
        self._closed = True
        for queue in self._followers:
            queue.put_nowait(None)
        self._followers.clear()
