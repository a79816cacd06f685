"""The owner's pages under /console, and the administrator's API under /admin with its description."""

from fastapi import APIRouter, Depends, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse

from app.assistant import Assistant
from app.console.abilities import add_abilities
from app.console.conversations import add_conversations
from app.console.knowledge import add_knowledge
from app.console.people import add_people
from app.console.records import add_records
from app.console.setup import add_setup
from app.console.site import Examine, Site, open_router
from app.console.today import add_decisions, add_today
from app.erasure import Erasure
from app.http.limits import Guard


def build_console(assistant: Assistant, erasure: Erasure, examine: Examine | None) -> Site:
    """Return the pages under /console; without a session each shows the sign-in page instead."""
    site = Site(assistant, erasure, examine)
    subjects = (add_today, add_decisions, add_conversations, add_records, add_abilities, add_people)
    for add in (*subjects, add_knowledge, add_setup):
        add(site)
    site.router.include_router(open_router(site))
    return site


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
