"""Simulators on a real port, each with a webhook of the test's own beside it; one server for all tests."""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import orjson
import pytest_asyncio
import uvicorn
from fastapi import FastAPI, HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, Router

from app.channels.whatsapp.credentials import Credentials
from app.errors import RecadoError
from app.people import SIMULATED_PEOPLE
from app.simulator.graph import StandInGraph
from app.simulator.simulator import SimulatorAccess, simulator_router
from tests.world import until

TOKEN, NUMBER, SECRET = "token-of-the-test", "100200300400500", "secret-of-the-test"


@dataclass
class House:
    """The stand-in, the page, what the webhook was told (raw body and signature), and a client."""

    client: httpx2.AsyncClient
    graph: StandInGraph
    posts: list[tuple[bytes, str]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    allowed: bool = True

    async def send(self, body: dict[str, Any], **more: Any) -> httpx2.Response:
        """One send to Ana unless the body says otherwise."""
        whole = {"messaging_product": "whatsapp", **body}
        if "recipient" not in body:
            whole.setdefault("to", SIMULATED_PEOPLE[0].phone)
        return await self.client.post(
            f"/simulator/graph/v25.0/{NUMBER}/messages",
            json=whole,
            headers={"Authorization": f"Bearer {TOKEN}"},
            **more,
        )

    async def get(self, path: str) -> httpx2.Response:
        return await self.client.get(f"/simulator/graph{path}", headers={"Authorization": f"Bearer {TOKEN}"})

    async def idle(self) -> None:
        """Wait until every webhook was taken."""
        await until(lambda: not self.graph.pending, "the end of the webhooks")

    @property
    def values(self) -> list[Any]:
        """The `value` of every change posted so far, in order."""
        return [
            change["value"]
            for raw, _ in self.posts
            for entry in orjson.loads(raw)["entry"]
            for change in entry["changes"]
        ]

    @property
    def messages(self) -> list[Any]:
        return [message for value in self.values for message in value.get("messages", [])]

    @property
    def statuses(self) -> list[Any]:
        return [status for value in self.values for status in value.get("statuses", [])]


MakeHouse = Callable[..., Awaitable[House]]


@dataclass
class Street:
    """One server; each house is mounted below a path of its own."""

    base: str
    router: Router
    numbers: Iterator[int] = field(default_factory=itertools.count)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def street() -> AsyncIterator[Street]:
    # The protocol is named because asyncio turns Nagle's delay off only where it is.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    router = Router()
    server = uvicorn.Server(uvicorn.Config(router, log_level="warning", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    yield Street(f"http://127.0.0.1:{listening.getsockname()[1]}", router)
    server.should_exit = True
    await serving


@pytest_asyncio.fixture(loop_scope="session")
async def make_house(street: Street) -> AsyncIterator[MakeHouse]:
    async with AsyncExitStack() as stack:

        async def make(**options: Any) -> House:
            return await stack.enter_async_context(_house(street, **options))

        yield make


@pytest_asyncio.fixture(loop_scope="session")
async def house(make_house: MakeHouse) -> House:
    """One whose people all wrote a moment ago, so that the 24-hour window is open."""
    made = await make_house()
    for person in SIMULATED_PEOPLE:
        await made.graph.inbound(person.id, {"type": "text", "text": "hi"})
    await made.idle()
    made.posts.clear()
    return made


class _Access(SimulatorAccess):
    def __init__(self, house: House) -> None:
        super().__init__()
        self._house = house

    def require_local(self, request: Request) -> None:
        if not self._house.allowed:
            raise HTTPException(404, "Not Found")


async def _told(request: Request, error: Exception) -> Response:
    """As the application does."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)
    return JSONResponse({"error": str(error)}, 400)


@asynccontextmanager
async def _house(street: Street, **options: Any) -> AsyncIterator[House]:
    path = f"/{next(street.numbers)}"
    base = street.base + path
    credentials = Credentials(TOKEN, NUMBER, SECRET, "")
    options = {"people": SIMULATED_PEOPLE, "retry_pause": 0.01, **options}
    graph = StandInGraph(credentials, f"{base}/webhook", **options)
    async with httpx2.AsyncClient(base_url=base, trust_env=False, verify=False, timeout=10) as client:
        made = House(client, graph)

        async def webhook(request: Request) -> Response:
            raw = await request.body()
            made.posts.append((raw, request.headers["x-hub-signature-256"]))
            return Response(status_code=made.answers.pop(0) if made.answers else 200)

        access = _Access(made)
        client.cookies.set("recado_simulator", access.key)
        app = FastAPI(
            openapi_url=None,
            redirect_slashes=False,
            exception_handlers={HTTPException: _told, RecadoError: _told},
        )
        app.router.routes.append(Route("/webhook", webhook, methods=["POST"]))
        app.include_router(simulator_router(graph, access))
        street.router.routes.append(Mount(path, app=app))
        await graph.start()
        yield made
        await graph.stop()
