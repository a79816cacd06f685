"""`GET` and `POST /webhook`: nothing without a signature, 200 only after the commit."""

import re

import structlog
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse

from app.channels.intake import Intake
from app.channels.whatsapp.credentials import Credentials
from app.channels.whatsapp.payloads import Webhook, read_webhook
from app.channels.whatsapp.signature import verify_handshake, verify_signature
from app.channels.whatsapp.values import decode
from app.errors import StoreError
from app.http.limits import BodyReader
from app.messages import Unreadable
from app.ops.health import Metrics

log = structlog.get_logger(__name__)

BODY_BYTES = 3 * 1024 * 1024
HELD_BYTES = 16 * BODY_BYTES  # of bodies that are still coming: strangers can make us hold them in memory
KEPT_OF_GARBAGE = 64 * 1024
_SIGNATURE = re.compile(r"sha256=[0-9a-fA-F]{64}")


def webhook_router(intake: Intake, credentials: Credentials, metrics: Metrics) -> APIRouter:
    """Return the webhook's routes. An empty app secret means that every POST is 401."""
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
            await _take_in(await signed_body(request), intake)
            answer = Response()
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


async def _take_in(body: bytes, intake: Intake) -> None:
    try:
        await intake.take_webhook(_read(body))
    except Exception as error:  # Meta sends it again, and the operator sees why
        foreseen = isinstance(error, TimeoutError | StoreError)
        log.error("webhook not committed", error=str(error) or "took over 3 s", exc_info=not foreseen)
        raise HTTPException(503, "not stored, send it again") from None


def _read(body: bytes) -> Webhook:
    try:
        return read_webhook(decode(body))
    except ValueError as error:
        kept = body[:KEPT_OF_GARBAGE].decode("utf-8", "replace").replace("\x00", "�")
        return Webhook(unreadable=[Unreadable(f"not JSON: {error}", kept)])
