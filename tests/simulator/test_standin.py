"""The stand-in as a process of its own: what crash tests count on."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import orjson
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

ROOT = Path(__file__).parents[2]
CONFIG = {
    "access_token": "t",
    "phone_number_id": "1",
    "app_secret": "s",
    "crowd": 40,
    "longest_pause": 0.3,
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture
async def standin(tmp_path: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, int]]:
    """A client of the process, and the port where it expects the webhook (nobody listens there yet)."""
    port, webhook = free_port(), free_port()
    config = tmp_path / "config.json"
    config.write_bytes(orjson.dumps(CONFIG))
    options = [
        "--port",
        str(port),
        "--webhook",
        f"http://127.0.0.1:{webhook}/webhook",
        "--config",
        str(config),
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.standins.graph", *options, cwd=ROOT
    )
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        await _answers(client)
        yield client, webhook
    process.terminate()
    await asyncio.wait_for(process.wait(), 10)


async def test_messages_said_while_the_webhook_is_down_arrive_in_order_once_it_is_up(
    standin: tuple[httpx2.AsyncClient, int],
) -> None:
    client, port = standin
    messages = [{"person": f"p{n % 40}", "type": "text", "text": str(n)} for n in range(200)]
    ids = (await client.post("/control/inbound", json={"messages": messages})).json()["ids"]
    assert len(set(ids)) == 200
    assert (await client.get("/control/log")).json()["pending"] == 200

    received: dict[str, list[int]] = {}
    complete = asyncio.Event()

    async def webhook(request: Request) -> Response:
        message = (await request.json())["entry"][0]["changes"][0]["value"]["messages"][0]
        received.setdefault(message["from"], []).append(int(message["text"]["body"]))
        if sum(map(len, received.values())) == 200:
            complete.set()
        return Response()

    app = Starlette(routes=[Route("/webhook", webhook, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    await asyncio.wait_for(complete.wait(), 20)
    server.should_exit = True
    await serving
    assert len(received) == 40
    assert all(numbers == sorted(numbers) for numbers in received.values())


async def test_the_log_counts_replies_by_outbox_id(standin: tuple[httpx2.AsyncClient, int]) -> None:
    client, _ = standin
    await client.post("/control/faults", json={"hold_statuses": True})
    await client.post("/control/inbound", json={"messages": [{"person": "p3", "type": "text", "text": "hi"}]})
    body = {
        "messaging_product": "whatsapp",
        "to": "12125550003",
        "type": "text",
        "text": {"body": "reply"},
        "biz_opaque_callback_data": "o1",
    }
    sent = await client.post("/v25.0/1/messages", json=body, headers={"Authorization": "Bearer t"})
    entries = (await client.get("/control/log", params={"after": 0})).json()["entries"]
    assert [(e["kind"], e["person"], e["outbox_id"], e["wamid"]) for e in entries] == [
        ("send", "p3", "o1", sent.json()["messages"][0]["id"])
    ]
    assert (await client.get("/control/log", params={"after": entries[-1]["n"]})).json()["entries"] == []


async def _answers(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                await client.get("/control/log")
                return
            except httpx2.ConnectError:
                await asyncio.sleep(0.05)  # between two attempts to connect to a process that starts
