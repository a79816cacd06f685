"""The audit: who did what, each row chained to the one before by its hash; our own ids stand for people."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from app.store.database import Connection, Row, insert, read_row, scalar

COMMAND = "command"
SHOWN = 100


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A deed of an actor, and whom or what it was about."""

    seq: int
    at: float
    actor: str
    action: str
    subject: str
    before: str
    hash: str


def record(conn: Connection, actor: str, action: str, subject: str, now: float) -> None:
    """Add what was done."""
    before = scalar(conn, "SELECT hash FROM audit ORDER BY seq DESC LIMIT 1") or ""
    at, action = round(now, 3), action[:200]
    hashed = _hash(before, at, actor, action, subject)
    written: dict[str, Any] = {"at": at, "actor": actor, "action": action, "subject": subject}
    insert(conn, "audit", **written, before=before, hash=hashed)


def listing(conn: Connection, page: int) -> list[AuditRow]:
    """Return a page of rows and one more where there are further ones, the newest first."""
    sql = "SELECT * FROM audit ORDER BY seq DESC LIMIT ? OFFSET ?"
    return [_row(row) for row in conn.execute(sql, (SHOWN + 1, (page - 1) * SHOWN))]


def verify(conn: Connection) -> tuple[int, str]:
    """Return how many rows there are, and where the chain is broken: "" where it is whole.

    Newest rows that were taken out leave a shorter chain, which is whole: compare the number of rows.
    """
    before, count = "", 0
    for count, row in enumerate(map(_row, conn.execute("SELECT * FROM audit ORDER BY seq")), 1):
        if row.before != before:
            return count, f"a row before number {row.seq} is missing or was changed"
        if row.hash != _hash(before, row.at, row.actor, row.action, row.subject):
            return count, f"row number {row.seq} was changed"
        before = row.hash
    return count, ""


def _row(row: Row) -> AuditRow:
    return read_row(AuditRow, row)


def _hash(before: str, at: float, actor: str, action: str, subject: str) -> str:
    return sha256("\n".join((before, f"{at:.3f}", actor, action, subject)).encode()).hexdigest()
