"""Figures for Prometheus."""

from collections.abc import Collection
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from app.observe.codes import UNKNOWN, counted_code


class Metrics:
    """Every figure we keep, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.webhooks = Counter(
            "recado_webhooks_total",
            "Webhook bodies by the status answered",
            ["status"],
            registry=self.registry,
        )
        self.messages = Counter(
            "recado_messages_total",
            "Inbound messages by what became of them",
            ["outcome"],
            registry=self.registry,
        )
        self.tool_calls = Counter(
            "recado_tool_calls_total",
            "Tool calls by tool and result",
            ["tool", "code"],
            registry=self.registry,
        )
        self.tool_seconds = Histogram(
            "recado_tool_seconds", "Seconds a tool call took", ["tool"], registry=self.registry
        )
        self.running_turns = Gauge("recado_running_turns", "Turns running now", registry=self.registry)
        self.waiting_messages = Gauge(
            "recado_waiting_messages", "Messages that no turn has claimed", registry=self.registry
        )
        self.outbox = Gauge("recado_outbox", "Outbox rows by state", ["state"], registry=self.registry)

        self._answers = cache(self.webhooks.labels)  # looking a label up costs more than counting
        self._outcomes = cache(self.messages.labels)
        self._tools: dict[str, _ToolSeries] = {}

    def answered(self, status: int) -> None:
        """A webhook was answered with this status."""
        self._answers(str(status)).inc()

    def taken(self, outcome: str, messages: int) -> None:
        """So many messages of a body came to this: accepted, duplicate or turned_away."""
        if messages:
            self._outcomes(outcome).inc(messages)

    def tool_called(self, tool: str, code: str, seconds: float | None) -> None:
        """A call of a tool came to this, "ok" or a failure's code; `seconds` None where it never ran."""
        if tool not in self._tools:
            self._tools[tool] = _ToolSeries(self.tool_seconds.labels(tool))
        series = self._tools[tool]
        if code not in series.codes:
            code = counted_code(code, series.codes)
        if code not in series.codes:
            series.codes[code] = self.tool_calls.labels(tool, code)
        series.codes[code].inc()
        if seconds is not None:
            series.seconds.observe(seconds)

    def keep_tools(self, names: Collection[str]) -> None:
        """Drops the figures of tools that are there no longer."""
        for tool in self._tools.keys() - {*names, UNKNOWN}:
            self.tool_seconds.remove(tool)
            for code in self._tools.pop(tool).codes:
                self.tool_calls.remove(tool, code)

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)


class _ToolSeries:
    """One tool's figures: to look a label up costs more than to count."""

    def __init__(self, seconds: Histogram) -> None:
        self.seconds = seconds
        self.codes: dict[str, Counter] = {}
