"""The web application: an assistant behind the routes by which it is reached."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app import __version__
from app.assistant import Assistant
from app.channels.intake import webhook_router
from app.channels.templates import messages_router
from app.console import build_console, description_router
from app.console.admin import admin_router
from app.console.site import Examine
from app.erasure import Erasure
from app.errors import RecadoError, StoreError
from app.http.limits import Guard
from app.http.transport import Transport
from app.ops.health import health_router
from app.settings import Settings
from app.simulator.simulator import build_simulator


def create_app(
    settings: Settings,
    *,
    wakes: bool = True,
    transport: Transport | None = None,
    examine: Examine | None = None,
) -> FastAPI:
    """Return the web application; its state has assistant, simulator, console, guard and close_streams.

    Without `wakes` no hint is given, so that only the sweep finds work. `transport` reaches addresses that
    came from outside, `examine` runs the doctor's checks for the console.
    """
    assistant = Assistant(settings, wakes=wakes, transport=transport)
    simulator = build_simulator(settings, assistant.credentials)
    guard = Guard(assistant.admin_token)
    phones = simulator.graph if simulator is not None else None
    erasure = Erasure(assistant.rows, phones, assistant.end)
    console = build_console(assistant, erasure, examine)

    async def close_streams() -> None:
        """End what keeps a connection open, for which uvicorn would wait."""
        console.close()
        await assistant.tool_server.close()
        if simulator is not None:
            await simulator.graph.stop()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            await assistant.start()
            if simulator is not None:
                await simulator.graph.start()
            yield
        finally:
            await close_streams()
            await assistant.stop()

    app = FastAPI(
        title="Recado",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,  # app.console serves it, behind the token
        redirect_slashes=False,
        exception_handlers={
            HTTPException: _refused,
            RequestValidationError: _refused,
            **dict.fromkeys(_STATUSES, _refused),
        },
    )
    app.add_middleware(StripTrailingSlash)
    app.state.assistant = assistant
    app.state.guard = guard
    app.state.simulator = simulator
    app.state.console = console
    app.state.close_streams = close_streams
    app.include_router(health_router(assistant.health, assistant.metrics, assistant.carrier, guard))
    if settings.role == "worker":  # it is asked for its health alone
        return app
    app.include_router(webhook_router(assistant.intake, assistant.credentials, assistant.metrics))
    app.include_router(description_router(guard))
    app.include_router(console.router)
    app.include_router(admin_router(assistant, erasure, simulator, guard))
    data_dir = settings.data_dir
    app.include_router(messages_router(assistant.store, assistant.realm, data_dir, assistant.hints, guard))
    app.router.routes.append(Route("/mcp", assistant.tool_server, methods=["GET", "POST", "DELETE"]))
    if simulator is not None:
        app.include_router(simulator.router)
    return app


class StripTrailingSlash:
    """Serves an address with a slash at its end as the one without: Meta follows no redirect."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        await self._app(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer an error as JSON, at the console as a page."""
    headers = None
    if isinstance(error, HTTPException):
        status, text, headers = error.status_code, error.detail, error.headers
    elif isinstance(error, RequestValidationError):
        faults = (f"{'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}" for fault in error.errors())
        status, text = 400, "; ".join(faults)
    else:
        status = next(status for kind, status in _STATUSES.items() if isinstance(error, kind))
        text = str(error) or "the body did not arrive"
    if f"{request.url.path}/".startswith("/console/"):
        answer: Response = await request.app.state.console.refuse(request, status, error)
        return answer
    return JSONResponse({"error": text}, status, headers)


# An answer to a caller who is gone keeps an interrupted upload from filling the log with errors.
_STATUSES: dict[type[Exception], int] = {StoreError: 503, RecadoError: 400, ClientDisconnect: 408}
