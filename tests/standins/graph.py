"""The stand-in Graph API as a process of its own, for tests that kill the server.

    python -m tests.standins.graph --port P --webhook URL --config FILE

The Graph API is at `http://127.0.0.1:P/v25.0`. FILE is JSON; `access_token`, `phone_number_id` and
`app_secret` are needed, the rest may be left out:

    {"access_token": "…", "phone_number_id": "…", "app_secret": "…",
     "people": [{"id", "name", "phone", "user_id", "username"?, "language"?}, …],  # default: the simulator's
     "crowd": 40,                      # so many more people: ids p0, p1, …, each with phone and user id
     "faults": {…},                    # see app.simulator.faults.Faults
     "test_list": ["525550100001"], "history": "phones.jsonl",
     "window_open": true,              # as if everybody had just written, for bodies posted past the stand-in
     "status_pause": 0, "retry_pause": 1, "keep": 200000}

Control, all JSON:

    POST /control/inbound  {"messages": [{"person": "p0", "type": "text", "text": "hi", "id"?: "wamid.…"}, …]}
        → {"ids": […]} at once; each webhook is posted until it is answered 200, those of one person in order.
        A message has the fields of StandInGraph.inbound (`data` in base64); a known `id` is a redelivery.
    POST /control/faults   {"duplicate": 5, …} → all switches as they are now
    GET  /control/log      → {"pending": N, "entries": […]}; ?after=N leaves out what has `n` ≤ N
        `pending`: webhooks not yet answered 200. An entry: {"n", "at", "kind": "send"|"read"|"typing",
        "body"} and for a send {"person", "outbox_id", "wamid", "error"}: `wamid` is "" and `error` Meta's
        code where it was refused, so replies are the sends with a wamid.
"""

import argparse
import base64
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.channels.whatsapp.credentials import Credentials
from app.messages import JSON
from app.people import SIMULATED_PEOPLE, SimulatedPerson
from app.simulator.faults import Refusal
from app.simulator.graph import StandInGraph
from app.simulator.simulator import SimulatorAccess, graph_router

ACCOUNT = "100000000000003"  # of the business, at Meta
_PACE = ("status_pause", "retry_pause")


def main() -> None:
    parser = argparse.ArgumentParser(description="The stand-in Graph API")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--webhook", required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    app = control_app(graph_of(orjson.loads(arguments.config.read_bytes()), arguments.webhook))
    uvicorn.run(app, host="127.0.0.1", port=arguments.port, log_level="warning", access_log=False)


class RecordingGraph(StandInGraph):
    """Keeps what it received, the oldest first."""

    log: deque[dict[str, JSON]]
    templates: list[JSON]  # as Meta lists those that it approved
    test_list: frozenset[str] | None = None  # digits that a test number of Meta's may write to

    def send(self, body: dict[str, JSON]) -> JSON:
        entry = self._log("send", body, outbox_id=body.get("biz_opaque_callback_data", ""), wamid="", error=0)
        try:
            if self.test_list is not None and body.get("to") not in self.test_list:
                raise Refusal(131030)
            answer = super().send(body)
        except Refusal as refusal:
            entry["error"] = refusal.code
            raise
        wamid = answer["messages"][0]["id"]
        message = self.history.find(wamid)
        assert message is not None
        entry.update(person=message["person"], wamid=wamid)
        return answer

    def mark_read(self, body: Mapping[str, JSON]) -> None:
        self._log("typing" if body.get("typing_indicator") else "read", body)
        super().mark_read(body)

    def _log(self, kind: str, body: JSON, **more: JSON) -> dict[str, JSON]:
        number = self.log[-1]["n"] + 1 if self.log else 1
        entry = {"n": number, "at": time.time(), "kind": kind, "body": body, **more}
        self.log.append(entry)
        return entry


def graph_of(config: dict[str, JSON], webhook: str) -> RecordingGraph:
    """A stand-in as the configuration file says."""
    people = SIMULATED_PEOPLE
    if "people" in config:
        people = tuple(SimulatedPerson(**person) for person in config["people"])
    graph = RecordingGraph(
        Credentials(config["access_token"], config["phone_number_id"], config["app_secret"], ""),
        webhook,
        [*people, *crowd(config.get("crowd", 0))],
        history_path=Path(config["history"]) if config.get("history") else None,
        keep=config.get("keep", 200_000),
        **{name: config[name] for name in _PACE if name in config},
    )
    graph.faults.update(config.get("faults", {}))
    if "test_list" in config:
        graph.test_list = frozenset(config["test_list"])
    graph.log = deque(maxlen=4_000_000)
    graph.templates = config.get("templates", [])
    if config.get("window_open"):
        graph.history.last_inbound.update(dict.fromkeys(graph.people, time.time()))
    return graph


def crowd(size: int) -> list[SimulatedPerson]:
    """People p0, p1, … with fictional American numbers."""
    return [
        SimulatedPerson(f"p{n}", f"Person {n}", f"1{212 + n // 10_000}555{n % 10_000:04}", f"US.77{n:08}")
        for n in range(size)
    ]


def control_app(graph: RecordingGraph) -> FastAPI:
    """The Graph API with the control routes beside it."""

    async def inbound(request: Request) -> Response:
        ids = []
        for message in (await request.json())["messages"]:
            if "data" in message:
                message["data"] = base64.b64decode(message["data"])
            ids.append(await graph.inbound(message.pop("person"), message))
        return JSONResponse({"ids": ids})

    async def faults(request: Request) -> Response:
        graph.set_faults(await request.json())
        return JSONResponse(graph.faults.model_dump())

    async def log(request: Request) -> Response:
        after = int(request.query_params.get("after", 0))
        entries = [entry for entry in graph.log if entry["n"] > after]
        return Response(orjson.dumps({"pending": graph.pending, "entries": entries}))

    async def debug_token(request: Request) -> Response:
        scopes = [{"scope": "whatsapp_business_management", "target_ids": [ACCOUNT]}]
        return JSONResponse({"data": {"is_valid": True, "granular_scopes": scopes}})

    async def message_templates(request: Request) -> Response:
        return JSONResponse({"data": graph.templates})

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await graph.start()
        yield
        await graph.stop()

    control = [
        Route("/control/inbound", inbound, methods=["POST"]),
        Route("/control/faults", faults, methods=["POST"]),
        Route("/control/log", log, methods=["GET"]),
        Route("/v25.0/debug_token", debug_token),
        Route(f"/v25.0/{ACCOUNT}/message_templates", message_templates),
    ]
    app = FastAPI(lifespan=lifespan, openapi_url=None, exception_handlers={Refusal: refuse})
    app.router.routes.extend(control)
    app.include_router(graph_router(graph, SimulatorAccess()))
    return app


if __name__ == "__main__":
    main()
