"""What `recado` commands ask of a running server, by the token in server.json or the administrator's."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from datetime import date
from sqlite3 import Connection

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from app.errors import RecadoError, StoreError
from app.messages import JSON
from app.ops.health import State
from app.people import Realm
from app.security import AdminToken
from app.store import alerts, approvals, people, tool_statistics, traces
from app.store.approvals import Choice, OpenQuestion
from app.store.belongings import Erased
from app.store.database import Database

BODY_LIMIT = 256 * 1024
LONGEST_WAIT = 25.0
_CHOICES: dict[str, Choice] = {"yes": "yes", "trust": "trust", "no": "no"}


class Admin:
    """The operator's actions on a running server."""

    def __init__(
        self,
        store: Database,
        realm: Realm,
        admin_token: AdminToken,
        *,
        type_in: Callable[[str], Awaitable[None]],
        replies: Callable[[float], Awaitable[list[str]]],
        health: Callable[[], Awaitable[State]],
        erase: Callable[[str], Awaitable[Erased]],
        on_change: Callable[[], None],
        card: Callable[[OpenQuestion], str],
        on_answer: Callable[[str], None],
    ) -> None:
        self.store = store
        self.realm = realm
        self.admin_token = admin_token
        self.server_token = ""
        """The token in server.json; set when the server starts to listen."""
        self.type_in = type_in
        self.replies = replies
        self.health = health
        self.erase = erase
        self.on_change = on_change
        """Told after a change of people: what they wrote meanwhile may wait no longer."""
        self.card = card
        """A question's whole card; blocks."""
        self.on_answer = on_answer
        """Told the conversation that goes on."""

    def opens(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if self.server_token and hmac.compare_digest(given.encode(), self.server_token.encode()):
            return True
        return self.admin_token.opens(request)

    async def people(self) -> list[JSON]:
        """Everybody known and those turned away."""
        return [asdict(line) for line in await self.store.tx(people.listing)]

    async def change_person(self, action: str, who: str) -> JSON:
        """Lets in, shuts out or makes an owner. Raises RecadoError for a number that is none."""
        change = {"allow": people.allow, "block": people.block, "owner": people.make_owner}.get(action)
        if change is None:
            raise RecadoError(f"{action!r} is none of allow, block, owner")
        people.sender_named(who)
        now, realm = time.time(), self.realm

        def write(conn: Connection) -> str:
            return change(conn, realm, who, now)

        return {"person": await self.store.tx(write, then=lambda _: self.on_change())}

    async def alerts(self) -> list[JSON]:
        return [asdict(alert) for alert in await self.store.tx(alerts.open_alerts)]

    async def approvals(self) -> list[JSON]:
        """Every open question with its whole card."""
        questions = await self.store.tx(approvals.open_questions)
        return [
            {
                "id": one.id,
                "asked": one.asked,
                "at": one.created_at,
                "choices": [choice for choice in one.choices if choice in _CHOICES],
                "card": await asyncio.to_thread(self.card, one),
            }
            for one in questions
        ]

    async def answer(self, approval: str, choice: str) -> JSON:
        """Answers a question in place of whoever was asked. Raises RecadoError where it is not open."""
        given, now = _CHOICES.get(choice), time.time()
        if given is None:
            raise RecadoError(f"{choice!r} is none of {', '.join(_CHOICES)}")
        conversation = await self.store.tx(
            lambda conn: approvals.answer_for(conn, approval, given, "console", now),
            then=lambda goes_on: self.on_answer(goes_on) if goes_on else None,
        )
        if not conversation:
            raise RecadoError(f"no question {approval!r} that can be answered so is open")
        return {}

    async def turn(self, turn: str) -> JSON:
        """A turn's journal and its model calls with their prompts."""
        return {
            "journal": await traces.journal_of(self.store, turn),
            "calls": [asdict(call) for call in await traces.calls_of(self.store, turn)],
        }

    async def turns(self) -> list[JSON]:
        return [asdict(line) for line in await traces.recent_turns(self.store)]

    async def tool_figures(self, since_day: str) -> list[JSON]:
        """Calls, success, durations and errors of each tool since a day (YYYY-MM-DD, UTC).

        Raises RecadoError for what is no day.
        """
        try:
            since = date.fromisoformat(since_day)
        except ValueError as error:
            raise RecadoError(f"since: expected a day as YYYY-MM-DD, got {since_day[:40]!r}") from error
        return [asdict(one) for one in await tool_statistics.read_summary(self.store, since.isoformat())]

    def renew_token(self) -> str:
        """A new administrator's token. Raises RecadoError where it is configured."""
        if self.admin_token.is_configured:
            raise RecadoError("ADMIN_TOKEN is set in the environment: change it there and restart")
        return self.admin_token.renew()


def admin_routes(admin: Admin) -> list[BaseRoute]:
    """The routes under /admin."""

    async def list_people(body: JSON) -> JSON:
        return await admin.people()

    async def change_person(body: JSON) -> JSON:
        return await admin.change_person(str(body.get("action")), str(body.get("who")))

    async def erase_person(body: JSON) -> JSON:
        return asdict(await admin.erase(str(body.get("who"))))

    async def list_alerts(body: JSON) -> JSON:
        return await admin.alerts()

    async def list_approvals(body: JSON) -> JSON:
        return await admin.approvals()

    async def answer(body: JSON) -> JSON:
        return await admin.answer(str(body.get("id")), str(body.get("choice")))

    async def list_turns(body: JSON) -> JSON:
        return await admin.turns()

    async def show_turn(body: JSON) -> JSON:
        return await admin.turn(str(body.get("turn")))

    async def tool_figures(body: JSON) -> JSON:
        return await admin.tool_figures(str(body.get("since", "")))

    async def renew_token(body: JSON) -> JSON:
        return {"token": await asyncio.to_thread(admin.renew_token)}

    async def show_token(body: JSON) -> JSON:
        return {"token": await asyncio.to_thread(admin.admin_token.value)}

    async def type_in(body: JSON) -> JSON:
        await admin.type_in(str(body.get("text", ""))[:100_000])
        return {}

    async def replies(body: JSON) -> JSON:
        seconds = body.get("seconds", 0)
        wait = float(seconds) if isinstance(seconds, int | float) else 0.0
        return {"replies": await admin.replies(min(max(wait, 0.0), LONGEST_WAIT))}

    async def health(body: JSON) -> JSON:
        return (await admin.health()).body()

    actions: dict[str, Callable[[JSON], Awaitable[JSON]]] = {
        "people": list_people,
        "people/change": change_person,
        "people/erase": erase_person,
        "alerts": list_alerts,
        "approvals": list_approvals,
        "approvals/answer": answer,
        "turns": list_turns,
        "turns/show": show_turn,
        "tools": tool_figures,
        "token": show_token,
        "token/renew": renew_token,
        "terminal/type": type_in,
        "terminal/replies": replies,
        "health": health,
    }
    return guarded_routes(admin, actions)


def guarded_routes(admin: Admin, actions: Mapping[str, Callable[[JSON], Awaitable[JSON]]]) -> list[BaseRoute]:
    """A route for each action, open to whoever has the token."""
    return [Route(f"/admin/{path}", _guarded(admin, act), methods=["POST"]) for path, act in actions.items()]


def _guarded(
    admin: Admin, act: Callable[[JSON], Awaitable[JSON]]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if not admin.opens(request):
            return JSONResponse({"error": "the administrator's token is needed"}, 401)
        try:
            body = await _body(request)
            return JSONResponse({"result": await act(body)})
        except StoreError as error:
            return JSONResponse({"error": str(error)}, 503)
        except RecadoError as error:
            return JSONResponse({"error": str(error)}, 400)

    return endpoint


async def _body(request: Request) -> dict[str, JSON]:
    """The JSON object of a request. Raises RecadoError for anything else."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > BODY_LIMIT:
            raise RecadoError(f"a request has at most {BODY_LIMIT} bytes")
    try:
        body = orjson.loads(content or b"{}")
    except orjson.JSONDecodeError as error:
        raise RecadoError(f"expected a JSON object: {error}") from error
    if not isinstance(body, dict):
        raise RecadoError("expected a JSON object")
    return body
