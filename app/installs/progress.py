"""Notices to a person while an install takes long."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from types import TracebackType

from app.messages import Channel, Wakeable
from app.store import outbox, people
from app.store.database import Database
from app.store.outbox import Draft
from app.tools import ToolContext

FIRST_SECONDS = 8.0  # of an install without a notice
BETWEEN_SECONDS = 20.0
MAX_NOTICES = 3

Tell = Callable[[int, str], Awaitable[None]]


@dataclass(frozen=True)
class Notices:
    """Sends notices about a call that is under way, each once even if a crash repeats the call."""

    store: Database
    channels: Mapping[str, Channel]
    sender: Wakeable

    async def tell(self, context: ToolContext, number: int, text: str) -> None:
        """Send the notice of that number about a call."""
        person, channel = context.person, self.channels[context.channel]
        assert person is not None
        now, source = time.time(), f"progress:{context.idempotency_key}:{number}"

        def put(conn: Connection) -> None:
            conversation = people.conversation(conn, person.id, context.channel, "", now)
            outbox.put_reply(conn, conversation, source, Draft(text, tuple(channel.render(text))), now)

        await self.store.tx(put)
        self.sender.wake(person.id)


class Progress:
    """Tells the stage that a long install is in, once each: three notices at most, none if it is short."""

    def __init__(
        self, tell: Tell, stage: str, *, first: float = FIRST_SECONDS, between: float = BETWEEN_SECONDS
    ) -> None:
        self._tell = tell
        self._stage = stage
        self._first = first
        self._between = between
        self._changed = asyncio.Event()
        self._changed.set()
        self._telling: asyncio.Task[None] | None = None

    def reach(self, stage: str) -> None:
        """Note the stage, as a sentence for the person."""
        if stage != self._stage:
            self._stage = stage
            self._changed.set()

    async def __aenter__(self) -> "Progress":
        self._telling = asyncio.create_task(self._follow(), name="progress of an install")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _follow(self) -> None:
        await asyncio.sleep(self._first)
        for number in range(MAX_NOTICES):
            await self._changed.wait()
            self._changed.clear()
            await self._tell(number, self._stage)
            await asyncio.sleep(self._between)
