"""The owner's pages: conversations with take over and reply, people, costs; each form is plain HTML."""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine
from datetime import date, datetime
from math import ceil
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader

from app.assistant import Assistant
from app.channels.access import shown_address, shown_name
from app.channels.whatsapp.splitting import split_message
from app.console.session import Sessions
from app.errors import RecadoError
from app.http.dependencies import Guard
from app.http.limits import bounded_receive
from app.i18n import LANGUAGES, say, say_plural
from app.messages import Outgoing
from app.people import Conversation
from app.schedule.wording import local_text
from app.store import billing, handovers, outbox, people, threads
from app.store.database import Connection, new_id
from app.store.outbox import Draft
from app.turns.profiles import local_timezone

FORM_BYTES = 128 * 1024
PEOPLE_ON_A_PAGE = 100
_MONTH = re.compile(r"\d{4}-\d{2}")
_HERE = Path(__file__).parent
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def description_router(guard: Guard) -> APIRouter:
    """Return `/docs` and `/openapi.json`; each wants the administrator's token."""
    router = APIRouter(dependencies=[Depends(guard.token)], include_in_schema=False)

    @router.get("/openapi.json")
    async def description(request: Request) -> JSONResponse:
        return JSONResponse(request.app.openapi())

    @router.get("/docs")
    async def documentation() -> HTMLResponse:
        return get_swagger_ui_html(openapi_url="/openapi.json", title="Recado")

    return router


def console_router(assistant: Assistant) -> APIRouter:
    """Return the routes under /console; without a session each shows the sign-in page instead."""
    sessions = Sessions(assistant.admin_token, assistant.store)
    pages = Pages(assistant, sessions)
    router = APIRouter(include_in_schema=False)

    @router.get("/console/static/console.css")
    async def style() -> FileResponse:
        return FileResponse(_HERE / "static" / "console.css", media_type="text/css", headers=_HEADERS)

    @router.post("/console/sign-in")
    async def sign_in(request: Request) -> Response:
        form, answer = await _form(request), RedirectResponse("/console", 303, _HEADERS)
        if await sessions.sign_in(form.get("token", "").strip(), request, answer):
            return answer
        return pages.render(request, "sign_in.html", 401, failed=True)

    signed_in = APIRouter(route_class=_route_class(sessions, pages))

    signed_in.add_api_route("/console", pages.conversations)
    signed_in.add_api_route("/console/conversations/{id}", pages.thread)
    signed_in.add_api_route("/console/people", pages.people)
    signed_in.add_api_route("/console/costs", pages.costs)
    signed_in.add_api_route("/console/sessions", pages.sessions)
    signed_in.add_api_route("/console/sessions/end", pages.end_session, methods=["POST"])
    signed_in.add_api_route(
        "/console/conversations/{id}/{action}", pages.change_conversation, methods=["POST"]
    )
    signed_in.add_api_route("/console/people/{action}", pages.change_person, methods=["POST"])
    router.include_router(signed_in)
    return router


