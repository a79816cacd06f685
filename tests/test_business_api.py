"""A business's own systems: messages through the outbox, templates that Meta approved, events by webhook."""

import base64
import hashlib
import hmac
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import httpx2 as httpx

from tests.standins.model import calls
from tests.world import wait_for

PEOPLE = [
    {"id": "owner", "name": "Olga", "phone": "12125550000", "user_id": "US.10"},
    {"id": "ana", "name": "Ana", "phone": "5215550100001", "user_id": "MX.11"},
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


def test_a_system_of_the_business_sends_a_text_once(make_world: Any) -> None:
    server, graph = make_world(crowd=0, graph={"people": PEOPLE}, **BUSINESS)
    graph.say("ana", "hola")
    graph.reply("ana")
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
    ):
        assert send(server, body, key).status_code == 400
    for half in ({**text, "to": "\ud800"}, {**text, "\ud800": "red"}):
        assert send(server, half, "k7").status_code == 400
    server.recado("people", "block", "+52 1 555 010 0001")
    assert send(server, text, "k6").status_code == 400
    assert len(graph.sends("ana")) == 2


def test_a_template_reaches_who_has_not_written(make_world: Any) -> None:
    server, graph = make_world(crowd=0, graph={"people": PEOPLE, "templates": [APPROVED]}, **BUSINESS)
    assert "no templates" in server.recado("templates", "list")
    (server.folder / "templates.yaml").write_text(LISTED)
    assert "appointment" in server.recado("templates", "list")
    assert "as Meta approved them" in server.recado("templates", "check")
    template = {"name": "appointment", "variables": {"name": "Ana", "day": "martes"}}
    assert send(server, {"to": "5215550100001", "template": template}).status_code == 202
    wait_for(lambda: graph.sends("ana"), "the template")
    block = graph.sends("ana")[0]["body"]["template"]
    assert [one["text"] for one in block["components"][0]["parameters"]] == ["Ana", "martes"]
    wrong = {"name": "appointment", "variables": {"name": "Ana"}}
    refused = send(server, {"to": "5215550100001", "template": wrong}, "k2")
    assert (refused.status_code, "takes these values: name, day" in refused.text) == (400, True)
    (server.folder / "templates.yaml").write_text(LISTED.replace("te esperamos", "nos vemos"))
    assert "Meta has another text" in server.recado("templates", "check", fails=True)
    (server.folder / "templates.yaml").write_text("templates: [{name: x}]")
    assert "is no list of templates" in server.recado("templates", "list", fails=True)


def test_an_owner_sends_a_template_after_seeing_its_price(make_world: Any, model: Any) -> None:
    call = {"to": "+5215550100001", "template": "appointment", "values": {"name": "Ana", "day": "el martes"}}
    asks = calls(("send_template", call))
    played = model(lambda body: asks if body["messages"][-1]["role"] == "user" else "Listo.")
    server, graph = make_world(model=played, crowd=0, graph={"people": PEOPLE}, **BUSINESS)
    (server.folder / "templates.yaml").write_text(LISTED)
    graph.say("owner", "envía la plantilla appointment a +5215550100001")
    questions = lambda: [one for one in graph.sends("owner") if "interactive" in one["body"]]  # noqa: E731
    question = wait_for(questions, "the card")
    asked = question[0]["body"]["interactive"]["body"]["text"]
    assert "Hola Ana, te esperamos el el martes." in asked
    assert "Meta" in asked or "USD" in asked
    assert not graph.sends("ana")
    graph.say("owner", "sí")
    wait_for(lambda: graph.sends("ana"), "the template")
    assert graph.sends("ana")[0]["body"]["type"] == "template"


class Receiver(BaseHTTPRequestHandler):
    """A system of the business, which does not answer well the first time."""

    got: ClassVar[list[tuple[dict[str, str], str]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(500 if len(self.got) == 1 else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def test_a_system_of_the_business_is_told_what_happens(make_world: Any) -> None:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    secret = f"whsec_{base64.b64encode(bytes(32)).decode()}"
    hook = {"url": f"http://127.0.0.1:{listener.server_port}/hook", "secret": secret}
    server, graph = make_world(
        crowd=0,
        graph={"people": PEOPLE},
        OUTBOUND_WEBHOOKS=json.dumps([hook]),
        GUEST_LIMIT="1/day",
        **BUSINESS,
    )
    graph.say("owner", "hello")
    graph.reply("owner")
    graph.say("ana", "¿qué hora es en Lima?")
    graph.reply("ana")
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
    wait_for(lambda: not server.rows("SELECT 1 FROM webhook_deliveries"), "nothing waits")
    assert secret not in server.log
    listener.shutdown()


def test_systems_that_hang_keep_no_event_from_another(make_world: Any) -> None:
    got: list[str] = []

    class Quick(Receiver):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(204)
            self.end_headers()

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Quick)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    secret = f"whsec_{base64.b64encode(bytes(32)).decode()}"
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:  # it accepts nothing
        ports = [*[silent.getsockname()[1]] * 4, listener.server_port]
        hooks = [{"url": f"http://127.0.0.1:{port}/{n}", "secret": secret} for n, port in enumerate(ports)]
        _, graph = make_world(crowd=10, OUTBOUND_WEBHOOKS=json.dumps(hooks))
        for number in range(10):
            graph.say(f"p{number}", "hello")
        for number in range(10):
            graph.reply(f"p{number}")
        graph.say("p0", "and now?")
        wait_for(lambda: "and now?" in str(got), "the newest event", 5)
    listener.shutdown()
