"""A channel that shows what is written to it to nobody."""

from app.messages import Accepted, Address, Outgoing, SendResult


class Screen:
    name = "whatsapp"

    def render(self, markdown: str) -> list[Outgoing]:
        return [Outgoing(markdown)]

    async def send(self, to: Address, message: Outgoing, outbox_id: str) -> SendResult:
        return Accepted(outbox_id)

    async def typing(self, message_id: str) -> None:
        return None
