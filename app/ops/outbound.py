"""Events by webhook and traces by OpenTelemetry for the operator's other systems."""

import asyncio
import base64
import hashlib
import hmac
import os
import time
from collections.abc import Sequence
from typing import Any

import structlog

from app import __version__
from app.http.address import FetchError, origins
from app.http.transport import Transport
from app.i18n import lazy
from app.settings import OutboundWebhook
from app.store import alerts, events, journal
from app.store.database import Connection, Database
from app.store.events import Delivery
from app.store.journal import Step, TurnHead
from app.tasks import end_tasks

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
ANSWER_SECONDS = 15.0
AT_ONCE = 10
LARGEST_ANSWER = 64 * 1024
# Before each further attempt, as Standard Webhooks recommends; after the last the event is given up.
PAUSES = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
TRACES_SECONDS = 5.0  # between two looks at the turns that ended
TRACES_AT_ONCE = 100
COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"


class WebhooksOut:
    """Posts events to addresses of the operator, signed as Standard Webhooks (standardwebhooks.com) say.

    What waits is in the rows. Without addresses it does nothing.
    """

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


class Telemetry:
    """Exports each turn that ended since it began, with its model calls and tool calls as spans.

    They are made from the rows of the turn, so that nothing is measured twice; words of people are not in
    them. Without a collector, or without the packages, it does nothing.
    """

    def __init__(self, store: Database) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._provider: Any = None

    def start(self) -> None:
        if not os.environ.get(COLLECTOR):
            return
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            log.warning("traces are not exported: pip install 'recado[otel]'", variable=COLLECTOR)
            return
        resource = Resource.create({"service.name": "recado", "service.version": __version__})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._task = asyncio.create_task(self._run(), name="telemetry")

    async def stop(self) -> None:
        if self._task is not None:
            await end_tasks(self._task)
            await asyncio.to_thread(self._provider.shutdown)

    async def _run(self) -> None:
        since = time.time()
        while True:
            await asyncio.sleep(TRACES_SECONDS)
            try:
                if self._store.is_leader:
                    since = await self._export(since)
            except Exception as error:
                log.error("traces were not exported", error=f"{type(error).__name__}: {error}")

    async def _export(self, since: float) -> float:
        """Export the turns that ended after `since`; return when the last of them did."""

        def read(conn: Connection) -> list[tuple[TurnHead, list[Step]]]:
            found = []
            for id in journal.ended_since(conn, since, TRACES_AT_ONCE):
                head, trace = journal.turn_head(conn, id), journal.turn_trace(conn, id)
                found.append((head, journal.steps(conn, head, trace, time.time())))
            return found

        for head, steps in await self._store.read(read):
            self._spans(head, steps)
            since = max(since, head.done_at or since)
        return since

    def _spans(self, head: TurnHead, steps: list[Step]) -> None:
        from opentelemetry import trace
        from opentelemetry.trace import Status, StatusCode

        tracer = self._provider.get_tracer("recado", __version__)
        about = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "recado",
            "gen_ai.conversation.id": head.conversation_id,
            "recado.turn": head.id,
            "recado.outcome": head.outcome,
        }
        turn = tracer.start_span("invoke_agent recado", start_time=_at(head.waited_since), attributes=about)
        within = trace.set_span_in_context(turn)
        for step in steps:
            name, attributes = _described(step)
            span = tracer.start_span(name, within, start_time=_at(step.start), attributes=attributes)
            if step.ok is False:
                span.set_status(Status(StatusCode.ERROR))
            span.end(_at(step.end))
        if head.outcome == "failed":
            turn.set_status(Status(StatusCode.ERROR))
        turn.end(_at(max([head.done_at or head.created_at, *(step.end for step in steps)])))


def _described(step: Step) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of a span, by the semantic conventions for generative AI."""
    if step.kind == "tool":
        about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": step.name}
        return f"execute_tool {step.name}", about
    if (call := step.call) is None:
        return step.kind, {}
    return f"chat {call.model}", {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": call.model,
        "gen_ai.response.model": call.model,
        "gen_ai.usage.input_tokens": call.prompt_tokens,
        "gen_ai.usage.output_tokens": call.completion_tokens,
    }


def _at(seconds: float) -> int:
    """Return a time in the nanoseconds of OpenTelemetry."""
    return int(seconds * 1_000_000_000)
