"""The console until it is built: closed without the token, and honest with it."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from app.security import AdminToken

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


def console_routes(token: AdminToken) -> list[BaseRoute]:
    """`/console`."""

    async def console(request: Request) -> Response:
        return HTMLResponse(_PAGE, headers=_HEADERS)

    return [Route("/console", _guarded(token, console), methods=["GET"])]


def _guarded(
    token: AdminToken, page: Callable[[Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if not token.opens(request):
            return JSONResponse(
                {"error": "send the administrator's token (recado token) as a bearer"},
                401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        return await page(request)

    return endpoint
