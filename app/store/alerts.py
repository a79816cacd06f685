"""What the operator must know: one row a cause, shown by `recado doctor` and `/health`."""

from dataclasses import dataclass
from sqlite3 import Connection

from app.people import Realm

ABOUT_SENDING = ("send:", "undelivered:")
ABOUT_SKILLS = "skill:"
ABOUT_SERVERS = "server:"


@dataclass(frozen=True, slots=True)
class Alert:
    code: str
    text: str
    times: int
    last_at: float


def raise_alert(conn: Connection, code: str, text: str, now: float) -> None:
    """Opens an alert, or counts it again."""
    conn.execute(
        "INSERT INTO alerts (code, text, first_at, last_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (code) DO UPDATE SET text = excluded.text, times = times + 1,"
        " last_at = excluded.last_at, mended_at = NULL",
        (code, text[:1000], now, now),
    )


def mend(conn: Connection, prefix: str, now: float) -> int:
    """Closes the open alerts whose code starts with `prefix`; gives how many there were."""
    return conn.execute(
        "UPDATE alerts SET mended_at = ? WHERE mended_at IS NULL AND substr(code, 1, ?) = ?",
        (now, len(prefix), prefix),
    ).rowcount


def enter_realm(conn: Connection, realm: Realm, now: float) -> None:
    """Closes what is open about sending where the last start was in another realm, whose sends these were."""
    last = last_realm(conn)
    if last == realm:
        return
    if last is not None:
        for prefix in ABOUT_SENDING:
            mend(conn, prefix, now)
    conn.execute("INSERT OR REPLACE INTO meta VALUES ('realm', ?)", (realm,))


def last_realm(conn: Connection) -> str | None:
    """The realm of the last start, None before the first."""
    row = conn.execute("SELECT value FROM meta WHERE key = 'realm'").fetchone()
    return None if row is None else str(row["value"])


def open_alerts(conn: Connection) -> list[Alert]:
    rows = conn.execute("SELECT * FROM alerts WHERE mended_at IS NULL ORDER BY last_at DESC")
    return [Alert(row["code"], row["text"], row["times"], row["last_at"]) for row in rows]
