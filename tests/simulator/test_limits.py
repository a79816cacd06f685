from typing import Any

import pytest

from app.simulator.faults import Refusal, check_message


def message(**parts: Any) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "to": "14155550123", **parts}


def text(length: int) -> dict[str, Any]:
    return message(type="text", text={"body": "x" * length})


def buttons(*titles: str, body: str = "choose", ids: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    replies = [
        {"type": "reply", "reply": {"id": ids[n] if ids else f"b{n}", "title": title}}
        for n, title in enumerate(titles)
    ]
    block = {"type": "button", "body": {"text": body}, "action": {"buttons": replies}, **more}
    return message(type="interactive", interactive=block)


def listing(rows: int = 2, button: str = "Open", sections: int = 1, **row: str) -> dict[str, Any]:
    parts = [
        {"title": f"s{s}", "rows": [{"id": f"{s}-{n}", "title": f"r{n}", **row} for n in range(rows)]}
        for s in range(sections)
    ]
    action = {"button": button, "sections": parts}
    return message(type="interactive", interactive={"type": "list", "body": {"text": "x"}, "action": action})


def image(**media: str) -> dict[str, Any]:
    return message(type="image", image=media)


ACCEPTED = {
    "longest text": text(4096),
    "three buttons, longest titles": buttons("a" * 20, "b" * 20, "c" * 20, body="x" * 1024),
    "header and footer": buttons("a", header={"type": "text", "text": "h" * 60}, footer={"text": "f" * 60}),
    "ten rows": listing(10),
    "longest row": listing(1, title="t" * 24, description="d" * 72, id="i" * 200),
    "longest callback data": message(text={"body": "hi"}, biz_opaque_callback_data="x" * 512),
    "to a user id": {"messaging_product": "whatsapp", "recipient": "US.1", "text": {"body": "hi"}},
    "a place": message(type="location", location={"latitude": "37.7", "longitude": -122.4}),
}

REFUSED = {
    "no recipient": ({"messaging_product": "whatsapp", "text": {"body": "x"}}, 100),
    "a number as a number": (message(to=14155550123, text={"body": "x"}), 100),
    "empty text": (text(0), 100),
    "text too long": (text(4097), 100),
    "unknown type": (message(type="poll", poll={}), 100),
    "missing block": (message(type="image"), 131008),
    "callback data too long": (message(text={"body": "x"}, biz_opaque_callback_data="x" * 513), 100),
    "no buttons": (buttons(), 131009),
    "four buttons": (buttons("a", "b", "c", "d"), 131009),
    "button title too long": (buttons("a" * 21), 131009),
    "same button id": (buttons("a", "b", ids=("i", "i")), 131009),
    "button body too long": (buttons("a", body="x" * 1025), 131009),
    "footer too long": (buttons("a", footer={"text": "f" * 61}), 131009),
    "eleven rows in two sections": (listing(6, sections=2), 131009),
    "row title too long": (listing(1, title="t" * 25), 131009),
    "caption too long": (image(id="1", caption="c" * 1025), 131009),
    "no file": (image(caption="x"), 131008),
    "no parts": (message(type="interactive", interactive="x"), 131008),
    "template without language": (message(type="template", template={"name": "hello"}), 131008),
}


def test_what_lies_within_the_limits_passes() -> None:
    for body in ACCEPTED.values():
        check_message(body)


def test_what_breaks_a_limit_is_refused_with_its_code() -> None:
    for body, code in REFUSED.values():
        with pytest.raises(Refusal) as refused:
            check_message(body)
        assert refused.value.code == code
