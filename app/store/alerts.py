"""What the operator must know: one row a cause, shown by `recado doctor` and `/health`."""

from dataclasses import dataclass
from sqlite3 import Connection


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


def open_alerts(conn: Connection) -> list[Alert]:
    rows = conn.execute("SELECT * FROM alerts WHERE mended_at IS NULL ORDER BY last_at DESC")
    return [Alert(row["code"], row["text"], row["times"], row["last_at"]) for row in rows]
