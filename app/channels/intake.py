"""Taking messages in: one transaction for a webhook or a typed line, then hints to those it concerns."""

import asyncio
import re
import time
from dataclasses import asdict, dataclass, replace

import structlog
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse

from app.channels.access import AccessPolicy
from app.channels.terminal import typed_line
from app.channels.whatsapp.credentials import Credentials, verify_handshake, verify_signature
from app.channels.whatsapp.errors import THEN
from app.channels.whatsapp.payloads import decode, read_webhook
from app.errors import StoreError
from app.http.limits import BodyReader
from app.i18n import lazy
from app.messages import Unreadable, Wakeable, Webhook
from app.ops.health import Metrics
from app.phones import mask
from app.store import alerts, approvals, inbox
from app.store.database import Connection, Database, keep_meta
from app.store.inbox import IntakeResult
from app.text import Private
from app.turns.inbound import classify_inbound
from app.turns.scheduler import TurnScheduler

log = structlog.get_logger(__name__)

COMMIT_SECONDS = 3.0
LONGEST_DELIVERY = 8 * 86_400.0  # seconds: Meta tries for seven days to deliver to a server that was away
BODY_BYTES = 3 * 1024 * 1024
HELD_BYTES = 16 * BODY_BYTES  # of bodies that are still coming: strangers can make us hold them in memory
KEPT_OF_GARBAGE = 64 * 1024
_SIGNATURE = re.compile(r"sha256=[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Wakes:
    """The parts that get hints; without them only the sweep finds work."""

    carrier: TurnScheduler
    sender: Wakeable
    look_again: asyncio.Event  # set, it makes the sweep look now


class Intake:
    """Writes what came in; a hint is given after the commit, if there are `wakes`."""

    def __init__(self, store: Database, access: AccessPolicy, metrics: Metrics, wakes: Wakes | None) -> None:
        self._store = store
        self._access = access
        self._metrics = metrics
        self._wakes = wakes

    async def take_webhook(self, webhook: Webhook) -> None:
        """Commit everything that a webhook holds. Raise StoreError, or TimeoutError after three seconds.

        After the time-out the function stays queued: it may still be committed.
        """
        rules, now = self._access.intake_rules(self._access.realm), time.time()
        webhook = _without_old(webhook, now)
        classified = [classify_inbound(message) for message in webhook.messages]

        def take(conn: Connection) -> IntakeResult:
            taken = inbox.take_in(conn, rules, classified, webhook, now)
            for effect in taken.applied:
                if effect.error and not effect.again:
                    code, error = effect.code, f"{effect.code} {effect.error}"
                    kind = "send" if THEN.get(code) == "hold" else "undelivered"  # hold: all others fail too
                    text = lazy("WhatsApp could not deliver a message: {error}", error=error)
                    alerts.raise_alert(conn, f"{kind}:{code}", text, now)
            return taken

        written = self._store.tx(take, then=self._after_webhook)
        await asyncio.wait_for(asyncio.shield(written), COMMIT_SECONDS)

    async def handshake_came(self) -> None:
        """Note that Meta's handshake succeeded, which the console shows."""
        now = time.time()
        await self._store.tx(lambda conn: keep_meta(conn, "handshake", str(now)))

    async def take_line(self, text: str) -> None:
        """Take in a line from the terminal."""
        rules, now = self._access.intake_rules("terminal"), time.time()
        classified, is_a = classify_inbound(typed_line(text)), text.strip().casefold() == "a"

        def take(conn: Connection) -> IntakeResult:
            ends = is_a and approvals.has_open_on(conn, "terminal")  # of [y/n/a]: it ends the turn that asks
            message = replace(classified, kind="stop") if ends else classified
            return inbox.take_in(conn, rules, [message], Webhook(), now)

        await self._store.tx(take, then=self._hint)

    def _after_webhook(self, taken: IntakeResult) -> None:
        self._metrics.messages_taken("accepted", taken.accepted)
        self._metrics.messages_taken("duplicate", taken.duplicates)
        self._metrics.messages_taken("turned_away", len(taken.turned_away))
        _log(taken)
        self._hint(taken)

    def _hint(self, taken: IntakeResult) -> None:
        if self._wakes is None:
            return
        for conversation in taken.wake:
            self._wakes.carrier.message_stored(conversation)
        for person in taken.notices:
            self._wakes.sender.wake(person)
        if taken.handed_over:
            self._wakes.look_again.set()


def _without_old(webhook: Webhook, now: float) -> Webhook:
    """Make messages that are too old to be redeliveries unreadable: somebody plays a kept body again."""
    old = [message for message in webhook.messages if 0 < message.at < now - LONGEST_DELIVERY]
    if not old:
        return webhook
    told = [Unreadable("older than 8 days by its own time", asdict(message)) for message in old]
    fresh = [message for message in webhook.messages if message not in old]
    return replace(webhook, messages=fresh, unreadable=[*webhook.unreadable, *told])


def _log(taken: IntakeResult) -> None:
    """Log what an operator should see: who was turned away, and what could not be delivered."""
    for away in taken.turned_away:
        log.warning("turned away", who=mask(away.value), reason=away.reason)
    for frozen in taken.frozen:
        log.warning("kept until an owner confirms them with recado people allow", who=mask(frozen))
    for owner in taken.new_owners:
        log.warning("an owner took over with the one-time code", who=mask(owner))
    for effect in taken.applied:
        if effect.error:
            level = log.warning if effect.again else log.error
            level("delivery failed", code=effect.code, reason=Private(effect.error), again=effect.again)


def webhook_router(intake: Intake, credentials: Credentials, metrics: Metrics) -> APIRouter:
    """Return `GET` and `POST /webhook`: nothing without a signature, 200 only after the commit.

    An empty app secret means that every POST is 401.
    """
    router = APIRouter(include_in_schema=False)
    bodies = BodyReader(BODY_BYTES, HELD_BYTES)

    @router.get("/webhook")
    async def handshake(request: Request) -> Response:
        if not credentials.app_secret:
            return PlainTextResponse("WhatsApp's credentials are not complete", 401)
        challenge = verify_handshake(request.query_params, credentials.verify_token)
        if challenge is None:
            return PlainTextResponse("the verify token does not match", 403)
        await intake.handshake_came()
        return PlainTextResponse(challenge)

    @router.post("/webhook")
    async def receive(request: Request) -> Response:
        try:
            answer = await _take_in(await signed_body(request), intake)
        except HTTPException as refused:
            answer = PlainTextResponse(refused.detail, refused.status_code)
        metrics.webhook_answered(answer.status_code)
        return answer

    async def signed_body(request: Request) -> bytes:
        header = request.headers.get("x-hub-signature-256", "")
        if credentials.app_secret and _SIGNATURE.fullmatch(header):
            body = await bodies.read(request)
            if verify_signature(body, header, credentials.app_secret):
                return body
        raise HTTPException(401, "the signature does not match")

    return router


async def _take_in(body: bytes, intake: Intake) -> Response:
    try:
        await intake.take_webhook(_read(body))
    except Exception as error:  # Meta sends it again, and the operator sees why
        foreseen = isinstance(error, TimeoutError | StoreError)
        log.error("webhook not committed", error=str(error) or "took over 3 s", exc_info=not foreseen)
        return PlainTextResponse("not stored, send it again", 503)
    return Response()


def _read(body: bytes) -> Webhook:
    try:
        return read_webhook(decode(body))
    except ValueError as error:
        kept = body[:KEPT_OF_GARBAGE].decode("utf-8", "replace").replace("\x00", "�")
        return Webhook(unreadable=[Unreadable(f"not JSON: {error}", kept)])
