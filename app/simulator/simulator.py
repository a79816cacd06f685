"""The page and the stand-in Graph API, tied together."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from app.simulator.credentials import Credentials
from app.simulator.graph import StandInGraph
from app.simulator.page import PhonePage
from app.simulator.people import PEOPLE

STOP_SECONDS = 2.0
_STATUS_PAUSE = 0.35

log = logging.getLogger(__name__)


class Simulator:
    """Ties the stand-in Graph API to the page.

    `webhook_url` is our own `/webhook`; `is_allowed` decides on every route (404 where it says no).
    """

    def __init__(
        self,
        credentials: Credentials,
        webhook_url: str,
        transcript: Path | None,
        is_allowed: Callable[[Request], bool],
    ) -> None:
        self._is_allowed = is_allowed
        self.graph = StandInGraph(
            credentials.phone_number_id,
            credentials.access_token,
            credentials.app_secret,
            webhook_url,
            people=PEOPLE,
            transcript=transcript,
            status_pause=_STATUS_PAUSE,
        )
        self.page = PhonePage(self.graph, is_allowed)

    def routes(self) -> list[BaseRoute]:
        """Everything under `/simulator`, the Graph API under `/simulator/graph`; `/` leads to the page."""
        return [
            Route("/", self._front_door, methods=["GET"]),
            *self.graph.routes("/simulator/graph", self._is_allowed),
            *self.page.routes("/simulator"),
        ]

    async def start(self) -> None:
        await self.graph.start()

    async def stop(self) -> None:
        """Closes every stream and ends every task, within two seconds."""
        try:
            await asyncio.wait_for(self.graph.stop(), STOP_SECONDS)
        except TimeoutError:
            log.warning("the simulator did not stop within %g s", STOP_SECONDS)

    async def _front_door(self, request: Request) -> Response:
        return (
            RedirectResponse("/simulator")
            if self._is_allowed(request)
            else PlainTextResponse("Not Found", 404)
        )
