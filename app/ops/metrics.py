"""Metrics for Prometheus."""

from collections.abc import Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from app.messages import JSON
from app.store.tool_statistics import counted_code

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
OUTBOX_STATES = ("ready", "sending", "unknown", "held")

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self._webhooks = Counter("recado_webhooks", "Webhook bodies by status", ["status"], registry=own)
        self._messages = Counter("recado_messages", "Inbound messages by outcome", ["outcome"], registry=own)
        self._calls = Counter("recado_tool_calls", "Tool calls by result", ["tool", "code"], registry=own)
        self._answers = Counter("recado_model_answers", "Answers by model", ["model"], registry=own)
        self._seconds = Histogram(
            "recado_tool_seconds", "Seconds a tool call took", ["tool"], buckets=SECONDS, registry=own
        )
        self._running = Gauge("recado_running_turns", "Turns running now", registry=own)
        self._waiting = Gauge("recado_waiting_messages", "Messages that no turn has claimed", registry=own)
        self._outbox = Gauge("recado_outbox", "Outbox rows by state", ["state"], registry=own)
        self._billed = Gauge(
            "recado_month_messages", "This month's messages with a price", ["category"], registry=own
        )
        self._tokens = Gauge("recado_month_tokens", "This month's tokens of the model", registry=own)
        self._cost = Gauge("recado_month_cost", "Cost of this month's messages", ["currency"], registry=own)
        self._codes: dict[str, set[str]] = {}  # by tool: labels must stay bounded

    def webhook_answered(self, status: int) -> None:
        """Count a webhook by the status it was answered with."""
        self._webhooks.labels(str(status)).inc()

    def messages_taken(self, outcome: str, messages: int) -> None:
        """Count messages of a webhook as accepted, duplicate or turned_away."""
        if messages:
            self._messages.labels(outcome).inc(messages)

    def model_answered(self, model: str) -> None:
        """Count an answer of a configured model."""
        self._answers.labels(model).inc()

    def tool_called(self, tool: str, code: str, seconds: float | None) -> None:
        """Count a tool call: `code` is "ok" or its error code, `seconds` is None if it never ran."""
        codes = self._codes.setdefault(tool, set())
        counted = counted_code(code, codes)
        codes.add(counted)
        self._calls.labels(tool, counted).inc()
        if seconds is not None:
            self._seconds.labels(tool).observe(seconds)

    def render(
        self, running_turns: int, waiting_messages: int, outbox: Mapping[str, int], usage: Mapping[str, JSON]
    ) -> bytes:
        """Return all metrics as Prometheus reads them; `usage`: what `billing.usage` tells of this month."""
        for category, messages in usage["categories"].items():
            self._billed.labels(category).set(messages)
        self._tokens.set(usage["tokens"])
        self._cost.labels(usage["currency"]).set(usage["cost"])
        self._running.set(running_turns)
        self._waiting.set(waiting_messages)
        for state in OUTBOX_STATES:
            self._outbox.labels(state).set(outbox.get(state, 0))
        return generate_latest(self._registry)
