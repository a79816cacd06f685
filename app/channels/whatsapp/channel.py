"""WhatsApp as a channel: Meta's client, and text in WhatsApp's own formatting."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from app.channels.whatsapp.choices import choice_messages
from app.channels.whatsapp.client import TEXT_LIMIT, GraphClient
from app.channels.whatsapp.formatting import render_parts
from app.channels.whatsapp.marks import literal, raw, revealed, settle, without_signs
from app.channels.whatsapp.splitting import split_message
from app.messages import Address, Button, MediaFile, Outgoing, Refused, SendResult
from app.store.media import MediaFolder

UPLOADS_AT_ONCE = 4  # each holds its file in memory
BUTTONS_BODY = 1024  # characters beside reply buttons


class WhatsAppChannel:
    """The `Channel` over the Graph API."""

    name = "whatsapp"

    def __init__(self, client: GraphClient, media: MediaFolder) -> None:
        self._client = client
        self._media = media
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)

    def render(self, markdown: str) -> list[Outgoing]:
        return [Outgoing(part) for part in render_parts(markdown, TEXT_LIMIT)]

    def ask(self, text: str, question: str, buttons: Sequence[Button]) -> list[Outgoing]:
        text = without_signs(text)
        whole = f"{settle(literal(text))}\n\n{question}"
        if len(whole) <= BUTTONS_BODY:
            return [Outgoing(whole, tuple(buttons))]
        longer = 3 if "```" in text else 2  # escaping three backticks makes eight characters of them
        parts = split_message(raw(text), TEXT_LIMIT // longer)
        plain = [Outgoing(settle(literal(revealed(part)))) for part in parts]
        return [*plain, Outgoing(question, tuple(buttons))]

    def choose(self, question: str, options: Sequence[Button], list_label: str) -> list[Outgoing]:
        return choice_messages(question, options, list_label)

    async def send(self, to: Address, message: Outgoing, outbox_id: str) -> SendResult:
        if message.file is None:
            return await self._client.send(to, message, outbox_id)
        uploaded = await self._upload(message.file)
        if isinstance(uploaded, Refused):
            return uploaded
        return await self._client.send(to, message, outbox_id, uploaded)

    async def fetch(self, media_id: str, target: Path, limit: int) -> None:
        await self._client.fetch(media_id, target, limit)

    async def typing(self, message_id: str) -> None:
        await self._client.typing(message_id)

    async def _upload(self, file: MediaFile) -> str | Refused:
        async with self._uploads:
            try:
                data = await asyncio.to_thread(self._media.read, file)
            except OSError as error:
                return Refused("give_up", detail=f"the file {file.path} cannot be read: {error.strerror}")
            return await self._client.upload(file, data)
