"""The owner's pages, and the description of the administrator's API."""

from fastapi import APIRouter, Depends, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse

from app.http.dependencies import Guard

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Recado · console</title>
<style>body{font:1rem/1.5 system-ui;margin:3rem auto;max-width:40rem;padding:0 1rem}</style>
<h1>Recado</h1><p>The console is not there yet. Until then: <code>recado doctor</code>,
<code>recado people list</code>, <code>recado skills stats</code> and <code>recado trace</code>
in a terminal.</p></html>"""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def page_router(guard: Guard) -> APIRouter:
    """Return `/console`, `/docs` and `/openapi.json`; each wants the administrator's token."""
    router = APIRouter(dependencies=[Depends(guard.token)], include_in_schema=False)

    @router.get("/console")
    async def console() -> HTMLResponse:
        return HTMLResponse(_PAGE, headers=_HEADERS)

    @router.get("/openapi.json")
    async def description(request: Request) -> JSONResponse:
        return JSONResponse(request.app.openapi())

    @router.get("/docs")
    async def documentation() -> HTMLResponse:
        return get_swagger_ui_html(openapi_url="/openapi.json", title="Recado")

    return router
