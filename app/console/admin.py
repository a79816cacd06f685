"""The administrator's API under /admin: what a command asks of a running server."""

import asyncio
import time
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import APIRouter, Body, Depends, Request
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from app.assistant import Assistant
from app.console.setup import keep
from app.erasure import Erasure
from app.errors import RecadoError
from app.http.limits import Guard
from app.i18n import to_json
from app.simulator.simulator import Simulator
from app.store import audit
from app.store.ownership import invite
from app.store.personal_data import ErasedPerson

LONGEST_WAIT = 25.0
LONGEST_LINE = 100_000

T = TypeVar("T")


class Result(TypedDict, Generic[T]):
    """The form of every answer; a failure is `{"error": sentence}` with a status of 4xx or 5xx instead."""

    result: T


Texts = Result[dict[str, str]]


Text = Annotated[str, Body(embed=True)]
Line = Annotated[str, Body(embed=True, max_length=LONGEST_LINE)]
Seconds = Annotated[float, Body(embed=True)]


class PersonChange(BaseModel):
    action: Literal["allow", "block", "owner"]
    who: str = Field(description="A phone number, or an id that `people` lists")


class Invitation(BaseModel):
    role: Literal["member", "owner"] = "member"
    uses: int = Field(1, ge=1, le=10_000)
    hours: float = Field(48, gt=0, le=24 * 366)


def admin_router(
    assistant: Assistant, erasure: Erasure, simulator: Simulator | None, guard: Guard
) -> APIRouter:
    """Return the routes under /admin; each wants the administrator's token, or that of server.json."""
    router = APIRouter(
        prefix="/admin",
        tags=["administration"],
        dependencies=[Depends(guard.token)],
        route_class=guard.route_class(),
    )
    store, servers = assistant.store, assistant.servers

    async def note(action: str, subject: str = "") -> None:
        await store.tx(lambda conn: audit.record(conn, audit.COMMAND, action, subject, time.time()))

    @router.post("/simulator")
    async def simulator_link(request: Request) -> Texts:
        """Return the link that opens the phone simulator."""
        if simulator is None:
            raise RecadoError("the simulator is off: a WHATSAPP_… credential is set, or SIMULATOR=off")
        return {"result": {"link": simulator.link(str(request.base_url).rstrip("/"))}}

    @router.post("/people/change")
    async def change_person(change: PersonChange) -> Texts:
        """Let a person in, shut them out, or make them an owner."""
        person = await assistant.change_access(change.action, change.who)
        await note(f"people/{change.action}", person)
        return {"result": {"person": person}}

    @router.post("/people/invite")
    async def invite_people(invitation: Invitation) -> Texts:
        """Make an invitation code."""
        until = time.time() + invitation.hours * 3600
        code = await store.tx(lambda conn: invite(conn, invitation.role, invitation.uses, until))
        await note(f"people/invite {invitation.role}")
        return {"result": {"code": code}}

    @router.post("/people/erase")
    async def erase_person(who: Text) -> Result[ErasedPerson]:
        """Erase everything that is kept of a person."""
        erased = await erasure.erase(assistant.realm, who)
        await note("people/erase", erased.who.id)
        return {"result": erased}

    @router.post("/setup/save")
    async def save_setup(request: Request, given: Annotated[dict[str, str], Body(embed=True)]) -> Texts:
        """Keep settings as the console's Setup does, and start anew with them."""
        request.app.state.restart(await asyncio.to_thread(keep, assistant.settings, given))
        await note("setup/save")
        return {"result": {}}

    @router.post("/setup/owner")
    async def owner_code() -> Texts:
        """Make the code whose sender becomes the owner; "" if there is an owner."""
        code = await assistant.access.owner_code()
        await note("setup/owner")
        return {"result": {"code": code}}

    @router.post("/token")
    async def show_token() -> Texts:
        """Show the administrator's token."""
        return {"result": {"token": await asyncio.to_thread(guard.admin_token.value)}}

    @router.post("/token/renew")
    async def renew_token() -> Texts:
        """Replace the administrator's token."""
        token = await asyncio.to_thread(guard.admin_token.renew)
        await note("token/renew")
        return {"result": {"token": token}}

    @router.post("/terminal/type")
    async def type_line(text: Line) -> Texts:
        """Take in a line from the terminal as its person's message."""
        await assistant.intake.take_line(text)
        return {"result": {}}

    @router.post("/terminal/replies")
    async def terminal_replies(seconds: Seconds = 0) -> Result[dict[str, list[str]]]:
        """Return what was sent to the terminal, waiting up to 25 seconds for it."""
        return {"result": {"replies": await assistant.terminal.replies(min(max(seconds, 0.0), LONGEST_WAIT))}}

    @router.post("/health")
    async def read_health() -> Result[dict[str, Any]]:
        """Show the state that /health shows."""
        state = await assistant.health.state()
        return {"result": state | {"said": to_json(state.get("reason", ""))}}

    @router.post("/servers")
    async def list_servers() -> Result[dict[str, Any]]:
        """List the MCP servers with state and tools, without commands, addresses and secrets."""
        await servers.refresh()
        return {"result": assistant.configuration.report(servers.states())}

    return router
