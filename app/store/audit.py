"""The audit: who did what, each row chained to the one before by its hash; our own ids stand for people."""

from hashlib import sha256
from typing import Any

from app.i18n import lazy
from app.store.database import Connection, Row, insert, scalar

COMMAND = "command"
SHOWN = 100


def record(conn: Connection, actor: str, action: str, subject: str, now: float) -> None:
    """Add what was done."""
    before = scalar(conn, "SELECT hash FROM audit ORDER BY seq DESC LIMIT 1") or ""
    at, action = round(now, 3), action[:200]
    hashed = _hash(before, at, actor, action, subject)
    written: dict[str, Any] = {"at": at, "actor": actor, "action": action, "subject": subject}
    insert(conn, "audit", **written, before=before, hash=hashed)


def listing(conn: Connection, page: int) -> list[Row]:
    """Return a page of rows and one more where there are further ones, the newest first."""
    sql = "SELECT * FROM audit ORDER BY seq DESC LIMIT ? OFFSET ?"
    return conn.execute(sql, (SHOWN + 1, (page - 1) * SHOWN)).fetchall()


def verify(conn: Connection, known: str = "") -> tuple[str, str]:
    """Return the head of the chain, and where the chain is broken: "" where it is whole.

    `known` is a head that was kept elsewhere: without one, nothing shows that the newest rows were taken out.
    """
    number, _, kept = known.partition(":")
    before, count = "", 0
    for count, row in enumerate(conn.execute("SELECT * FROM audit ORDER BY seq"), 1):
        seq, hashed = row["seq"], row["hash"]
        if row["before"] != before:
            return "", lazy("a row before number {seq} is missing or was changed", seq=seq)
        if hashed != _hash(before, row["at"], row["actor"], row["action"], row["subject"]):
            return "", lazy("row number {seq} was changed", seq=seq)
        if str(count) == number and hashed != kept:
            return "", lazy("row number {seq} is another than the head that was kept", seq=seq)
        before = hashed
    if known and count < int(number):
        return "", lazy("of {n} rows only {left} are left: the newest were taken out", n=number, left=count)
    return f"{count}:{before}", ""


def head(conn: Connection) -> str:
    """Return how many rows there are and the hash of the newest, as `verify` takes it."""
    newest = scalar(conn, "SELECT hash FROM audit ORDER BY seq DESC LIMIT 1") or ""
    return f"{scalar(conn, 'SELECT count(*) FROM audit')}:{newest}"


def _hash(before: str, at: float, actor: str, action: str, subject: str) -> str:
    return sha256("\n".join((before, f"{at:.3f}", actor, action, subject)).encode()).hexdigest()
