"""The routes of the owner's pages, and of the description of the API."""

from fastapi import APIRouter, Depends, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse

from app.assistant import Assistant
from app.console.abilities import add_abilities
from app.console.conversations import add_conversations
from app.console.decisions import add_decisions
from app.console.knowledge import add_knowledge
from app.console.people import add_people
from app.console.records import add_records
from app.console.setup import add_setup
from app.console.site import Examine, Site, open_router
from app.console.today import add_today
from app.console.turns import add_turns
from app.erasure import Erasure
from app.http.limits import Guard

_SUBJECTS = (
    *(add_today, add_conversations, add_turns, add_decisions, add_abilities, add_people),
    *(add_knowledge, add_records, add_setup),
)


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


def build_console(assistant: Assistant, erasure: Erasure, examine: Examine | None = None) -> Site:
    """Return the pages under /console; without a session each shows the sign-in page instead."""
    site = Site(assistant, erasure, examine)
    for add in _SUBJECTS:
        add(site)
    site.router.include_router(open_router(site))
    return site
