"""Whether messages are taken and answered, what is in the way, and the figures of the queues."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from app.errors import StoreError
from app.messages import JSON
from app.ops.metrics import Metrics
from app.security import AdminToken, is_local
from app.store.database import Database


@dataclass(frozen=True, slots=True)
class State:
    """`down`: messages cannot be taken; `degraded`: a part is away."""

    status: Literal["ok", "degraded", "down"]
    reasons: tuple[str, ...] = ()

    @property
    def http_status(self) -> int:
        return 503 if self.status == "down" else 200

    def body(self) -> dict[str, JSON]:
        return {"status": self.status} | ({"reason": "; ".join(self.reasons)} if self.reasons else {})


def _reason(code: str) -> str:
    """An alert in words that anybody may read: the details are for `recado doctor`."""
    if code == "model":
        return "the language model does not answer"
    if code.startswith("space:"):
        return "the disk is nearly full"
    kind, _, number = code.partition(":")
    if number == "unreachable":
        return "WhatsApp cannot be reached"
    return f"sending to WhatsApp fails (error {number})" if kind == "send" else "something needs the operator"


class Health:
    """Looks at the store, the open alerts and the configuration."""

    def __init__(
        self,
        store: Database,
        metrics: Metrics,
        *,
        missing_credentials: Sequence[str],
        model_failure: Callable[[], str],
        sweep_failure: Callable[[], str],
        running_turns: Callable[[], int],
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._missing = missing_credentials
        self._model_failure = model_failure
        self._sweep_failure = sweep_failure
        self._running_turns = running_turns

    async def state(self) -> State:
        """The state now; a failed commit counts until one succeeds."""
        if self._store.last_failure:
            return State("down", (f"the database takes no writes: {self._store.last_failure}",))
        try:
            rows = await self._store.all(
                "SELECT code FROM alerts WHERE mended_at IS NULL"
                " AND (code = 'model' OR code LIKE 'send:%' OR code LIKE 'space:%')"
            )
        except StoreError as error:
            return State("down", (str(error),))
        reasons = [_reason(row["code"]) for row in rows]
        if self._missing:
            reasons.append(f"WhatsApp is not connected: {', '.join(self._missing)} missing")
        if self._model_failure():
            reasons.append(_reason("model"))
        if failure := self._sweep_failure():
            reasons.append(failure)
        return State("degraded" if reasons else "ok", tuple(dict.fromkeys(reasons)))

    async def figures(self, tools: Collection[str]) -> bytes:
        """All of them now, for Prometheus; of tools only those named."""
        self._metrics.running_turns = self._running_turns()
        row = await self._store.one(
            "SELECT count(*) AS waiting FROM inbox WHERE turn_id IS NULL AND done_at IS NULL"
        )
        self._metrics.waiting_messages = row["waiting"] if row else 0
        rows = await self._store.all(
            "SELECT state, count(*) AS rows FROM outbox"
            " WHERE state IN ('ready', 'sending', 'unknown', 'held') GROUP BY state"
        )
        none = dict.fromkeys(("ready", "sending", "unknown", "held"), 0)
        self._metrics.outbox = none | {row["state"]: row["rows"] for row in rows}
        self._metrics.keep_tools(tools)
        return self._metrics.text()


def health_routes(
    health: Health, admin_token: AdminToken, tools: Callable[[], Collection[str]]
) -> list[BaseRoute]:
    """`/health` for everybody, `/metrics` for this machine and the administrator; `tools` are those there
    are now."""

    async def state(request: Request) -> Response:
        found = await health.state()
        return JSONResponse(found.body(), found.http_status)

    async def metrics(request: Request) -> Response:
        if not (is_local(request) or admin_token.opens(request)):
            return PlainTextResponse("from this machine, or with the administrator's token", 401)
        return PlainTextResponse(await health.figures(tools()), media_type="text/plain; version=0.0.4")

    return [Route("/health", state), Route("/metrics", metrics)]
