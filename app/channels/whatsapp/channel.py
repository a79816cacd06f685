"""WhatsApp as a channel: Meta's client, and text in WhatsApp's own formatting."""

from collections.abc import Sequence

from app.channels.whatsapp.client import TEXT_LIMIT, GraphClient
from app.channels.whatsapp.formatting import render_parts
from app.channels.whatsapp.marks import literal, raw, revealed, settle, without_signs
from app.channels.whatsapp.splitting import split_message
from app.messages import Address, Button, Outgoing, SendResult

BUTTONS_BODY = 1024
"""Characters beside reply buttons."""


class WhatsAppChannel:
    """Fulfils `Channel` over the Graph API."""

    name = "whatsapp"

    def __init__(self, client: GraphClient) -> None:
        self._client = client

    def render(self, markdown: str) -> list[Outgoing]:
        return [Outgoing(part) for part in render_parts(markdown, TEXT_LIMIT)]

    def ask(self, text: str, question: str, buttons: Sequence[Button]) -> list[Outgoing]:
        text = without_signs(text)
        whole = f"{settle(literal(text))}\n\n{question}"
        if len(whole) <= BUTTONS_BODY:
            return [Outgoing(whole, tuple(buttons))]
        parts = split_message(raw(text), TEXT_LIMIT // 2)  # what keeps a mark from formatting may double it
        plain = [Outgoing(settle(literal(revealed(part)))) for part in parts]
        return [*plain, Outgoing(question, tuple(buttons))]

    async def send(self, to: Address, message: Outgoing, outbox_id: str) -> SendResult:
        return await self._client.send(to, message, outbox_id)

    async def typing(self, message_id: str) -> None:
        await self._client.typing(message_id)
