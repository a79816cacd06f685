"""What was sent and billed: `recado usage` and /uso, with statuses that come twice and after a restart."""

import json
from typing import Any

import pytest

from tests.world import Server, wait_for

PEOPLE = [
    {"id": "olga", "name": "Olga", "phone": "12125550000", "user_id": "US.10"},
    {"id": "ana", "name": "Ana", "phone": "5493415550001", "user_id": "AR.11"},
    {"id": "bia", "name": "Bia", "phone": "5511955501234", "user_id": "BR.12"},
]


def used(server: Server, month: str = "") -> Any:
    return json.loads(server.recado("usage", "--json", *(("--month", month) if month else ())))


def priced(wamid: str, status: str, category: str = "service", kind: str = "regular") -> dict[str, Any]:
    pricing = {"billable": kind == "regular", "pricing_model": "PMP", "type": kind, "category": category}
    item = {"id": wamid, "status": status, "timestamp": "1764000000", "pricing": pricing}
    return {"entry": [{"changes": [{"field": "messages", "value": {"statuses": [item]}}]}]}


@pytest.mark.slow
def test_each_message_is_billed_once_however_its_statuses_come(make_world: Any) -> None:
    phones = ",".join(person["phone"] for person in PEOPLE)
    server, graph = make_world(crowd=0, graph={"people": PEOPLE}, ALLOWED_PHONE_NUMBERS=phones)
    for person in ("ana", "bia", "olga"):
        graph.ask(person, "what time is it in London?")
    graph.ask("ana", "y en Lima?")
    wait_for(lambda: len(server.rows("SELECT 1 FROM statuses WHERE status = 'read'")) == 4, "the prices")
    assert used(server)["messages"] == 4
    for sent in graph.sends():
        for status in ("delivered", "sent", "delivered"):
            assert server.post(priced(sent["wamid"], status)).is_success
    server.kill()
    server.start()
    assert server.post(priced(graph.sends()[0]["wamid"], "read")).is_success
    told = used(server)
    assert (told["messages"], told["unpriced"], told["currency"]) == (4, 1, "USD")  # no rate for the US
    assert told["categories"] == {"service": 4}
    assert {one["name"]: (one["messages"], one["cost"]) for one in told["people"]} == {
        "Ana": (2, 0.052),
        "Bia": (1, 0.007),
        "Olga": (1, 0.0),
    }
    assert sum(day["messages"] for day in told["days"]) == 4
    assert told["cost"] == 0.059
    assert used(server, "2020-01")["messages"] == 0
    assert "This month: 4 messages (0.06 USD; 1 without a known price)" in graph.ask("olga", "/usage")
    assert "mensagens (" not in graph.ask("bia", "/uso")


@pytest.mark.slow
def test_an_operators_rates_replace_ours(make_world: Any) -> None:
    server, graph = make_world(start=False, crowd=0, graph={"people": PEOPLE[:1]})
    rates = server.folder / "rates.yaml"
    rates.write_text(
        "currency: EUR\nrates:\n- {country: US, category: service, since: '2026-01-01', price: 1}\n"
    )
    server.start()
    graph.ask("olga", "what time is it in London?")
    assert server.post(priced("wamid.unknown", "sent")).is_success  # of a message that is not ours
    wait_for(lambda: server.rows("SELECT 1 FROM statuses WHERE status = 'read'"), "the price")
    assert used(server)["cost"] == 1.0
    rates.write_text("rates: nothing")
    server.stop()
    assert "cannot be read as rates" in server.recado("usage", fails=True)
