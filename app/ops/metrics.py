"""Figures for Prometheus: plain numbers, put into its form once somebody asks for them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.store.codes import UNKNOWN, counted_code

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.core import CounterMetricFamily

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds up to which calls are counted together."""


class Metrics:
    """Every figure we keep."""

    def __init__(self) -> None:
        self.running_turns = 0
        self.waiting_messages = 0
        self.outbox: Mapping[str, int] = {}
        """Rows by state."""
        self._answers: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._tools: dict[str, _Calls] = {}

    def answered(self, status: int) -> None:
        """A webhook was answered with this status."""
        self._answers[str(status)] += 1

    def taken(self, outcome: str, messages: int) -> None:
        """So many messages of a body came to this: accepted, duplicate or turned_away."""
        if messages:
            self._outcomes[outcome] += messages

    def tool_called(self, tool: str, code: str, seconds: float | None) -> None:
        """A call of a tool came to this, "ok" or a failure's code; `seconds` None where it never ran."""
        if tool not in self._tools:
            self._tools[tool] = _Calls()
        calls = self._tools[tool]
        calls.codes[code if code in calls.codes else counted_code(code, calls.codes)] += 1
        if seconds is not None:
            calls.took(seconds)

    def keep_tools(self, names: Collection[str]) -> None:
        """Drops the figures of tools that are there no longer."""
        for tool in self._tools.keys() - {*names, UNKNOWN}:
            del self._tools[tool]

    def text(self) -> bytes:
        """The exposition format."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> "Iterator[Metric]":
        """What a registry of prometheus_client asks a collector for."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        webhooks = CounterMetricFamily(
            "recado_webhooks", "Webhook bodies by the status answered", labels=["status"]
        )
        messages = CounterMetricFamily(
            "recado_messages", "Inbound messages by what became of them", labels=["outcome"]
        )
        yield _filled(webhooks, self._answers)
        yield _filled(messages, self._outcomes)
        called = CounterMetricFamily(
            "recado_tool_calls", "Tool calls by tool and result", labels=["tool", "code"]
        )
        took = HistogramMetricFamily("recado_tool_seconds", "Seconds a tool call took", labels=["tool"])
        for tool, calls in self._tools.items():
            for code, count in calls.codes.items():
                called.add_metric([tool, code], count)
            took.add_metric([tool], calls.cumulative(), calls.seconds)
        yield from (called, took)
        yield GaugeMetricFamily("recado_running_turns", "Turns running now", self.running_turns)
        yield GaugeMetricFamily(
            "recado_waiting_messages", "Messages that no turn has claimed", self.waiting_messages
        )
        outbox = GaugeMetricFamily("recado_outbox", "Outbox rows by state", labels=["state"])
        for state, rows in self.outbox.items():
            outbox.add_metric([state], rows)
        yield outbox


@dataclass(slots=True)
class _Calls:
    """One tool's: how often by result, and how long those took that ran."""

    codes: Counter[str] = field(default_factory=Counter)
    within: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    """Calls by the first of `BUCKETS` that is not shorter; at the end those beyond all."""
    seconds: float = 0.0

    def took(self, seconds: float) -> None:
        self.within[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """As a histogram counts them: those within each bound, shorter ones included."""
        bounds = [*(str(bound) for bound in BUCKETS), "+Inf"]
        return [(bound, sum(self.within[: place + 1])) for place, bound in enumerate(bounds)]


def _filled(family: "CounterMetricFamily", counted: Mapping[str, int]) -> "CounterMetricFamily":
    for label, count in counted.items():
        family.add_metric([label], count)
    return family
