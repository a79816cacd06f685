"""Links that sign an owner into the console: valid for ten minutes, and once."""

import secrets
from hashlib import sha256

from app.store.database import Connection, insert

LINK_SECONDS = 600.0


def make(conn: Connection, now: float) -> str:
    """Make and return the code of a link; older links go on to count until they expire."""
    conn.execute("DELETE FROM sign_in_links WHERE expires_at <= ?", (now,))
    code = secrets.token_urlsafe(32)
    insert(conn, "sign_in_links", id=_hash(code), expires_at=now + LINK_SECONDS)
    return code


def use(conn: Connection, code: str, now: float) -> bool:
    """Use a code up; return False if it is none, was used or has expired."""
    used = conn.execute("DELETE FROM sign_in_links WHERE id = ? AND expires_at > ?", (_hash(code), now))
    return used.rowcount > 0


def _hash(code: str) -> str:
    return sha256(code.encode()).hexdigest()
