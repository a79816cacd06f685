"""What installs of skills and of servers share: the approval of one, and the notices while it takes long."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Literal

from app.messages import Channel, Wakeable
from app.store import outbox, people
from app.store.database import Database
from app.store.outbox import Draft
from app.tools import ToolContext

FIRST_SECONDS = 8.0  # of an install without a notice
BETWEEN_SECONDS = 20.0
MAX_NOTICES = 3

Stage = Literal["downloading", "trying", "older-sdk", "keeping"]
ReportStage = Callable[[Stage], None]


@dataclass(frozen=True)
class Approval:
    """A yes: to what, by whom (a person's id, or "shell"), and whether its tools are trusted.

    `address` is the one that the person gave for a skill.
    """

    subject: str
    approved_by: str
    trusted: bool = False
    address: str = ""


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


@asynccontextmanager
async def telling_progress(
    notices: Notices,
    context: ToolContext,
    stage: str,
    *,
    first: float = FIRST_SECONDS,
    between: float = BETWEEN_SECONDS,
) -> AsyncIterator[Callable[[str], None]]:
    """Tell the stages of a long install, once each: three notices at most, none if it is short.

    Yields the function that notes the next stage, which is a sentence for the person.
    """
    stages = [stage]
    changed = asyncio.Event()
    changed.set()

    def reach(stage: str) -> None:
        if stage != stages[-1]:
            stages.append(stage)
            changed.set()

    async def tell() -> None:
        await asyncio.sleep(first)
        for number in range(MAX_NOTICES):
            await changed.wait()
            changed.clear()
            await notices.tell(context, number, stages[-1])
            await asyncio.sleep(between)

    telling = asyncio.create_task(tell(), name="progress of an install")
    try:
        yield reach
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
