"""WhatsApp as a channel: Meta's client, and text in WhatsApp's own formatting."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from app.channels.whatsapp.client import TEXT_LIMIT, GraphClient
from app.channels.whatsapp.formatting import render_whatsapp
from app.channels.whatsapp.marks import literal, raw, revealed, settle, without_signs
from app.channels.whatsapp.splitting import split_message
from app.messages import Address, Button, MediaFile, Outgoing, Refused, SendResult
from app.store.media import MediaFolder

UPLOADS_AT_ONCE = 4  # each holds its file in memory
# https://developers.facebook.com/docs/whatsapp/cloud-api/messages/interactive-list-messages
MOST_BUTTONS, MOST_ROWS = 3, 10
BUTTON_TITLE, ROW_TITLE = 20, 24
BUTTONS_BODY = 1024  # characters beside buttons, and above a list


class WhatsAppChannel:
    """The `Channel` over the Graph API."""

    name = "whatsapp"

    def __init__(self, client: GraphClient, media: MediaFolder) -> None:
        self._client = client
        self._media = media
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)

    def render(self, markdown: str) -> list[Outgoing]:
        return [Outgoing(part) for part in split_message(render_whatsapp(markdown), TEXT_LIMIT)]

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


def choice_messages(question: str, options: Sequence[Button], list_label: str) -> list[Outgoing]:
    """Return a question with its options; `list_label` is the button that opens a list.

    Where titles have no room, or are equal, they are numbered and cut, and the body holds all options whole.
    """
    titles = [option.title for option in options]
    width = BUTTON_TITLE if len(options) <= MOST_BUTTONS else ROW_TITLE
    lines = [f"{number}. {title}" for number, title in enumerate(titles, 1)]
    is_short = len(set(titles)) == len(titles) and all(len(title) <= width for title in titles)
    body = settle(literal(question if is_short else "\n\n".join([question, "\n".join(lines)])))
    if len(options) > MOST_ROWS or len(body) > BUTTONS_BODY:
        return [Outgoing(settle(literal(f"{question}\n\n" + "\n".join(lines)))[:TEXT_LIMIT])]
    shown = tuple(
        Button(option.id, option.title if is_short else _cut(line, width))
        for option, line in zip(options, lines, strict=True)
    )
    if len(options) <= MOST_BUTTONS:
        return [Outgoing(body, buttons=shown)]
    return [Outgoing(body, rows=shown, label=_cut(list_label, BUTTON_TITLE))]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"
