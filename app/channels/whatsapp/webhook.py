"""The webhook: nothing without a signature, 200 only after the commit."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.types import Lifespan, Receive, Scope, Send

from app.channels.whatsapp.client import HOLD
from app.channels.whatsapp.payloads import Webhook, read_webhook
from app.channels.whatsapp.signature import verify_handshake, verify_signature
from app.channels.whatsapp.values import decode
from app.errors import StoreError
from app.messages import Inbound, Unreadable
from app.phones import mask
from app.store import alerts, inbox, outbox
from app.store.database import Database
from app.store.inbox import ClassifiedMessage, IntakeResult, IntakeRules
from app.store.outbox import StatusEffect

log = structlog.get_logger(__name__)

BODY_LIMIT = 3 * 1024 * 1024
COMMIT_SECONDS = 3.0
HELD_BYTES = 16 * BODY_LIMIT
"""Of bodies that are still coming: what strangers can make us hold in memory."""
_TAKEN = Response()
"""Without a body, which would be a packet of its own."""
_SIGNATURE = re.compile(r"sha256=[0-9a-fA-F]{64}")


class BodyTooLarge(Exception):
    """More than Meta ever sends."""


class TooMuchAtOnce(Exception):
    """More than may be held in memory is on its way."""


@dataclass(frozen=True, slots=True)
class Received:
    """What one body came to."""

    taken: IntakeResult
    applied: tuple[StatusEffect, ...]


class WhatsAppWebhook:
    """`GET` and `POST /webhook`, as an ASGI application. An empty secret means that every POST is 401."""

    def __init__(
        self,
        store: Database,
        entrance: Callable[[], IntakeRules],
        *,
        app_secret: str,
        verify_token: str,
        arrival: Callable[[Inbound], ClassifiedMessage],
        on_received: Callable[[Received], None],
        on_answer: Callable[[int], None],
    ) -> None:
        self._store = store
        self._entrance = entrance
        self._secret = app_secret
        self._verify_token = verify_token
        self._arrival = arrival
        self._on_received = on_received
        self._on_answer = on_answer
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method == "POST":
            response = await self._post(request)
            self._on_answer(response.status_code)
        else:
            response = self._handshake(request)
        await response(scope, receive, send)

    def _handshake(self, request: Request) -> Response:
        if not self._secret:
            return PlainTextResponse("WhatsApp's credentials are not complete", 401)
        challenge = verify_handshake(request.query_params, self._verify_token)
        if challenge is None:
            return PlainTextResponse("the verify token does not match", 403)
        return PlainTextResponse(challenge)

    async def _post(self, request: Request) -> Response:
        header = request.headers.get("x-hub-signature-256", "")
        if not self._secret or not _SIGNATURE.fullmatch(header):
            return PlainTextResponse("the signature does not match", 401)
        try:  # the server cuts a connection that is too slow
            body = await read_body(request, BODY_LIMIT, self._hold)
        except BodyTooLarge:
            return PlainTextResponse("a body has at most 3 MB", 413)
        except TooMuchAtOnce:
            return PlainTextResponse("too much at once, send it again", 503)
        except ClientDisconnect:
            return PlainTextResponse("the body did not arrive", 408)
        if not verify_signature(body, header, self._secret):
            return PlainTextResponse("the signature does not match", 401)
        return await self._take(self._read(body))

    def _hold(self, size: int) -> None:
        if self._held + size > HELD_BYTES:
            raise TooMuchAtOnce
        self._held += size

    def _read(self, body: bytes) -> Webhook:
        try:
            return read_webhook(decode(body))
        except ValueError as error:
            kept = body[: 64 * 1024].decode("utf-8", "replace").replace("\x00", "�")
            return Webhook(unreadable=[Unreadable(f"not JSON: {error}", kept)])

    async def _take(self, webhook: Webhook) -> Response:
        arrivals = [self._arrival(message) for message in webhook.messages]
        entrance, now = self._entrance(), time.time()
        try:
            written = self._store.submit(
                lambda conn: receive(conn, entrance, webhook, arrivals, now),
                then=self._on_received,
            )
            await asyncio.wait_for(asyncio.shield(written), COMMIT_SECONDS)
        except (TimeoutError, StoreError) as error:
            log.error("webhook not committed", error=str(error) or "took over 3 s")
            return PlainTextResponse("not stored, send it again", 503)
        except Exception:  # Meta sends it again, and the operator sees why
            log.exception("webhook not committed")
            return PlainTextResponse("not stored, send it again", 503)
        for field, _ in webhook.notices:
            log.info("webhook notice", field=field[:100])
        return _TAKEN


class WebhookFirst(Starlette):
    """Posted webhooks, which are most of all requests, go past the middleware and the router.

    An address with a slash at its end is the one without: Meta follows no redirect, and behind a tunnel one
    would lead from https to http.
    """

    def __init__(
        self, webhook: WhatsAppWebhook, routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette]
    ) -> None:
        super().__init__(routes=routes, lifespan=lifespan)
        self._webhook = webhook

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        if scope["type"] == "http" and scope["path"] == "/webhook" and scope["method"] == "POST":
            await self._webhook(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def receive(
    conn: Connection,
    entrance: IntakeRules,
    webhook: Webhook,
    arrivals: Sequence[ClassifiedMessage],
    now: float,
) -> Received:
    """Messages, changes, statuses and dead letters of one body, in one transaction."""
    taken = inbox.take_in(conn, entrance, arrivals, webhook.changes, webhook.pairs, webhook.unreadable, now)
    applied = [
        result
        for status in webhook.statuses
        if (result := outbox.apply_status(conn, status, now)) is not None
    ]
    for result in applied:
        if result.error and not result.again:
            text = f"WhatsApp could not deliver a message: {result.code} {result.error}"
            kind = "send" if result.code in HOLD else "undelivered"  # with the former all others fail too
            alerts.raise_alert(conn, f"{kind}:{result.code}", text, now)
    return Received(taken, tuple(applied))


def log_received(received: Received) -> None:
    """What an operator should see of a body: who was turned away, what could not be delivered."""
    for away in received.taken.turned_away:
        log.warning("turned away", who=mask(away.value), reason=away.reason)
    for frozen in received.taken.frozen:
        log.warning("kept until an owner confirms them with recado people allow", who=mask(frozen))
    for owner in received.taken.new_owners:
        log.warning("an owner took over with the one-time code", who=mask(owner))
    for result in received.applied:
        if result.error:
            level = log.warning if result.again else log.error
            level("delivery failed", code=result.code, reason=result.error, again=result.again)


async def read_body(request: Request, limit: int, hold: Callable[[int], None] = lambda size: None) -> bytes:
    """The body, at most `limit` bytes. Raises BodyTooLarge or ClientDisconnect.

    `hold(bytes)` is told of what is held while it comes, and of its end as a negative number; it may raise.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise BodyTooLarge
    chunks: list[bytes] = []
    size = 0
    more = True
    try:
        while more:  # what request.stream() does, without a generator: every webhook comes this way
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunk = message.get("body", b"")
            hold(len(chunk))
            size += len(chunk)
            if size > limit:
                raise BodyTooLarge
            chunks.append(chunk)
            more = message.get("more_body", False)
        return b"".join(chunks)
    finally:
        hold(-size)
