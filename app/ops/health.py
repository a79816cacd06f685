"""Health of the server (are messages taken and answered, and if not, why), its metrics, and what it is."""

import platform
import re
import time
from collections.abc import Sequence
from typing import Protocol

from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from pydantic import SecretStr

from app import __version__
from app.errors import StoreError
from app.http.limits import Guard
from app.i18n import joined, lazy
from app.messages import JSON
from app.ops.logs import recent_lines
from app.routing.tool_catalog import ToolCatalog
from app.settings import VARIABLES, Settings
from app.store.conditions import UNCLAIMED
from app.store.database import Connection, Database, placeholders, scalar
from app.store.limits import RateTable, usage
from app.store.statistics import counted_code, day_of
from app.turns.scheduler import TurnScheduler

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
OUTBOX_STATES = ("ready", "sending", "unknown", "held")
MODEL_AWAY = lazy("the language model does not answer")

disable_created_metrics()  # type: ignore[no-untyped-call]


class Part(Protocol):
    """A part of the server that can fail while the rest works."""

    @property
    def failure(self) -> str:
        """Say in a few words what is wrong now; empty if nothing is."""


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

    def read(self, conn: Connection, rates: RateTable) -> None:
        """Take the lengths of the queues, and what this month cost, from the rows."""
        self._waiting.set(scalar(conn, f"SELECT count(*) FROM inbox WHERE {UNCLAIMED}"))
        states = placeholders(OUTBOX_STATES)
        sql = f"SELECT state, count(*) FROM outbox WHERE state IN ({states}) GROUP BY state"
        by_state = dict(conn.execute(sql, OUTBOX_STATES).fetchall())
        for state in OUTBOX_STATES:
            self._outbox.labels(state).set(by_state.get(state, 0))
        used = usage(conn, rates, day_of(time.time())[:7])
        for category, messages in used["categories"].items():
            self._billed.labels(category).set(messages)
        self._tokens.set(used["tokens"])
        self._cost.labels(used["currency"]).set(used["cost"])

    def render(self, running_turns: int) -> bytes:
        """Return all metrics as Prometheus reads them."""
        self._running.set(running_turns)
        return generate_latest(self._registry)


class Health:
    """Reads the store, the open alerts and the failures of watched parts."""

    def __init__(self, store: Database, missing_credentials: Sequence[str], rates: RateTable) -> None:
        self._store = store
        self._rates = rates
        self._missing = missing_credentials
        self._watched: list[tuple[Part, str]] = []

    def watch(self, part: Part, told_as: str = "") -> None:
        """Report failures of a part; `told_as` stands for a failure whose words are not for everybody."""
        self._watched.append((part, told_as))

    async def state(self) -> dict[str, JSON]:
        """Return the answer of `/health`; a failed commit counts until one succeeds.

        "down" means that messages cannot be taken, "degraded" that a part is away.
        """
        if self._store.last_failure:
            fault = lazy("the database takes no writes: {reason}", reason=self._store.last_failure)
            return {"status": "down", "reason": fault}
        try:
            alerts = await self._store.all(
                "SELECT code FROM alerts WHERE mended_at IS NULL"
                " AND (code = 'model' OR code LIKE 'send:%' OR code LIKE 'space:%' OR code LIKE 'server:%')"
            )
        except StoreError as error:
            return {"status": "down", "reason": error.told}
        reasons: list[str] = [_public_reason(alert["code"]) for alert in alerts]
        if self._missing:
            names = ", ".join(self._missing)
            reasons.append(lazy("WhatsApp is not connected: {names} missing", names=names))
        reasons += [told_as or part.failure for part, told_as in self._watched if part.failure]
        if not reasons:
            return {"status": "ok"}
        return {"status": "degraded", "reason": joined(dict.fromkeys(reasons))}

    async def metrics(self, metrics: Metrics, turns: TurnScheduler) -> bytes:
        """Return the metrics with the lengths of the queues as they are now."""
        await self._store.read(lambda conn: metrics.read(conn, self._rates))
        return metrics.render(turns.running)


def _public_reason(alert: str) -> str:
    """Put an alert's code into words that anybody may read; `recado doctor` has the details."""
    kind, _, rest = alert.partition(":")
    if kind == "server":
        held = lazy("tools of an MCP server wait to be approved")
        return held if rest.endswith(":held") else lazy("an MCP server does not run")
    if kind == "space":
        return lazy("the disk is nearly full")
    if alert == "send:unreachable":
        return lazy("WhatsApp cannot be reached")
    return MODEL_AWAY if kind == "model" else lazy("sending to WhatsApp fails (error {code})", code=rest)


def health_router(health: Health, metrics: Metrics, turns: TurnScheduler, guard: Guard) -> APIRouter:
    """Return the routes `/health` (for everybody) and `/metrics` (from this machine, or with the token)."""
    router = APIRouter(tags=["operations"])

    @router.get("/health")
    async def read_health() -> Response:
        state = await health.state()
        return JSONResponse(state, 503 if state["status"] == "down" else 200)

    @router.get("/metrics", dependencies=[Depends(guard.local_or_token)])
    async def read_metrics() -> Response:
        text = await health.metrics(metrics, turns)
        return Response(text, media_type="text/plain; version=0.0.4")

    return router


class Introspection:
    """A service for skills; nothing it returns holds a secret or what people wrote."""

    def __init__(self, settings: Settings, catalog: ToolCatalog, health: Health) -> None:
        self._settings = settings
        self._catalog = catalog
        self.may_write = settings.agent_write_enabled
        self.closed = (settings.data_dir, settings.workspace_dir)  # people's data: never shown as source
        self.health = health.state
        self.logs = recent_lines

    def version(self) -> dict[str, str]:
        """Return the versions of the project, Python and the system."""
        return {"recado": __version__, "python": platform.python_version(), "system": platform.system()}

    def configuration(self) -> dict[str, str]:
        """Return every setting by its variable; secrets and people only as set or not set."""
        return {variable: _shown(getattr(self._settings, name)) for variable, name in VARIABLES.items()}

    def skill(self, name: str) -> dict[str, JSON] | None:
        """Describe a skill; None if no skill has that name."""
        skill = self._catalog.skill(name)
        if skill is None:
            return None
        origin = "the release" if skill.bundled else "a folder here"
        if skill.installed:
            origin = "installed"
        return {
            "name": skill.name,
            "description": skill.description,
            "folder": skill.folder.name,
            "origin": origin,
            "audience": skill.audience,
            "available": skill.available,
            "reason": skill.reason or skill.aside or skill.unrun,
            "tools": [
                {"name": tool.name, "sensitive": tool.sensitive, "description": tool.description[:200]}
                for tool in skill.tools
            ],
            "faults": list(skill.faults),
            "warnings": list(skill.warnings),
        }

    def skills(self) -> list[str]:
        return sorted(self._catalog.skill_names)


def _shown(value: object) -> str:
    if isinstance(value, SecretStr):
        return "set" if value.get_secret_value() else "not set"
    if isinstance(value, frozenset | list):  # endpoints and webhooks hold secrets
        return f"{len(value)} set"
    if isinstance(value, str) and "://" in value:  # neither a login in it nor a key behind it
        scheme, _, rest = value.partition("://")
        return f"{scheme}://{re.split(r'[?#]', rest)[0].rpartition('@')[2]}"
    return "" if value is None else str(value)
