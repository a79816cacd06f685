"""Deliver events to the operator's own systems, signed as Standard Webhooks (standardwebhooks.com) say."""

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Sequence

import structlog

from app.http.address import FetchError, origins
from app.http.transport import Transport
from app.i18n import lazy
from app.settings import OutboundWebhook
from app.store import alerts, events
from app.store.database import Database
from app.store.events import Delivery
from app.tasks import end_tasks

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
ANSWER_SECONDS = 15.0
AT_ONCE = 10
LARGEST_ANSWER = 64 * 1024
# Before each further attempt, as Standard Webhooks recommends; after the last the event is given up.
PAUSES = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)


class WebhooksOut:
    """Posts what waits in the rows. Without addresses it does nothing."""

    def __init__(self, store: Database, transport: Transport, webhooks: Sequence[OutboundWebhook]) -> None:
        self._store = store
        self._transport = transport
        self._secrets = {one.url: one.secret.get_secret_value() for one in webhooks}
        self._wanted = {one.url: one.events for one in webhooks}
        self._trusted = origins(self._secrets)  # an operator's system may be on this machine
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Keep the addresses and begin to deliver."""
        await self._store.tx(lambda conn: events.set_addresses(conn, self._wanted))
        self._tasks = [
            asyncio.create_task(self._run(url), name=f"webhooks to {url}") for url in self._secrets
        ]

    async def stop(self) -> None:
        await end_tasks(*self._tasks)

    async def _run(self, url: str) -> None:
        """Deliver to one address, for ever: a slow one holds up no other."""
        while True:
            try:
                now = time.time()
                found = []
                if self._store.is_leader:
                    found = await self._store.tx(lambda conn: events.due(conn, url, now, AT_ONCE))  # noqa: B023
                await asyncio.gather(*map(self._deliver, found))
            except Exception as error:  # the rows stay; the next look takes them up
                log.error("events were not delivered", error=f"{type(error).__name__}: {error}")
                found = []
            if not found:
                await asyncio.sleep(LOOK_SECONDS)

    async def _deliver(self, delivery: Delivery) -> None:
        fault = await self._post(delivery)
        now = time.time()
        if not fault:
            await self._store.tx(lambda conn: events.delivered(conn, delivery))
        elif delivery.attempts < len(PAUSES):
            due = now + PAUSES[delivery.attempts]
            log.warning("an event was not taken", delivery=delivery.id, fault=fault)
            await self._store.tx(lambda conn: events.postpone(conn, delivery, due))
        else:
            text = lazy("{url} took no event for three days: {fault}", url=delivery.url, fault=fault)
            await self._store.tx(lambda conn: alerts.raise_alert(conn, f"webhook:{delivery.url}", text, now))
            await self._store.tx(lambda conn: events.delivered(conn, delivery))

    async def _post(self, delivery: Delivery) -> str:
        """Send an event once and return why it was not taken, "" if it was."""
        stamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "webhook-id": delivery.id,
            "webhook-timestamp": stamp,
            "webhook-signature": signature(self._secrets[delivery.url], delivery.id, stamp, delivery.body),
        }
        try:
            answer = await self._transport.fetch(
                delivery.url,
                body=delivery.body.encode(),
                limit_bytes=LARGEST_ANSWER,
                seconds=ANSWER_SECONDS,
                headers=headers,
                trusted=self._trusted,
            )
        except FetchError as error:
            return error.told
        return "" if answer.ok else lazy("it answered {status}", status=answer.status)


def signature(secret: str, id: str, stamp: str, body: str) -> str:
    """Return the signature of a body: HMAC-SHA256 with the secret, which is base64 behind "whsec_"."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = hmac.new(key, f"{id}.{stamp}.{body}".encode(), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"
