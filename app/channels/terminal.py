"""The terminal as a channel: a typed line comes in like any message, a reply waits to be read."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from app.messages import Accepted, Address, Button, FetchFailed, Inbound, Outgoing, Sender, SendResult
from app.people import TERMINAL_USER
from app.store.database import new_id
from app.store.media import MediaFolder


class TerminalChannel:
    """The `Channel` of `recado chat`, for the one person at the console."""

    name = "terminal"

    def __init__(self, media: MediaFolder | None = None) -> None:
        self._media = media
        self._replies: asyncio.Queue[str] = asyncio.Queue()

    def render(self, markdown: str) -> list[Outgoing]:
        return [Outgoing(markdown)] if markdown.strip() else []

    def ask(self, text: str, question: str, buttons: Sequence[Button]) -> list[Outgoing]:
        keys = " [y/n/a]" if buttons else ""
        whole = text if text.startswith(question) else f"{text}\n\n{question}"
        return [Outgoing(f"{whole}{keys}", tuple(buttons))]

    def choose(self, question: str, options: Sequence[Button], list_label: str) -> list[Outgoing]:
        lines = (f"{number}. {option.title}" for number, option in enumerate(options, 1))
        return [Outgoing("\n".join([question, *lines]))]

    async def send(self, to: Address, message: Outgoing, outbox_id: str) -> SendResult:
        text = message.text
        if message.file is not None and self._media is not None:
            text = f"{text}: {self._media.absolute(message.file.path)}"
        self._replies.put_nowait(text)
        return Accepted(f"terminal.{outbox_id}")

    async def fetch(self, media_id: str, target: Path, limit: int) -> None:
        """Have no file: only text is typed."""
        raise FetchFailed("gone")

    async def typing(self, message_id: str) -> None:
        """Show nothing: a terminal has no sign of typing."""

    async def replies(self, seconds: float) -> list[str]:
        """Return what was sent since the last call; wait up to `seconds` for the first."""
        try:
            async with asyncio.timeout(seconds):
                first = await self._replies.get()
        except TimeoutError:
            return []
        return [first, *(self._replies.get_nowait() for _ in range(self._replies.qsize()))]


def typed_line(text: str) -> Inbound:
    """Return a line typed in the terminal as an inbound message."""
    return Inbound(id=new_id("typed"), sender=Sender(user_id=TERMINAL_USER), kind="text", text=text)
