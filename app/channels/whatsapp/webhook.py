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
from app.ops.metrics import Metrics

log = structlog.get_logger(__name__)

BODY_BYTES = 3 * 1024 * 1024
HELD_BYTES = 16 * BODY_BYTES  # of bodies that are still coming: strangers can make us hold them in memory
KEPT_OF_GARBAGE = 64 * 1024
_SIGNATURE = re.compile(r"sha256=[0-9a-fA-F]{64}")


def webhook_router(intake: Intake, credentials: Credentials, metrics: Metrics) -> APIRouter:
    """Return the webhook's routes. An empty app secret means that every POST is 401."""
    routes = _WebhookRoutes(intake, credentials, metrics)
    router = APIRouter(include_in_schema=False)
    for path in ("/webhook", "/webhook/"):  # Meta follows no redirect
        router.add_api_route(path, routes.handshake, methods=["GET"])
        router.add_api_route(path, routes.receive, methods=["POST"])
    return router


class _WebhookRoutes:
    def __init__(self, intake: Intake, credentials: Credentials, metrics: Metrics) -> None:
        self._intake = intake
        self._credentials = credentials
        self._metrics = metrics
        self._bodies = BodyReader(BODY_BYTES, HELD_BYTES)

    async def handshake(self, request: Request) -> Response:
        if not self._credentials.app_secret:
            return PlainTextResponse("WhatsApp's credentials are not complete", 401)
        challenge = verify_handshake(request.query_params, self._credentials.verify_token)
        if challenge is None:
            return PlainTextResponse("the verify token does not match", 403)
        return PlainTextResponse(challenge)

    async def receive(self, request: Request) -> Response:
        try:
            await self._take_in(await self._signed_body(request))
            answer = Response()
        except HTTPException as refused:
            answer = PlainTextResponse(refused.detail, refused.status_code)
        self._metrics.webhook_answered(answer.status_code)
        return answer

    async def _signed_body(self, request: Request) -> bytes:
        header = request.headers.get("x-hub-signature-256", "")
        secret = self._credentials.app_secret
        if secret and _SIGNATURE.fullmatch(header):
            body = await self._bodies.read(request)
            if verify_signature(body, header, secret):
                return body
        raise HTTPException(401, "the signature does not match")

    async def _take_in(self, body: bytes) -> None:
        webhook = _read(body)
        try:
            await self._intake.take_webhook(webhook)
        except Exception as error:  # Meta sends it again, and the operator sees why
            foreseen = isinstance(error, TimeoutError | StoreError)
            log.error("webhook not committed", error=str(error) or "took over 3 s", exc_info=not foreseen)
            raise HTTPException(503, "not stored, send it again") from None
        for field in webhook.notices:
            log.info("webhook notice", field=field)


def _read(body: bytes) -> Webhook:
    try:
        return read_webhook(decode(body))
    except ValueError as error:
        kept = body[:KEPT_OF_GARBAGE].decode("utf-8", "replace").replace("\x00", "�")
        return Webhook(unreadable=[Unreadable(f"not JSON: {error}", kept)])
