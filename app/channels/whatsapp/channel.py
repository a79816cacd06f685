"""WhatsApp as a channel: Meta's client, and text in WhatsApp's own formatting."""

from app.channels.whatsapp.client import TEXT_LIMIT, GraphClient
from app.channels.whatsapp.formatting import render_parts
from app.messages import Address, Outgoing, SendResult


class WhatsAppChannel:
    """Fulfils `Channel` over the Graph API."""

    name = "whatsapp"

    def __init__(self, client: GraphClient) -> None:
        self._client = client

    def render(self, markdown: str) -> list[Outgoing]:
        return [Outgoing(part) for part in render_parts(markdown, TEXT_LIMIT)]

    async def send(self, to: Address, message: Outgoing, outbox_id: str) -> SendResult:
        return await self._client.send(to, message, outbox_id)

    async def typing(self, message_id: str) -> None:
        await self._client.typing(message_id)
