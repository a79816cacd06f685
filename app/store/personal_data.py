"""Personal data in tables and folders: find it, export it, erase it, delete what is old."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import RecadoError
from app.i18n import lazy
from app.messages import JSON
from app.people import Realm
from app.phones import canonical, digits, other_form
from app.rmtree import rmtree
from app.store import media, schedules
from app.store.database import Connection, Database, delete, placeholders, scalar, update
from app.store.journal import ADMIN_CALL
from app.store.people import PersonLine, listing
from app.store.statistics import day_of

DAY = 86400.0
SEEN_DAYS = 30
TRACE_DAYS = 30
DEAD_LETTER_DAYS = 90
ERASED_DAYS = 30
STATISTICS_DAYS = 90
REMINDER_DAYS = 30  # after they fired for the last time, or were cancelled
BATCH = 500
TURNS_AT_ONCE = 50

_NOT_IN_A_NUMBER = re.compile(r"[^\d\s+().-]")
_SHARED_WITH_ERASED = "two people turned out to be one, and the other was erased"


@dataclass(frozen=True, slots=True)
class ErasedPerson:
    """The person who was erased, how many messages went, and the conversations where turns may still run."""

    who: PersonLine
    conversations: Sequence[str]
    messages: int


class PersonFolders:
    """A person's folders: in the workspace (owners share all of it), and of files on their way to them.

    Its functions block: call them in threads.
    """

    def __init__(self, workspace: Path, data_dir: Path) -> None:
        self._workspace = workspace
        self._data_dir = data_dir

    def of(self, person: str) -> tuple[Path, ...]:
        """Return the two folders; none for the id ""."""
        if not person:
            return ()
        return self._workspace / "people" / person, self._data_dir / "media" / person

    def remove(self, people: Iterable[str]) -> None:
        """Remove the folders of these people; raise RecadoError after every one was tried."""
        faults = []
        for folder in (folder for person in people for folder in self.of(person)):
            try:
                rmtree(folder)  # of any depth: a server may have written there
            except OSError as error:
                faults.append(f"{folder} could not be removed: {error.strerror or error}")
        if faults:
            raise RecadoError("; ".join(faults))


async def remove_erased_folders(store: Database, folders: PersonFolders) -> None:
    """Remove what is left of people who were erased, after a crash or a late write. Raises RecadoError."""
    gone = [row["id"] for row in await store.all("SELECT id FROM erased")]
    if gone:
        await asyncio.to_thread(folders.remove, gone)


def find(conn: Connection, realm: Realm, who: str) -> PersonLine:
    """Return the person with a phone, a user id or our own id, those of `realm` first. Raises RecadoError."""
    name = who.strip(" ,")  # the list of people separates several names with commas
    meant = {name, *_spellings(name)}
    found = [one for one in listing(conn) if name and not meant.isdisjoint((one.id, *one.names))]
    found.sort(key=lambda one: one.realm != realm)
    if not found:
        raise RecadoError(lazy("nobody is known as {who}; {recado} people list shows who is", who=repr(who)))
    if found[0].realm != realm and len(found) > 1:
        all_of_them = ", ".join(f"{one.id or one.names[0]} ({one.realm})" for one in found)
        raise RecadoError(
            lazy("{who} is more than one person; say which by the id: {ids}", who=repr(who), ids=all_of_them)
        )
    return found[0]


def export(conn: Connection, who: PersonLine) -> dict[str, list[dict[str, JSON]]]:
    """Return every row that belongs to them, by table, as it is stored."""
    theirs = conn.execute("SELECT table_name FROM table_columns WHERE column_name = 'person_id'").fetchall()
    rows = {
        table: _rows(conn, f"SELECT * FROM {table} WHERE {column} = ?", who.id)
        for table, column in [("people", "id"), *((table, "person_id") for (table,) in theirs)]
    }
    spellings = _all_spellings(who.names)
    rows["outsiders"] = _rows(
        conn,
        f"SELECT * FROM outsiders WHERE realm = ? AND value IN ({placeholders(spellings)})",
        who.realm,
        *spellings,
    )
    rows["dead_letters"] += _rows(
        conn, f"SELECT * FROM dead_letters WHERE {_names_any(spellings)}", *spellings
    )
    return {table: found for table, found in rows.items() if found}


def erase(conn: Connection, realm: Realm, who: str, now: float) -> ErasedPerson:
    """Delete every row of a person (all tables reference `people`). Raises RecadoError as `find`.

    What stays belongs to nobody: hashes of message ids, so that a redelivered message is still known, and
    our own random id of the person. Late writes find no such person and are refused.
    """
    subject = find(conn, realm, who)
    conversations = _rows(conn, "SELECT id FROM conversations WHERE person_id = ?", subject.id)
    messages = scalar(conn, "SELECT count(*) FROM messages WHERE person_id = ?", subject.id)
    spellings = _all_spellings(subject.names)
    theirs = f"realm = ? AND value IN ({placeholders(spellings)})"
    delete(conn, "outsiders", theirs, subject.realm, *spellings)
    delete(conn, "dead_letters", _names_any(spellings), *spellings)
    for name in subject.names:  # of others too, who came with it once and stay frozen without it
        in_realm = "person_id IN (SELECT id FROM people WHERE realm = ?)"
        delete(conn, "claimed_aliases", f"value = ? AND {in_realm}", name, subject.realm)
        shares = "realm = ? AND instr(frozen, ?) > 0"
        update(conn, "people", shares, subject.realm, name, frozen=_SHARED_WITH_ERASED)
    # What owners were told of them as a stranger; its rows of the outbox go with it.
    told = "id IN (SELECT message_id FROM outbox WHERE source LIKE ?)"
    delete(conn, "messages", told, f"contact:{subject.id}:%")
    delete(conn, "people", "id = ?", subject.id)
    if subject.id:
        conn.execute("INSERT INTO erased VALUES (?, ?)", (subject.id, now))
    return ErasedPerson(subject, [row["id"] for row in conversations], messages)


def _spellings(who: str) -> list[str]:
    """Return a phone in all its forms: people are kept by one, those turned away by the one that came."""
    if _NOT_IN_A_NUMBER.search(who):
        return [who]
    return [spelling for spelling in {digits(who), canonical(who), other_form(who)} if spelling]


def _all_spellings(names: Iterable[str]) -> list[str]:
    return [spelling for name in names for spelling in _spellings(name)]


def _names_any(spellings: Sequence[str]) -> str:
    """Return SQL for the dead letters of no known person that hold one of these names."""
    return f"person_id IS NULL AND ({' OR '.join(['instr(payload, ?) > 0'] * len(spellings)) or 'FALSE'})"


def _rows(conn: Connection, sql: str, *parameters: str) -> list[dict[str, JSON]]:
    return [dict(row) for row in conn.execute(sql, parameters)]


def delete_old(conn: Connection, now: float) -> int:
    """Delete a batch of what is old in each table; return how many rows went. Messages and turns stay."""
    traced = now - TRACE_DAYS * DAY
    old: tuple[tuple[str, str, str, object], ...] = (
        ("seen", "key", "at", now - SEEN_DAYS * DAY),
        ("inbox", "seq", "done_at", now - DAY),
        ("dead_letters", "id", "at", now - DEAD_LETTER_DAYS * DAY),
        ("erased", "id", "at", now - ERASED_DAYS * DAY),
        ("invitations", "code_hash", "expires_at", now - DAY),
        ("console_sessions", "id", "expires_at", now - DAY),
        ("sign_in_links", "id", "expires_at", now),
        ("statuses", "wamid, status", "received_at", traced),
        ("prompt_parts", "person_id, hash", "at", traced),
        ("uncertain_calls", "person_id, tool, arguments_hash", "at", traced),
        ("tool_statistics", "tool, day, code, step", "day", day_of(now - STATISTICS_DAYS * DAY)),
    )
    gone = 0
    for table, key, column, before in old:
        oldest = f"SELECT {key} FROM {table} WHERE {column} < ? LIMIT ?"
        gone += delete(conn, table, f"({key}) IN ({oldest})", before, BATCH)
    gone += media.give_up_old_files(conn, now - 2 * DAY, BATCH)
    gone += schedules.delete_over(conn, now - REMINDER_DAYS * DAY, BATCH)
    sql = "SELECT id FROM turns WHERE traced = 1 AND done_at < ? LIMIT ?"
    ended = [row["id"] for row in conn.execute(sql, (traced, TURNS_AT_ONCE))]
    for turn in ended:
        gone += delete(conn, "journal", "turn_id = ?", turn)
        gone += delete(conn, "model_calls", "turn_id = ?", turn)
        update(conn, "turns", "id = ?", turn, traced=0)
        delete(conn, "turns", "id = ? AND outcome = ?", turn, ADMIN_CALL)
    return gone
