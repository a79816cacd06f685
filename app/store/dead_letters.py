"""What could not be understood or finished, kept whole enough for an operator to look at."""

from sqlite3 import Connection

import orjson

from app.messages import JSON

PAYLOAD_KEPT = 64 * 1024


def put(
    conn: Connection, source: str, reason: str, payload: JSON, now: float, person: str | None = None
) -> None:
    """Keeps a part with the reason; long ones are cut at 64 KiB."""
    try:
        text = orjson.dumps(payload, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        text = ascii(payload)
    conn.execute(
        "INSERT INTO dead_letters (source, reason, payload, person_id, at) VALUES (?, ?, ?, ?, ?)",
        (source, reason[:500], text[:PAYLOAD_KEPT], person, now),
    )
