"""A business's own systems: messages through the outbox, templates that Meta approved, events by webhook."""

import base64
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import httpx2 as httpx
import pytest

from tests.standins.model import ModelServer, calls
from tests.world import standing, wait_for

EVA, BETO = "5215550100002", "5215550100003"
PEOPLE = [
    {"id": "owner", "name": "Olga", "phone": "12125550000", "user_id": "US.10"},
    {"id": "ana", "name": "Ana", "phone": "5215550100001", "user_id": "MX.11"},
    {"id": "eva", "name": "Eva", "phone": EVA, "user_id": "MX.12"},
    {"id": "beto", "name": "Beto", "phone": BETO, "user_id": "MX.13"},
]
BUSINESS = {"ACCESS": "everyone", "OWNER_PHONE_NUMBERS": "12125550000"}
APPROVED = {
    "name": "appointment",
    "language": "es",
    "status": "APPROVED",
    "components": [{"type": "BODY", "text": "Hola {{1}}, te esperamos el {{2}}."}],
}
LISTED = """
templates:
  - name: appointment
    language: es
    variables: [name, day]
    text: "Hola {name}, te esperamos el {day}."
"""


def send(
    server: Any, body: dict[str, Any], key: str | None = "k1", token: str | None = None
) -> httpx.Response:
    given = token if token is not None else (server.folder / "admin_token").read_text().strip()
    headers = {"Authorization": f"Bearer {given}", **({"Idempotency-Key": key} if key else {})}
    headers["Content-Type"] = "application/json"
    return server.http.post("/api/messages", content=json.dumps(body), headers=headers)


@pytest.fixture(scope="module")
def business(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, ModelServer]]:
    """A server whose templates Meta has approved, and its model."""
    graph = {"people": PEOPLE, "templates": [APPROVED]}
    for town in standing(tmp_path_factory.mktemp("business"), crowd=0, graph=graph, **BUSINESS):
        yield town.server, town.graph, town.model


def test_a_system_of_the_business_sends_a_text_once(business: Any) -> None:
    server, graph, _ = business
    graph.ask("ana", "hola")
    text = {"to": "+52 1 555 010 0001", "text": "Tu pedido *42* salió."}
    first = send(server, text)
    assert first.status_code == 202
    assert send(server, text).json() == first.json()
    assert graph.reply("ana", 2) == "Tu pedido *42* salió."
    assert graph.sends("ana")[1]["body"]["biz_opaque_callback_data"] == first.json()["id"]
    assert send(server, {**text, "text": "other words"}).status_code == 409
    assert send(server, text, token="wrong").status_code == 401
    for body, key in (
        (text, None),
        ({"to": "+52 1 555 010 0001"}, "k2"),
        ({**text, "template": {"name": "appointment"}}, "k3"),
        ({"to": "nobody", "text": "hello"}, "k4"),
        ({**text, "colour": "red"}, "k5"),
        ({**text, "to": "\ud800"}, "k7"),
        ({**text, "\ud800": "red"}, "k7"),
    ):
        assert send(server, body, key).status_code == 400
    server.recado("people", "block", "+52 1 555 010 0001")
    assert send(server, text, "k6").status_code == 400
    assert len(graph.sends("ana")) == 2


def test_a_template_reaches_who_has_not_written(business: Any) -> None:
    server, graph, _ = business
    assert "no templates" in server.recado("templates", "list")
    (server.folder / "templates.yaml").write_text(LISTED)
    assert "appointment" in server.recado("templates", "list")
    assert "as Meta approved them" in server.recado("templates", "check")
    template = {"name": "appointment", "variables": {"name": "Eva", "day": "martes"}}
    assert send(server, {"to": EVA, "template": template}, "t1").status_code == 202
    wait_for(lambda: graph.sends("eva"), "the template")
    block = graph.sends("eva")[0]["body"]["template"]
    assert [one["text"] for one in block["components"][0]["parameters"]] == ["Eva", "martes"]
    wrong = {"name": "appointment", "variables": {"name": "Eva"}}
    refused = send(server, {"to": EVA, "template": wrong}, "t2")
    assert (refused.status_code, "takes these values: name, day" in refused.text) == (400, True)
    (server.folder / "templates.yaml").write_text(LISTED.replace("te esperamos", "nos vemos"))
    assert "Meta has another text" in server.recado("templates", "check", fails=True)
    (server.folder / "templates.yaml").write_text("templates: [{name: x}]")
    assert "is no list of templates" in server.recado("templates", "list", fails=True)


