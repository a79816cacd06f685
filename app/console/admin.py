"""The administrator's API under /admin, which the `recado` commands and the console use."""

import asyncio
import time
from datetime import date
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from app.assistant import Assistant
from app.erasure import Erasure
from app.errors import RecadoError
from app.http.dependencies import Guard
from app.simulator.simulator import Simulator
from app.store import alerts, approvals, billing, people, tool_statistics, traces
from app.store.alerts import Alert
from app.store.ownership import invite
from app.store.people import PersonLine
from app.store.personal_data import ErasedPerson
from app.store.tool_statistics import ToolFigures
from app.store.traces import CallTrace, TurnLine

LONGEST_WAIT = 25.0
LONGEST_LINE = 100_000

T = TypeVar("T")
Choice = Literal["yes", "trust", "no"]


class Result(BaseModel, Generic[T]):
    """The form of every answer; a failure is `{"error": sentence}` with a status of 4xx or 5xx instead."""

    result: T


class PersonChange(BaseModel):
    action: Literal["allow", "block", "owner"]
    who: str = Field(description="A phone number, or an id that `people` lists")


class Invitation(BaseModel):
    role: Literal["member", "owner"] = "member"
    uses: int = Field(1, ge=1, le=10_000)
    hours: float = Field(48, gt=0, le=24 * 366)


class Month(BaseModel):
    month: str = Field(pattern=r"^\d{4}-\d{2}$")


class PersonName(BaseModel):
    who: str


class OpenApproval(BaseModel):
    """An open question with the whole text of its card."""

    id: str
    asked: str
    at: float
    choices: list[Choice]
    card: str


class Answer(BaseModel):
    id: str
    choice: Choice


class TurnName(BaseModel):
    turn: str


class TurnTrace(BaseModel):
    """A turn's journal, and its model calls with their prompts."""

    journal: list[dict[str, Any]]
    calls: list[CallTrace]


class Since(BaseModel):
    since: date = Field(description="First day, in UTC")


class Token(BaseModel):
    token: str


class Link(BaseModel):
    link: str


class Line(BaseModel):
    text: Annotated[str, Field(max_length=LONGEST_LINE)]


class Wait(BaseModel):
    seconds: float = 0


class Replies(BaseModel):
    replies: list[str]


