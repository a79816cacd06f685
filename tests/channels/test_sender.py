"""When a refused send is tried again, and what the operator is told of it."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection

from app.channels.sender import AT_ONCE, LONGEST_ASKED, LONGEST_BACKOFF, Sender, backoff
from app.channels.whatsapp.errors import send_alert
from app.messages import Accepted, Address, Outgoing, Refused, SendResult
from app.store import outbox
from app.store.database import Database
from tests.databases import database_at
from tests.store.rows import ANA, conversation, no_limits, queue
from tests.world import until

BUSY, PAIR = 130429, 131056


def test_backoff() -> None:
    for code, asked, attempts, seconds in [
        (BUSY, None, 1, 1),
        (BUSY, None, 2, 2),
        (BUSY, None, 3, 4),
        (BUSY, None, 10, LONGEST_BACKOFF),
        (BUSY, None, 100_000, LONGEST_BACKOFF),
        (PAIR, None, 1, 4),
        (PAIR, None, 2, 16),
        (PAIR, None, 5, LONGEST_BACKOFF),
        (PAIR, None, 100_000, LONGEST_BACKOFF),
        (BUSY, 7.0, 1, 7),
        (BUSY, 7.0, 50, 7),
        (BUSY, 1e9, 1, LONGEST_ASKED),
        (BUSY, 0.0, 1, 1),
    ]:
        assert backoff(Refused("retry", code, retry_after=asked), attempts) == seconds


def test_the_operator_is_told_the_cure() -> None:
    for refused, words in [
        (Refused("hold", 190), "WHATSAPP_ACCESS_TOKEN"),
        (Refused("hold", 33), "WHATSAPP_PHONE_NUMBER_ID"),
        (Refused("hold", 133010), "not registered"),
        (Refused("give_up", 131030), "a test number only reaches the numbers on its list"),
        (Refused("template", 131047), "24 hours"),
        (Refused("hold", 368), "mended at Meta"),
        (Refused("retry", BUSY), "tried again"),
        (Refused("give_up", 100), "given up"),
    ]:
        assert words in send_alert(refused)


async def test_what_was_held_is_tried_again_at_a_start(tmp_path: Path) -> None:
    """The cure for a token that expired is a new one and a restart."""
    database, now = Database(database_at(tmp_path / "recado.db")), time.time()
    await database.open()

    def hold(conn: Connection) -> str:
        where = conversation(conn)
        (row,) = queue(conn, where, "turn:1", "a", now=now)
        outbox.take(conn, where.person_id, now)
        outbox.hold(conn, row, 190, "the token expired", now)
        return where.person_id

    person = await database.tx(hold)
    await Sender(database, {}, no_limits(), reconcile_seconds=15).recover()
    later = time.time()
    assert await database.tx(lambda conn: outbox.people_waiting(conn, {"whatsapp"}, later)) == [person]
    await database.close()


class Slow:
    """A channel on which each send lasts until `end` is set."""

    name = "whatsapp"

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.end = asyncio.Event()

    async def send(self, to: Address, message: Outgoing, outbox_id: str) -> SendResult:
        self.sent.append(outbox_id)
        await self.end.wait()
        return Accepted(f"wamid.{outbox_id}")


async def test_what_waits_for_a_place_at_a_stop_stays_in_its_row(tmp_path: Path) -> None:
    """What is taken may be cut off, and is then of unknown outcome."""
    database, now, channel = Database(database_at(tmp_path / "recado.db")), time.time(), Slow()
    await database.open()

    def fill(conn: Connection) -> list[str]:
        crowd = [
            conversation(conn, replace(ANA, phone=f"1212555{n:04}", user_id="")) for n in range(AT_ONCE + 1)
        ]
        for where in crowd:
            queue(conn, where, f"turn:{where.id}", "a", now=now)
        return [where.person_id for where in crowd]

    people = await database.tx(fill)
    sender = Sender(database, {"whatsapp": channel}, no_limits(), reconcile_seconds=15)  # type: ignore[dict-item]
    for person in people:
        sender.wake(person)
    await until(lambda: len(channel.sent) == AT_ONCE, "all places to be taken")
    stopping = asyncio.create_task(sender.close(5))
    await asyncio.sleep(0)
    channel.end.set()
    await stopping
    states = await database.all("SELECT state, count(*) AS n FROM outbox GROUP BY state ORDER BY state")
    await database.close()
    assert [(row["state"], row["n"]) for row in states] == [("ready", 1), ("sent", AT_ONCE)]