def test_an_owner_sends_a_template_after_seeing_its_price(business: Any) -> None:
    server, graph, played = business
    call = {"to": f"+{BETO}", "template": "appointment", "values": {"name": "Beto", "day": "el martes"}}
    asks = calls(("send_template", call))
    played.play = lambda body: asks if body["messages"][-1]["role"] == "user" else "Listo."
    (server.folder / "templates.yaml").write_text(LISTED)
    graph.say("owner", f"envía la plantilla appointment a +{BETO}")
    questions = lambda: [one for one in graph.sends("owner") if "interactive" in one["body"]]  # noqa: E731
    question = wait_for(questions, "the card")
    asked = question[0]["body"]["interactive"]["body"]["text"]
    assert "Hola Beto, te esperamos el el martes." in asked
    assert "Meta" in asked or "USD" in asked
    assert not graph.sends("beto")
    graph.say("owner", "sí")
    wait_for(lambda: graph.sends("beto"), "the template")
    assert graph.sends("beto")[0]["body"]["type"] == "template"


class Receiver(BaseHTTPRequestHandler):
    """A system of the business, which does not answer well the first time."""

    got: ClassVar[list[tuple[dict[str, str], str]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(500 if len(self.got) == 1 else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.mark.slow
def test_a_system_of_the_business_is_told_what_happens_though_others_hang(make_world: Any) -> None:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    secret = f"whsec_{base64.b64encode(bytes(32)).decode()}"
    silent = socket.create_server(("127.0.0.1", 0), backlog=100)  # it accepts nothing
    ports = [*[silent.getsockname()[1]] * 4, listener.server_port]
    hooks = [{"url": f"http://127.0.0.1:{port}/{n}", "secret": secret} for n, port in enumerate(ports)]
    server, graph = make_world(
        crowd=0,
        graph={"people": PEOPLE},
        OUTBOUND_WEBHOOKS=json.dumps(hooks),
        GUEST_LIMIT="1/day",
        **BUSINESS,
    )
    graph.ask("owner", "hello")
    assert "enter?code=…" not in graph.ask("owner", "/console")
    graph.ask("ana", "¿qué hora es en Lima?")
    graph.say("ana", "¿y en Quito?")
    graph.say("owner", "/human 5215550100001")
    taken = lambda: [json.loads(body) for _, body in Receiver.got[1:]]  # noqa: E731
    expected = {"message.received", "message.replied", "limit.reached", "conversation.handed_over"}
    wait_for(lambda: expected <= {one["type"] for one in taken()}, "every kind of event")
    ids = [headers["webhook-id"] for headers, _ in Receiver.got]
    wait_for(lambda: [one["webhook-id"] for one, _ in Receiver.got].count(ids[0]) == 2, "the second attempt")
    for headers, body in Receiver.got:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body}".encode()
        right = base64.b64encode(hmac.new(bytes(32), signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{right}"
    asked = next(one for one in taken() if one["data"].get("text") == "¿qué hora es en Lima?")
    assert asked["data"]["names"] == ["525550100001", "MX.11"]
    left = "SELECT 1 FROM webhook_deliveries WHERE url = ?"
    wait_for(lambda: not server.rows(left, hooks[-1]["url"]), "nothing waits")
    assert secret not in server.log
    [told] = [one["data"]["text"] for one in taken() if "enter?code" in one["data"].get("text", "")]
    assert "enter?code=…" in told  # whoever has the link can do everything
    listener.shutdown()
    silent.close()
