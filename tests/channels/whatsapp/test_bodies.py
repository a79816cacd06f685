"""The bodies that we send, beside those that pywa builds for the same message; and Meta's limits on each."""

import json
from collections.abc import Callable
from typing import Any

import httpx
from pywa import WhatsApp
from pywa.types import Button as PywaButton
from pywa.types import Section, SectionList, SectionRow, URLButton

from app.channels.whatsapp.channel import message_body
from app.messages import Address, Button, Link, MediaFile, Outgoing
from app.simulator.faults import check_message

OPTIONS = [Button(f"choice:t1:{number}", f"Opción {number}") for number in range(1, 11)]


def file(kind: Any, mime_type: str, name: str) -> Outgoing:
    return Outgoing(name, file=MediaFile("p/x", mime_type, name, kind, 1))


CASES: dict[str, tuple[Outgoing, Callable[[WhatsApp], object]]] = {
    "text": (Outgoing("hola"), lambda wa: wa.send_message("525550100001", "hola")),
    "buttons": (
        Outgoing("¿Cuál?", buttons=tuple(OPTIONS[:3])),
        lambda wa: wa.send_message(
            "525550100001",
            "¿Cuál?",
            buttons=[PywaButton(one.title, callback_data=one.id) for one in OPTIONS[:3]],
        ),
    ),
    "list": (
        Outgoing("¿Cuál?", rows=tuple(OPTIONS), label="Opciones"),
        lambda wa: wa.send_message(
            "525550100001",
            "¿Cuál?",
            buttons=SectionList(
                "Opciones",
                [Section("Todas", [SectionRow(one.title, callback_data=one.id) for one in OPTIONS])],
            ),
        ),
    ),
    "location request": (
        Outgoing("¿Dónde estás?", asks_location=True),
        lambda wa: wa.request_location("525550100001", "¿Dónde estás?"),
    ),
    "link": (
        Outgoing("El menú", link=Link("Ver", "https://example.com/menu")),
        lambda wa: wa.send_message(
            "525550100001", "El menú", buttons=URLButton("Ver", "https://example.com/menu")
        ),
    ),
    "picture": (file("image", "image/png", "a.png"), lambda wa: wa.send_image("525550100001", "9001")),
    "document": (
        file("document", "application/pdf", "a.pdf"),
        lambda wa: wa.send_document("525550100001", "9001", filename="a.pdf"),
    ),
    "voice note": (file("audio", "audio/ogg", "a.ogg"), lambda wa: wa.send_voice("525550100001", "9001")),
}


def built_by_pywa(send: Callable[[WhatsApp], object]) -> dict[str, Any]:
    """The body of pywa's request, caught before it leaves."""
    sent: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        contact = {"input": "525550100001", "wa_id": "525550100001"}
        return httpx.Response(200, json={"messages": [{"id": "wamid.1"}], "contacts": [contact]})

    session = httpx.Client(transport=httpx.MockTransport(answer), base_url="https://graph.test/v25.0")
    send(WhatsApp(phone_id="1", token="t", session=session))
    return sent[-1]


def bare(value: Any) -> Any:
    """A body without what is empty, and without the titles of a list's only section, which are optional."""
    if isinstance(value, dict):
        kept = {key: bare(one) for key, one in value.items() if one not in (None, {}, [], "", False)}
        return {key: one for key, one in kept.items() if not (key == "title" and "rows" in kept)}
    return [bare(one) for one in value] if isinstance(value, list) else value


def test_our_bodies_are_those_that_pywa_builds() -> None:
    for name in CASES:
        message, send = CASES[name]
        ours = message_body(Address("525550100001"), message, "", media="9001" if message.file else "")
        assert bare(ours) == bare(built_by_pywa(send))
        check_message(ours)
