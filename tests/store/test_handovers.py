"""Hand-overs: whatever comes in whatever order, nothing of the assistant is sent while a person answers."""

from contextlib import suppress
from itertools import count
from sqlite3 import Connection

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.messages import Echo, Sender, Webhook
from app.store import delivery, handovers, inbox, outbox, turn_state, turns
from app.store.journal import TurnGone
from app.store.outbox import Origin, OutboxRow
from app.store.turns import Ready
from tests.store.rows import OPEN, T, claim, conversation, draft, entrance, inbound, take

SILENT_SECONDS = 12 * 3600.0
RECONCILE_SECONDS = 15.0
EVENTS = (
    *(
        "says",
        "says",
        "thinks",
        "thinks",
        "thinks",
        "sends",
        "sends",
        "sends near the limit",
        "accepted",
        "accepted",
        "refused",
    ),
    *("vanishes", "echo", "echo", "own echo", "kill", "gives back", "reminds"),
    *("a second passes", "a minute passes", "half a day passes"),
)
PASSES = {"a second passes": 1.0, "a minute passes": 60.0, "half a day passes": 12.5 * 3600}
numbers = count(1)


class History:
    """One customer's conversation, and what a person at the business remembers of it."""

    def __init__(self, conn: Connection) -> None:
        self.conn, self.now, self.name = conn, T, f"p{next(numbers)}"
        self.customer = Sender(user_id=f"MX.{self.name}")
        self.where = conversation(conn, self.customer)
        self.steps = count(1)
        self.silent_until = 0.0
        self.on_the_wire: OutboxRow | None = None
        self.turn = ""
        self.lost: list[OutboxRow] = []  # without an answer; they arrived
        self.echoed: list[OutboxRow] = []  # those whose echo came

    def happen(self, event: str) -> None:
        getattr(self, event.replace(" ", "_"), self.passes)(*([event] if event in PASSES else []))

    def passes(self, event: str) -> None:
        self.now += PASSES[event]

    def says(self) -> None:
        wamid = f"wamid.{self.name}.{next(self.steps)}"
        take(self.conn, inbound(wamid, wamid, self.customer), now=self.now)

    def thinks(self) -> None:
        """Begin a turn, or end the one that runs."""
        if not self.turn:
            name = f"{self.name}.turn{next(self.steps)}"
            found = claim(self.conn, self.where, name, self.now)
            if isinstance(found, Ready):
                self.turn = found.id
                turn_state.load_turn(self.conn, self.turn, 40, "2027-01-15")
            return
        with suppress(TurnGone):
            turns.end(self.conn, self.turn, self.where, "answered", draft(f"reply {self.turn}"), self.now)
        self.turn = ""

    def sends_near_the_limit(self) -> None:
        self.sends(("reminder",))

    def sends(self, sendable: tuple[Origin, ...] | None = None) -> None:
        if self.on_the_wire is None:
            handovers.settle(self.conn, self.where.person_id, self.now)
            taken = outbox.take(self.conn, self.where.person_id, self.now, sendable)
            self.on_the_wire = taken if isinstance(taken, OutboxRow) else None
            assert self.on_the_wire is None or self.now >= self.silent_until

    def accepted(self) -> None:
        if row := self._off_the_wire():
            delivery.mark_sent(self.conn, row.id, f"wamid.{row.id}", self.now)
            handovers.settle(self.conn, self.where.person_id, self.now)

    def refused(self) -> None:
        if self.on_the_wire in self.echoed:
            return  # what arrived was not refused
        if row := self._off_the_wire():
            outbox.retry(self.conn, row.id, self.now + 5, 131056, "too fast")
            handovers.settle(self.conn, self.where.person_id, self.now)

    def vanishes(self) -> None:
        if row := self._off_the_wire():
            self.lost.append(row)
            outbox.mark_unknown(self.conn, row.id, "no answer", self.now + RECONCILE_SECONDS)
            handovers.settle(self.conn, self.where.person_id, self.now)

    def _off_the_wire(self) -> OutboxRow | None:
        row, self.on_the_wire = self.on_the_wire, None
        return row

    def echo(self) -> None:
        wamid = f"wamid.{self.name}.human{next(self.steps)}"
        self._hear(Echo(wamid, self.customer, "text", self.now, f"it is me {wamid}"))
        self.silent_until = self.now + SILENT_SECONDS

    def own_echo(self) -> None:
        """The echo of a message of ours comes, perhaps before its send was answered."""
        rows = [self.on_the_wire] if self.on_the_wire else self.lost
        for row in rows[-1:]:
            self.echoed.append(row)
            self._hear(Echo(f"wamid.{row.id}", self.customer, "text", self.now, row.message.text))

    def _hear(self, echo: Echo) -> None:
        inbox.take_in(self.conn, entrance(OPEN), [], Webhook(echoes=[echo]), self.now)

    def gives_back(self) -> None:
        handovers.give_back(self.conn, self.where.id, self.now)
        self.silent_until = 0.0

    def reminds(self) -> None:
        source = f"sched:{self.name}:{next(self.steps)}"
        outbox.put_reply(self.conn, self.where, source, draft("a reminder"), self.now, origin="reminder")

    def kill(self) -> None:
        if self.on_the_wire is not None:
            self.lost.append(self.on_the_wire)
        self.on_the_wire, self.turn = None, ""
        outbox.recover(self.conn, self.now + RECONCILE_SECONDS)
        turns.recover(self.conn)

    def end(self) -> None:
        """Let the silence pass and everything be finished."""
        self.accepted()
        self.now = max(self.now, self.silent_until) + 3600
        for _ in range(60):
            for step in (self.sends, self.accepted, self.thinks):
                step()
            self.now += 60


def test_nothing_is_sent_while_an_echo_waits_for_a_send_that_may_not_be_repeated_now(
    conn: Connection,
) -> None:
    history = History(conn)
    for event in ("says", "thinks", "thinks", "sends", "vanishes", "reminds", "echo", "sends near the limit"):
        history.happen(event)
    assert history.on_the_wire is None


@pytest.mark.slow
@settings(max_examples=800, deadline=None, suppress_health_check=list(HealthCheck))
@given(events=st.lists(st.sampled_from(EVENTS), min_size=5, max_size=40))
def test_nothing_is_sent_lost_or_out_of_order(conn: Connection, events: list[str]) -> None:
    history = History(conn)
    for event in events:
        history.happen(event)
    history.end()
    rows = conn.execute(
        "SELECT t.outcome, t.rowid AS turn, i.done_at FROM inbox i JOIN messages m ON m.id = i.message_id"
        " LEFT JOIN turns t ON t.id = m.turn_id WHERE i.conversation_id = ? ORDER BY i.seq",
        (history.where.id,),
    ).fetchall()
    assert all(row["done_at"] and row["outcome"] in ("answered", "business") for row in rows)
    assert [row["turn"] for row in rows] == sorted(row["turn"] for row in rows)
    unsent = conn.execute(
        "SELECT o.source, o.state FROM outbox o LEFT JOIN turns t ON o.source = 'turn:' || t.id"
        " WHERE o.conversation_id = ? AND NOT (o.state = 'unknown' AND o.due_at IS NULL)"
        " AND (o.state NOT IN ('sent', 'failed') OR (t.outcome = 'answered' AND o.state = 'failed'))",
        (history.where.id,),
    ).fetchall()
    assert [tuple(row) for row in unsent] == []
    kept = conn.execute(
        "SELECT count(*) FROM messages WHERE conversation_id = ? AND wamid LIKE ?",
        (history.where.id, f"wamid.{history.name}.human%"),
    ).fetchone()[0]
    assert kept == events.count("echo")
