"""The page and the stand-in Graph API, tied together."""

from pathlib import Path

from fastapi import APIRouter, Depends, Response
from fastapi.responses import RedirectResponse

from app.channels.whatsapp.credentials import Credentials
from app.people import SIMULATED_PEOPLE
from app.settings import Settings
from app.simulator.access import SimulatorAccess
from app.simulator.graph import StandInGraph
from app.simulator.graph_routes import graph_router
from app.simulator.history import HISTORY_FILE
from app.simulator.page import page_router
from app.simulator.webhooks import Pace

_STATUS_PAUSE = 0.35  # an eye can follow the ticks


def build_simulator(settings: Settings, credentials: Credentials) -> "Simulator | None":
    """Return the simulator as the settings say; None if it is off or WhatsApp's credentials are set."""
    if not settings.uses_simulator or settings.simulator == "off":
        return None
    access = SimulatorAccess(published=settings.simulator == "on")
    return Simulator(credentials, f"{settings.own_url}/webhook", settings.data_dir / HISTORY_FILE, access)


class Simulator:
    """The page at `/simulator` and the Graph API at `/simulator/graph`; `/` leads to the page.

    `webhook_url` is our own `/webhook`.
    """

    def __init__(
        self, credentials: Credentials, webhook_url: str, history_path: Path | None, access: SimulatorAccess
    ) -> None:
        pace = Pace(status_pause=_STATUS_PAUSE)
        self.graph = StandInGraph(
            credentials, webhook_url, SIMULATED_PEOPLE, history_path=history_path, pace=pace
        )
        self._access = access
        self.router = simulator_router(self.graph, access)

    def link(self, url: str) -> str:
        """Return the link that opens the page, for a server at this address."""
        return f"{url}/simulator?key={self._access.key}"


def simulator_router(graph: StandInGraph, access: SimulatorAccess) -> APIRouter:
    """Return all routes of the simulator; a request from elsewhere gets 404."""
    router = APIRouter(include_in_schema=False)

    @router.get("/", dependencies=[Depends(access.require_local)])
    async def front_door() -> Response:
        return RedirectResponse("/simulator")

    router.include_router(graph_router(graph, access), prefix="/simulator/graph")
    router.include_router(page_router(graph, access), prefix="/simulator")
    return router
