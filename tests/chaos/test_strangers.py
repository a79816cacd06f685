"""Five hundred strangers in a minute, a kill -9, and a budget: nobody is lost, nothing is spent beyond it."""

import random
from typing import Any

import pytest

from tests.test_guests import FOR_GUESTS, offered
from tests.world import wait_for

STRANGERS, MESSAGES, BUDGET = 500, 3, 600
OWNER = "12125550000"


def stranger(number: int) -> dict[str, str]:
    """Return a stranger as the stand-in of the Graph API knows them: every third has a username only."""
    phone = f"551195550{number:04}" if number % 3 else ""
    return {"id": f"s{number}", "name": "", "phone": phone, "user_id": f"BR.9{number:04}"}


def messages() -> list[dict[str, str]]:
    """Return what they write: half of them all at once, the others in turns."""
    said = [
        {"person": f"s{one}", "type": "text", "text": f"oi {number}"}
        for one in range(STRANGERS)
        for number in range(MESSAGES)
    ]
    half = len(said) // 2
    mixed = said[half:]
    random.Random(7).shuffle(mixed)
    return [*said[:half], *mixed]


@pytest.mark.slow
def test_five_hundred_strangers(make_world: Any, model: Any) -> None:
    played = model(lambda body: "oi!")
    owner = {"id": "owner", "name": "Olga", "phone": OWNER, "user_id": "US.10"}
    server, graph = make_world(
        model=played,
        crowd=0,
        graph={"people": [owner, *map(stranger, range(STRANGERS))]},
        ACCESS="everyone",
        OWNER_PHONE_NUMBERS=OWNER,
        MONTHLY_MESSAGE_BUDGET=str(BUDGET),
        GUESTS_LIMIT="9999/hour",
        SWEEP_SECONDS="1",
        SEND_RECONCILE_SECONDS="2",
        BURST_QUIET_SECONDS="0.3",
    )
    graph.say("owner", "hello")
    graph.reply("owner")
    said = messages()
    for at in range(0, len(said), 50):
        graph.inbound(*said[at : at + 50])
        if at == len(said) // 2:
            server.kill()
            server.start()
    wait_for(lambda: len(server.rows("SELECT 1 FROM inbox")) == 1 + STRANGERS * MESSAGES, "the messages", 120)
    undone = "SELECT 1 FROM inbox WHERE done_at IS NULL AND waits_for = ''"
    wait_for(lambda: not server.rows(undone), "an answer or a reason for each message", 120)
    unsent = "SELECT 1 FROM outbox WHERE attempts = 0 OR sending_at IS NOT NULL"
    wait_for(lambda: len(server.rows(unsent)) < 60, "the sends", 120)
    sent = graph.sends()
    assert BUDGET * 0.8 < len(sent) <= BUDGET  # what was on the wire at the kill counts as spent
    twice = len(sent) - len({send["body"]["biz_opaque_callback_data"] for send in sent})
    assert twice <= 60
    waiting = "SELECT DISTINCT waits_for FROM inbox WHERE done_at IS NULL"
    assert [row["waits_for"] for row in server.rows(waiting)] == ["budget"]
    guests_calls = [body for body in played.main_calls if "owner of this assistant" not in str(body)]
    assert offered(guests_calls) <= FOR_GUESTS
    alert = wait_for(lambda: _alerts(graph), f"the owner's alert; there are: {graph.texts('owner')}", 120)
    assert len(alert) == 1


def _alerts(graph: Any) -> set[str]:
    """Return the outbox ids of the alerts that say that the budget is used up."""
    return {
        send["body"]["biz_opaque_callback_data"]
        for send in graph.sends("owner")
        if str(send["body"].get("text", {}).get("body")).startswith("Used up")
    }
