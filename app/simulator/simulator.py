"""The page and the stand-in Graph API, tied together."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.channels.whatsapp.credentials import Credentials
from app.people import SIMULATED_PEOPLE
from app.security import is_local
from app.settings import Settings
from app.simulator.graph import StandInGraph
from app.simulator.graph_routes import graph_router
from app.simulator.history import HISTORY_FILE
from app.simulator.page import page_router
from app.simulator.webhooks import Pace

STOP_SECONDS = 2.0
_STATUS_PAUSE = 0.35  # an eye can follow the ticks

log = logging.getLogger(__name__)


def build_simulator(settings: Settings, credentials: Credentials) -> "Simulator | None":
    """Return the simulator as the settings say; None if it is off or WhatsApp's credentials are set."""
    if not settings.uses_simulator or settings.simulator == "off":
        return None
    is_allowed = partial(is_local, published=settings.simulator == "on")
    return Simulator(credentials, f"{settings.own_url}/webhook", settings.data_dir / HISTORY_FILE, is_allowed)


class Simulator:
    """The page at `/simulator` and the Graph API at `/simulator/graph`; `/` leads to the page.

    `webhook_url` is our own `/webhook`; a request that `is_allowed` refuses gets 404.
    """

    def __init__(
        self,
        credentials: Credentials,
        webhook_url: str,
        history_path: Path | None,
        is_allowed: Callable[[Request], bool],
    ) -> None:
        pace = Pace(status_pause=_STATUS_PAUSE)
        self.graph = StandInGraph(
            credentials, webhook_url, SIMULATED_PEOPLE, history_path=history_path, pace=pace
        )
        self.router = simulator_router(self.graph, is_allowed)

    async def start(self) -> None:
        await self.graph.start()

    async def stop(self) -> None:
        """Close every stream and end every task, within two seconds."""
        try:
            await asyncio.wait_for(self.graph.stop(), STOP_SECONDS)
        except TimeoutError:
            log.warning("the simulator did not stop within %g s", STOP_SECONDS)


def simulator_router(graph: StandInGraph, is_allowed: Callable[[Request], bool]) -> APIRouter:
    """Return all routes of the simulator."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def front_door(request: Request) -> Response:
        if not is_allowed(request):
            raise HTTPException(404, "Not Found")
        return RedirectResponse("/simulator")

    router.include_router(graph_router(graph, is_allowed), prefix="/simulator/graph")
    router.include_router(page_router(graph, is_allowed), prefix="/simulator")
    return router
