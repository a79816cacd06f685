"""Alerts (a row for each cause, shown by `recado doctor` and `/health`) and dead letters."""

from dataclasses import dataclass

import orjson

from app.i18n import from_json, to_json
from app.messages import JSON
from app.store.database import Connection, insert, update

ABOUT_SKILLS = "skill:"
ABOUT_SERVERS = "server:"
LONGEST_TEXT = 1000
DEAD_LETTER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Alert:
    """An open alert."""

    code: str
    text: str
    times: int
    last_at: float


def raise_alert(conn: Connection, code: str, text: str, now: float) -> None:
    """Open an alert, or count it again."""
    said = orjson.dumps(to_json(text), default=str).decode() if len(text) <= LONGEST_TEXT else ""
    conn.execute(
        "INSERT INTO alerts (code, text, said, first_at, last_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (code) DO UPDATE SET text = excluded.text, said = excluded.said,"
        " times = alerts.times + 1, last_at = excluded.last_at, mended_at = NULL",
        (code, text[:LONGEST_TEXT], said, now, now),
    )


def close_alerts(conn: Connection, prefix: str, now: float) -> int:
    """Close the open alerts whose code starts with `prefix`; return how many there were."""
    begins_so = "mended_at IS NULL AND substr(code, 1, ?) = ?"
    return update(conn, "alerts", begins_so, len(prefix), prefix, mended_at=now)


def open_alerts(conn: Connection) -> list[Alert]:
    """Return the open alerts, the newest first."""
    sql = "SELECT code, text, said, times, last_at FROM alerts WHERE mended_at IS NULL ORDER BY last_at DESC"
    rows = conn.execute(sql)
    return [
        Alert(code, from_json(orjson.loads(said)) if said else text, times, at)
        for code, text, said, times, at in rows
    ]


def add_dead_letter(
    conn: Connection, source: str, reason: str, payload: JSON, now: float, person: str | None = None
) -> None:
    """Keep what could not be understood or finished for the operator; a long payload is cut at 64 KiB."""
    try:
        text = orjson.dumps(payload, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        text = ascii(payload)
    text = text[:DEAD_LETTER_BYTES]
    insert(conn, "dead_letters", source=source, reason=reason[:500], payload=text, person_id=person, at=now)
