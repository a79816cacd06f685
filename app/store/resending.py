"""Texts that WhatsApp took and then could not deliver for a reason that passes: sent again, as new rows.

Nothing overtakes: where anything of ours was sent or is queued for the person behind such a text, it has
failed for good. A question has too, and so has a reminder, which waits for the person to write.
"""

from sqlite3 import Connection

from app.store.ids import new_id

PASSING = frozenset({1, 2, 4, 80007, 130429, 131000, 131016, 131056, 131057})
"""Of Meta's codes those that ask to try again, as a status may bring them."""
AFTER_SECONDS = (6.0, 30.0)
"""Before each time that a text is sent again; the first is what a pair of numbers is limited to."""
LATEST_SECONDS = 600.0
"""After which an answer is none any more."""
_AGAIN = "again:"
_OF_THEIR_OWN = ("approval:", "sched:")
_ARRIVED = ("delivered", "read", "played")


def queue_again(conn: Connection, outbox_id: str, wamid: str, code: int, now: float) -> bool:
    """Queues a text that is about to fail, and its later parts; whether it is one to be sent again.

    One of unknown outcome that was sent twice is not: the other of the two may arrive.
    """
    row = conn.execute("SELECT * FROM outbox WHERE id = ? AND state <> 'failed'", (outbox_id,)).fetchone()
    if row is None or code not in PASSING or row["media"] or row["source"].startswith(_OF_THEIR_OWN):
        return False
    if row["resends"] or row["wamid"] not in (None, wamid):
        return False
    times, source = _times(row["source"])
    if times == len(AFTER_SECONDS) or now - (row["sent_at"] or now) > LATEST_SECONDS:
        return False
    arrived = "SELECT 1 FROM statuses WHERE outbox_id = ? AND status IN (?, ?, ?)"
    if conn.execute(arrived, (outbox_id, *_ARRIVED)).fetchone() is not None:
        return False
    later = conn.execute(
        "SELECT * FROM outbox WHERE person_id = ? AND seq > ? AND state <> 'failed' ORDER BY seq",
        (row["person_id"], row["seq"]),
    ).fetchall()
    if any(one["source"] != row["source"] or one["state"] != "ready" or one["sending_at"] for one in later):
        return False
    for one in (row, *later):
        conn.execute(
            "INSERT INTO outbox (id, source, part, person_id, conversation_id, message_id, payload, media,"
            " state, due_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, '', 'ready', ?, ?)",
            (
                new_id("out"),
                f"{_AGAIN}{times + 1}:{source}",
                one["part"],
                one["person_id"],
                one["conversation_id"],
                one["message_id"],
                one["payload"],
                now + AFTER_SECONDS[times],
                now,
            ),
        )
    return True


def arrived_after_all(conn: Connection, outbox_id: str, status: str) -> None:
    """A status that takes back the failure of a row: what stands in for it is not sent, if it was not."""
    if status not in _ARRIVED:
        return
    row = conn.execute(
        "SELECT source, part FROM outbox WHERE id = ? AND state = 'failed'", (outbox_id,)
    ).fetchone()
    if row is None:
        return
    times, source = _times(row["source"])
    conn.execute(
        "UPDATE outbox SET state = 'failed', due_at = NULL, error = 'it arrived before'"
        " WHERE source = ? AND part = ? AND state = 'ready' AND sending_at IS NULL",
        (f"{_AGAIN}{times + 1}:{source}", row["part"]),
    )


def _times(source: str) -> tuple[int, str]:
    """How often a source was sent again, and what it was first."""
    if not source.startswith(_AGAIN):
        return 0, source
    _, times, first = source.split(":", 2)
    return int(times), first