class ToolApproval(BaseModel):
    """A yes to tools of a server, exactly as they were shown: hash by tool."""

    name: str
    hashes: dict[str, str]


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
    store = assistant.store

    @router.post("/simulator")
    async def simulator_link(request: Request) -> Result[Link]:
        """Return the link that opens the phone simulator."""
        if simulator is None:
            raise RecadoError("the simulator is off: a WHATSAPP_… credential is set, or SIMULATOR=off")
        return Result(result=Link(link=simulator.link(str(request.base_url).rstrip("/"))))

    @router.post("/people")
    async def list_people() -> Result[list[PersonLine]]:
        """List everybody known, and those who were turned away."""
        return Result(result=await store.read(people.listing))

    @router.post("/people/change")
    async def change_person(change: PersonChange) -> Result[dict[str, str]]:
        """Let a person in, shut them out, or make them an owner."""
        act = {"allow": people.allow, "block": people.block, "owner": people.make_owner}[change.action]
        now, realm = time.time(), assistant.realm
        person = await store.tx(
            lambda conn: act(conn, realm, change.who, now), then=lambda _: assistant.sweep.soon()
        )
        return Result(result={"person": person})

    @router.post("/people/invite")
    async def invite_people(invitation: Invitation) -> Result[dict[str, str]]:
        """Make an invitation code."""
        until = time.time() + invitation.hours * 3600
        code = await store.tx(lambda conn: invite(conn, invitation.role, invitation.uses, until))
        return Result(result={"code": code})

    @router.post("/people/erase")
    async def erase_person(person: PersonName) -> Result[ErasedPerson]:
        """Erase everything that is kept of a person."""
        return Result(result=await erasure.erase(assistant.realm, person.who))

    @router.post("/usage")
    async def read_usage(wanted: Month) -> Result[dict[str, Any]]:
        """Count the messages, tokens and costs of a month."""
        rates = await asyncio.to_thread(billing.read_rates, assistant.settings.data_dir)
        return Result(result=await store.read(lambda conn: billing.usage(conn, rates, wanted.month)))

    @router.post("/alerts")
    async def list_alerts() -> Result[list[Alert]]:
        """List what the operator should know of."""
        return Result(result=await store.read(alerts.open_alerts))

    @router.post("/approvals")
    async def list_approvals() -> Result[list[OpenApproval]]:
        """List every open question with its whole card."""
        questions = await store.read(approvals.all_open)
        return Result(
            result=[
                OpenApproval(
                    id=question.id,
                    asked=question.asked,
                    at=question.created_at,
                    choices=[choice for choice in question.choices if choice in ("yes", "trust", "no")],
                    card=await asyncio.to_thread(assistant.card, question),
                )
                for question in questions
            ]
        )

    @router.post("/approvals/answer")
    async def answer_approval(answer: Answer) -> Result[dict[str, str]]:
        """Answer a question in place of the person who was asked."""
        now = time.time()
        conversation = await store.tx(
            lambda conn: approvals.answer_in_console(conn, answer.id, answer.choice, "console", now),
            then=lambda woken: assistant.carrier.wake(woken) if woken else None,
        )
        if not conversation:
            raise RecadoError(f"no open question {answer.id[:100]!r} can be answered with {answer.choice!r}")
        return Result(result={})

    @router.post("/turns")
    async def list_turns() -> Result[list[TurnLine]]:
        """List the newest turns."""
        return Result(result=await traces.recent_turns(store))

    @router.post("/turns/show")
    async def show_turn(name: TurnName) -> Result[TurnTrace]:
        """Show one turn: its journal and its model calls."""
        journal = await traces.journal_of(store, name.turn)
        return Result(result=TurnTrace(journal=journal, calls=await traces.calls_of(store, name.turn)))

    @router.post("/tools")
    async def tool_figures(days: Since) -> Result[list[ToolFigures]]:
        """Show calls, success, durations and errors of each tool since a day."""
        return Result(result=await tool_statistics.read_summary(store, days.since.isoformat()))

    @router.post("/token")
    async def show_token() -> Result[Token]:
        """Show the administrator's token."""
        return Result(result=Token(token=await asyncio.to_thread(guard.admin_token.value)))

    @router.post("/token/renew")
    async def renew_token() -> Result[Token]:
        """Replace the administrator's token."""
        if guard.admin_token.is_configured:
            raise RecadoError("ADMIN_TOKEN is set in the environment: change it there and restart")
        return Result(result=Token(token=await asyncio.to_thread(guard.admin_token.renew)))

    @router.post("/terminal/type")
    async def type_line(line: Line) -> Result[dict[str, str]]:
        """Take in a line from the terminal as its person's message."""
        await assistant.intake.take_line(line.text)
        return Result(result={})

    @router.post("/terminal/replies")
    async def terminal_replies(wait: Wait) -> Result[Replies]:
        """Return what was sent to the terminal, waiting up to 25 seconds for it."""
        seconds = min(max(wait.seconds, 0.0), LONGEST_WAIT)
        return Result(result=Replies(replies=await assistant.terminal.replies(seconds)))

    @router.post("/health")
    async def read_health() -> Result[dict[str, Any]]:
        """Show the state that /health shows."""
        return Result(result=(await assistant.health.state()).to_json())

    @router.post("/servers")
    async def list_servers() -> Result[dict[str, Any]]:
        """List the MCP servers with state and tools, without commands, addresses and secrets."""
        await assistant.servers.refresh()
        return Result(result=assistant.configuration.report(assistant.servers.states()))

    @router.post("/servers/approve")
    async def approve_tools(approval: ToolApproval) -> Result[dict[str, str]]:
        """Approve the tools of a server as they were shown."""
        if approval.name not in {state.name for state in assistant.servers.states()}:
            raise RecadoError(f"there is no server {approval.name[:100]!r} whose tools could be approved")
        await assistant.servers.approve(approval.name, approval.hashes)
        return Result(result={})

    return router
