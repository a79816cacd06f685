"""The catalogues that model calls were offered tools from: each kept once, by its hash."""

from sqlite3 import Connection

import orjson

from app.messages import JSON
from app.store.database import Database

DAY = 86400.0


def keep(conn: Connection, hash: str, body: str, now: float) -> None:
    """Keeps a catalogue; of one that is there it notes, once a day, that it is still in use."""
    row = conn.execute("SELECT at FROM catalogs WHERE hash = ?", (hash,)).fetchone()
    if row is None:
        conn.execute("INSERT INTO catalogs (hash, body, at) VALUES (?, ?, ?)", (hash, body, now))
    elif now - row["at"] >= DAY:
        conn.execute("UPDATE catalogs SET at = ? WHERE hash = ?", (now, hash))


def forget(conn: Connection, before: float, limit: int) -> int:
    """Deletes those that were last in use before that time and that no call is traced to; gives how many.

    `before` must lie further back than the traces that are kept do: what is traced is looked at call by call.
    """
    return conn.execute(
        "DELETE FROM catalogs WHERE hash IN (SELECT hash FROM catalogs AS old WHERE at < ? AND NOT EXISTS"
        " (SELECT 1 FROM model_calls WHERE catalog = old.hash) LIMIT ?)",
        (before, limit),
    ).rowcount


async def definitions(store: Database, hash: str) -> dict[str, JSON]:
    """The definitions of a catalogue by tool name; none where it is forgotten."""
    row = await store.one("SELECT body FROM catalogs WHERE hash = ?", hash)
    return {} if row is None else {one["name"]: one for one in orjson.loads(row["body"])}
