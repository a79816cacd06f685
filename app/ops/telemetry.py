"""Traces for OpenTelemetry: each turn that ended, with its model calls and tool calls as spans.

They are made from the rows of the turn, so that nothing is measured twice. Words of people are not in them.
"""

import asyncio
import os
import time
from typing import Any

import structlog

from app import __version__
from app.store import journal
from app.store.database import Connection, Database
from app.store.journal import Step, TurnHead
from app.tasks import end_tasks

log = structlog.get_logger(__name__)

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
LOOK_SECONDS = 5.0
AT_ONCE = 100
_NANOSECONDS = 1_000_000_000


class Telemetry:
    """Exports what ended since it began. Without an endpoint, or without the packages, it does nothing."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._provider: Any = None

    def start(self) -> None:
        if not os.environ.get(ENDPOINT):
            return
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            log.warning("traces are not exported: pip install 'recado[otel]'", variable=ENDPOINT)
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
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if self._store.is_leader:
                    since = await self._export(since)
            except Exception as error:
                log.error("traces were not exported", error=f"{type(error).__name__}: {error}")

    async def _export(self, since: float) -> float:
        """Export the turns that ended after `since`; return when the last of them did."""

        def read(conn: Connection) -> list[tuple[TurnHead, list[Step]]]:
            found = []
            for id in journal.ended_since(conn, since, AT_ONCE):
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
        return f"execute_tool {step.name}", {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step.name,
        }
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
    return int(seconds * _NANOSECONDS)
