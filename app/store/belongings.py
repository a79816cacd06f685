"""Everything that belongs to a person: found, given out whole, and deleted whole."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from app.errors import RecadoError
from app.messages import JSON
from app.people import Realm
from app.phones import canonical, digits, other_form

_NOT_IN_A_NUMBER = re.compile(r"[^\d\s+().-]")


@dataclass(frozen=True, slots=True)
class Somebody:
    """A person, or somebody who was only turned away: then `id` is "". `names`: phones and user ids."""

    id: str
    realm: Realm
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Erased:
    """Who is gone, with how many messages, and the conversations in which turns may still run."""

    who: Somebody
    conversations: Sequence[str]
    messages: int
    was_owner: bool


def find(conn: Connection, realm: Realm, who: str) -> Somebody:
    """Whoever goes by a phone, a user id or our own id; those of `realm` before others of the same name.

    Raises RecadoError where nobody does, or several of other realms.
    """
    spellings = _spellings(who)
    marks = ",".join("?" * len(spellings))
    found = conn.execute(
        "SELECT id, realm FROM people WHERE id = ?"
        f" OR id IN (SELECT person_id FROM aliases WHERE value IN ({marks}))"
        " ORDER BY realm = ? DESC, created_at",
        (who, *spellings, realm),
    ).fetchall()
    if len(found) > 1 and found[0]["realm"] != realm:
        ids = ", ".join(f"{row['id']} ({row['realm']})" for row in found)
        raise RecadoError(f"{who!r} is more than one person; say which by the id: {ids}")
    if found:
        names = conn.execute(
            "SELECT value FROM aliases WHERE person_id = ? ORDER BY kind, value", (found[0]["id"],)
        )
        return Somebody(found[0]["id"], found[0]["realm"], [row["value"] for row in names])
    turned_away = conn.execute(
        f"SELECT realm, value FROM outsiders WHERE value IN ({marks}) ORDER BY realm = ? DESC",
        (*spellings, realm),
    ).fetchone()
    if turned_away is None:
        raise RecadoError(f"nobody is known as {who!r}; recado people list shows who is")
    return Somebody("", turned_away["realm"], [turned_away["value"]])


def export(conn: Connection, who: Somebody) -> dict[str, list[dict[str, JSON]]]:
    """Every row that belongs to them, by table, as it is stored."""
    rows = {
        table: _rows(conn, f"SELECT * FROM {table} WHERE {column} = ?", who.id)
        for table, column in [("people", "id"), *((table, "person_id") for table in _tables(conn))]
    }
    spellings = [spelling for name in who.names for spelling in _spellings(name)]
    marks = ",".join("?" * len(spellings))
    rows["outsiders"] = _rows(
        conn, f"SELECT * FROM outsiders WHERE realm = ? AND value IN ({marks})", who.realm, *spellings
    )
    return {table: found for table, found in rows.items() if found}


def erase(conn: Connection, realm: Realm, who: str) -> Erased:
    """Deletes every row of theirs; all tables hang by the person's. What is written late about somebody who
    is gone finds no such person, and is refused. Raises RecadoError as `find`.

    What stays is nobody's: hashes of message ids, so that a message delivered again is still known.
    """
    somebody = find(conn, realm, who)
    person = conn.execute("SELECT role FROM people WHERE id = ?", (somebody.id,)).fetchone()
    conversations = _rows(conn, "SELECT id FROM conversations WHERE person_id = ?", somebody.id)
    (messages,) = conn.execute("SELECT count(*) FROM messages WHERE person_id = ?", (somebody.id,)).fetchone()
    for spelling in (one for name in somebody.names for one in _spellings(name)):
        conn.execute("DELETE FROM outsiders WHERE realm = ? AND value = ?", (somebody.realm, spelling))
    conn.execute("DELETE FROM people WHERE id = ?", (somebody.id,))
    return Erased(
        somebody,
        [row["id"] for row in conversations],
        messages,
        was_owner=person is not None and person["role"] == "owner",
    )


def _spellings(who: str) -> list[str]:
    """A phone in all its forms: people are kept by one, those turned away by what came."""
    if _NOT_IN_A_NUMBER.search(who):
        return [who]
    return [spelling for spelling in {digits(who), canonical(who), other_form(who)} if spelling]


def _tables(conn: Connection) -> list[str]:
    """Those whose rows say whose they are."""
    tables = [row["name"] for row in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [
        table
        for table in tables
        if any(column["name"] == "person_id" for column in conn.execute(f"PRAGMA table_info({table})"))
    ]


def _rows(conn: Connection, sql: str, *parameters: str) -> list[dict[str, JSON]]:
    return [dict(row) for row in conn.execute(sql, parameters)]
