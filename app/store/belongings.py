"""Everything that belongs to a person: found, given out whole, and deleted whole."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from app.errors import RecadoError
from app.messages import JSON
from app.people import Realm
from app.phones import canonical, digits, other_form
from app.store.aliases import names_of

_NOT_IN_A_NUMBER = re.compile(r"[^\d\s+().-]")
_NOT_ALONE = "two people turned out to be one, and the other was erased"


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


def find(conn: Connection, realm: Realm, who: str) -> Somebody:
    """Whoever goes by a phone, a user id or our own id; those of `realm` before others of the same name.

    Raises RecadoError where nobody does, or several of other realms.
    """
    name = who.strip(" ,")  # as the list of people shows several
    found = [*_people(conn, name), *_turned_away(conn, name)]
    found.sort(key=lambda one: one.realm != realm)
    if not found:
        raise RecadoError(f"nobody is known as {who!r}; recado people list shows who is")
    if found[0].realm != realm and len(found) > 1:
        all_of_them = ", ".join(f"{one.id or one.names[0]} ({one.realm})" for one in found)
        raise RecadoError(f"{who!r} is more than one person; say which by the id: {all_of_them}")
    return found[0]


def export(conn: Connection, who: Somebody) -> dict[str, list[dict[str, JSON]]]:
    """Every row that belongs to them, by table, as it is stored."""
    rows = {
        table: _rows(conn, f"SELECT * FROM {table} WHERE {column} = ?", who.id)
        for table, column in [("people", "id"), *((table, "person_id") for table in _tables(conn))]
    }
    spellings = _all_spellings(who.names)
    rows["outsiders"] = _rows(
        conn,
        f"SELECT * FROM outsiders WHERE realm = ? AND value IN {_marks(spellings)}",
        who.realm,
        *spellings,
    )
    rows["dead_letters"] += _rows(
        conn, f"SELECT * FROM dead_letters WHERE {_tells_of(spellings)}", *spellings
    )
    return {table: found for table, found in rows.items() if found}


def erase(conn: Connection, realm: Realm, who: str, now: float) -> Erased:
    """Deletes every row of theirs; all tables hang by the person's. What is written late about somebody who
    is gone finds no such person, and is refused. Raises RecadoError as `find`.

    What stays is nobody's: hashes of message ids, so that a message delivered again is still known, and our
    own random id of them.
    """
    somebody = find(conn, realm, who)
    conversations = _rows(conn, "SELECT id FROM conversations WHERE person_id = ?", somebody.id)
    (messages,) = conn.execute("SELECT count(*) FROM messages WHERE person_id = ?", (somebody.id,)).fetchone()
    spellings = _all_spellings(somebody.names)
    conn.execute(
        f"DELETE FROM outsiders WHERE realm = ? AND value IN {_marks(spellings)}",
        (somebody.realm, *spellings),
    )
    conn.execute(f"DELETE FROM dead_letters WHERE {_tells_of(spellings)}", spellings)
    _take_back_names(conn, somebody)
    conn.execute("DELETE FROM people WHERE id = ?", (somebody.id,))
    if somebody.id:
        conn.execute("INSERT INTO erased VALUES (?, ?)", (somebody.id, now))
    return Erased(somebody, [row["id"] for row in conversations], messages)


def _take_back_names(conn: Connection, somebody: Somebody) -> None:
    """Their names, where another person came with them too: frozen for it, that one stays so without them."""
    for name in somebody.names:
        conn.execute(
            "DELETE FROM claimed_aliases WHERE value = ?"
            " AND person_id IN (SELECT id FROM people WHERE realm = ?)",
            (name, somebody.realm),
        )
        conn.execute(
            "UPDATE people SET frozen = ? WHERE realm = ? AND instr(frozen, ?)",
            (_NOT_ALONE, somebody.realm, name),
        )


def _people(conn: Connection, who: str) -> list[Somebody]:
    spellings = _spellings(who)
    rows = conn.execute(
        "SELECT id, realm FROM people WHERE id = ?"
        f" OR id IN (SELECT person_id FROM aliases WHERE value IN {_marks(spellings)}) ORDER BY created_at",
        (who, *spellings),
    ).fetchall()
    return [Somebody(row["id"], row["realm"], names_of(conn, row["id"])) for row in rows]


def _turned_away(conn: Connection, who: str) -> list[Somebody]:
    spellings = _spellings(who)
    rows = conn.execute(f"SELECT realm, value FROM outsiders WHERE value IN {_marks(spellings)}", spellings)
    return [Somebody("", row["realm"], [row["value"]]) for row in rows]


def _spellings(who: str) -> list[str]:
    """A phone in all its forms: people are kept by one, those turned away by what came."""
    if _NOT_IN_A_NUMBER.search(who):
        return [who]
    return [spelling for spelling in {digits(who), canonical(who), other_form(who)} if spelling]


def _all_spellings(names: Iterable[str]) -> list[str]:
    return [spelling for name in names for spelling in _spellings(name)]


def _tells_of(spellings: Sequence[str]) -> str:
    """Of dead letters those that nobody could be found for, and that hold one of these."""
    return f"person_id IS NULL AND ({' OR '.join(['instr(payload, ?)'] * len(spellings)) or 'FALSE'})"


def _tables(conn: Connection) -> list[str]:
    """Those whose rows say whose they are."""
    tables = [row["name"] for row in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [
        table
        for table in tables
        if any(column["name"] == "person_id" for column in conn.execute(f"PRAGMA table_info({table})"))
    ]


def _marks(values: Sequence[str]) -> str:
    return f"({','.join('?' * len(values))})"


def _rows(conn: Connection, sql: str, *parameters: str) -> list[dict[str, JSON]]:
    return [dict(row) for row in conn.execute(sql, parameters)]