class Pages:
    """Renders the pages and carries out their forms."""

    def __init__(self, assistant: Assistant, sessions: Sessions) -> None:
        self._assistant = assistant
        self._sessions = sessions
        self._store = assistant.store
        self._zone = ZoneInfo(assistant.settings.timezone or local_timezone())
        self._templates = Environment(loader=FileSystemLoader(_HERE / "templates"), autoescape=True)
        self._templates.globals.update(
            say=say, say_plural=say_plural, shown_name=shown_name, shown_address=shown_address
        )

    def render(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a template in the language of the browser, with times of the assistant's own zone."""
        language, session = _language(request), getattr(request.state, "session", None)
        page = self._templates.get_template(template).render(
            language=language,
            csrf=session.csrf if session is not None else "",
            when=lambda at: local_text(
                datetime.fromtimestamp(at, self._zone), datetime.now(self._zone).date(), language
            ),
            **values,
        )
        return HTMLResponse(page, status, _HEADERS)

    async def conversations(self, request: Request, words: str = "") -> Response:
        """Show the newest conversations; those that ask for a person come first."""
        words, now = " ".join(words.split())[:100], time.time()
        lines = await self._store.read(lambda conn: threads.newest(conn, words, now))
        return self.render(request, "conversations.html", lines=lines, words=words)

    async def thread(self, request: Request, id: str) -> Response:
        """Show one conversation, with its form to reply."""

        def read(conn: Connection) -> dict[str, Any]:
            where = people.conversation_by_id(conn, id)
            name, who = people.shown_as(conn, where.person_id)
            return {
                "where": where,
                "name": name,
                "who": who,
                "messages": threads.thread(conn, id),
                "is_silent": outbox.is_silent(conn, id, time.time()),
                "may_take": self._may_be_taken(conn, where),
            }

        return self.render(request, "thread.html", **await self._store.read(read))

    async def change_conversation(
        self, request: Request, id: str, action: Literal["reply", "take", "give"]
    ) -> Response:
        """Reply as a person of the business, or only begin or end the assistant's silence."""
        text, now = request.state.form.get("text", "").strip(), time.time()
        until = now + self._assistant.settings.handover_hours * 3600
        draft = Draft(text, tuple(map(Outgoing, split_message(text))))
        turn = new_id("turn")

        def write(conn: Connection) -> str:
            where = people.conversation_by_id(conn, id)
            if not self._may_be_taken(conn, where):
                raise RecadoError("an owner's own chat, or a group, cannot be taken over")
            if action == "give":
                handovers.give_back(conn, id, now)
            elif action == "take":
                handovers.begin(conn, where, until, now, told=True)
            elif text:
                handovers.answer(conn, where, turn, draft, until, now)
            return where.person_id

        await self._store.tx(write, then=self._assistant.sender.wake)
        self._assistant.sweep.soon()  # what was given back is answered, a turn that was taken over ends
        return RedirectResponse(f"/console/conversations/{id}#end", 303, _HEADERS)

    async def people(self, request: Request, words: str = "", page: int = 1) -> Response:
        """Show people with their roles, those whom a search finds in a name, number or user id."""
        words = " ".join(words.split())[:100]
        realm = self._assistant.realm
        rules = self._assistant.access.access_rules(realm)
        lines = [
            line
            for line in await self._store.read(people.listing)
            if line.realm == realm and words.lower() in " ".join((line.name, *line.names)).lower()
        ]
        page = min(max(page, 1), max(ceil(len(lines) / PEOPLE_ON_A_PAGE), 1))
        is_last = len(lines) <= page * PEOPLE_ON_A_PAGE
        lines = lines[(page - 1) * PEOPLE_ON_A_PAGE : page * PEOPLE_ON_A_PAGE]
        roles = [
            people.role_of(rules, line.role, line.access, line.names) if line.id else "turned away"
            for line in lines
        ]
        shown = list(zip(lines, roles, strict=True))
        return self.render(request, "people.html", lines=shown, words=words, page=page, is_last=is_last)

    async def change_person(self, request: Request, action: Literal["allow", "block", "owner"]) -> Response:
        """Let a person in, shut them out, or make them an owner."""
        await self._assistant.change_access(action, request.state.form.get("who", ""))
        return RedirectResponse("/console/people", 303, _HEADERS)

    async def costs(self, request: Request, month: str = "") -> Response:
        """Show the messages, tokens and costs of a month, of this one where it cannot be read."""
        if not _MONTH.fullmatch(month):
            month = f"{date.today():%Y-%m}"
        settings = self._assistant.settings
        rates = await asyncio.to_thread(billing.read_rates, settings.data_dir)
        used = await self._store.read(lambda conn: billing.usage(conn, rates, month))
        budget = settings.monthly_message_budget
        return self.render(request, "costs.html", used=used, budget=budget)

    async def sessions(self, request: Request) -> Response:
        """Show the browsers that are signed in."""
        lines = await self._sessions.all()
        return self.render(request, "sessions.html", lines=lines, own=request.state.session.id)

    async def end_session(self, request: Request) -> Response:
        """Sign a browser out: the one that a form names, else this one."""
        await self._sessions.end(request.state.form.get("session", "") or request.state.session.id)
        return RedirectResponse("/console/sessions", 303, _HEADERS)

    def _may_be_taken(self, conn: Connection, where: Conversation) -> bool:
        rules = self._assistant.access.access_rules(self._assistant.realm)
        is_here = where.channel == self._assistant.realm and not where.group
        return is_here and where.person_id not in people.owners(conn, rules)


def _route_class(sessions: Sessions, pages: Pages) -> type[APIRoute]:
    """Return a route that wants a session, and of a form also the secret that its page put in."""

    class ConsoleRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                session = await sessions.find(request)
                if session is None:
                    return pages.render(request, "sign_in.html", 401)
                request.state.session = session
                if request.method == "POST":
                    request.state.form = await _form(request)
                    if await sessions.find(request) is None:  # it was ended while the form came
                        return pages.render(request, "sign_in.html", 401)
                    if not session.allows(request.state.form):
                        raise HTTPException(403, "this form is of another session: reload its page")
                return await handle(request)

            return answer

    return ConsoleRoute


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises HTTPException for one that is too large."""
    body = await Request(request.scope, bounded_receive(request.receive, FORM_BYTES)).body()
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=20))
    except ValueError as error:
        raise HTTPException(400, "this is none of the console's forms") from error


def _language(request: Request) -> str:
    """Return the first of the browser's languages that is one of ours."""
    wanted = request.headers.get("accept-language", "").lower().split(",")
    return next((one.strip()[:2] for one in wanted if one.strip()[:2] in LANGUAGES), "en")
