"""Who may talk and who owns: shown, and changed through the server or in the database itself."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from sqlite3 import Connection

from app.commands.records import open_database, read_records
from app.commands.running import find_server
from app.commands.tables import moment, table
from app.people import Realm
from app.settings import Settings
from app.store import people
from app.store.people import PersonLine
from app.tools.confirmation import visible

_CHANGES = {"allow": people.allow, "block": people.block, "owner": people.make_owner}
_DONE = {"allow": "may talk now", "block": "is blocked", "owner": "is an owner now"}


def change_person(settings: Settings, action: str, who: str) -> str:
    """Lets in, blocks or makes an owner; gives what to tell. Raises RecadoError for a number that is none."""
    people.sender_named(who)
    server = find_server(settings.data_dir)
    if server is not None:
        server.ask("people/change", {"action": action, "who": who})
    else:
        asyncio.run(_change(settings.database_path, realm_of(settings), action, who))
    place = "" if realm_of(settings) == "whatsapp" else " in the simulator (WhatsApp is not connected)"
    return f"{who} {_DONE[action]}{place}"


def people_table(settings: Settings) -> str:
    """Everybody known, everybody the configuration names, and who was turned away."""
    rows = [_row(line, settings) for line in _listing(settings)]
    if not rows:
        return "Nobody has written yet, and the configuration names nobody."
    return table(("WHO", "NAME", "WHERE", "ROLE", "MAY TALK", "NOTE"), rows)


def realm_of(settings: Settings) -> Realm:
    """Where the numbers are valid that an operator names."""
    return "simulator" if settings.uses_simulator else "whatsapp"


def listed_people(settings: Settings) -> list[PersonLine]:
    """Those that the database knows, with a line for each configured number it has not seen."""
    path = settings.database_path
    return _with_configured(read_records(path, people.listing) if path.is_file() else [], settings)


def _listing(settings: Settings) -> list[PersonLine]:
    server = find_server(settings.data_dir)
    if server is None:
        return listed_people(settings)
    return _with_configured([PersonLine(**line) for line in server.ask("people")], settings)


def _with_configured(lines: list[PersonLine], settings: Settings) -> list[PersonLine]:
    seen = {name for line in lines if line.id for name in line.names}
    configured = sorted((settings.owner_phone_numbers | settings.allowed_phone_numbers) - seen)
    return lines + [
        PersonLine(id="", names=[number], name="", role="member", access="listed", realm="whatsapp")
        for number in configured
    ]


async def _change(path: Path, realm: Realm, action: str, who: str) -> None:
    change, now = _CHANGES[action], time.time()

    def write(conn: Connection) -> str:
        return change(conn, realm, who, now)

    database = await open_database(path)
    try:
        await database.tx(write)
    finally:
        await database.close()


def _row(line: PersonLine, settings: Settings) -> Sequence[str]:
    owner = line.realm == "whatsapp" and not settings.owner_phone_numbers.isdisjoint(line.names)
    role = "owner" if owner and line.access != "blocked" else line.role
    return (
        visible(", ".join(line.names)) or line.id,
        visible(line.name),
        line.realm,
        "-" if role == "outsider" else role,
        _may_talk(line, settings),
        _note(line, settings),
    )


def _may_talk(line: PersonLine, settings: Settings) -> str:
    if line.frozen:
        return "frozen"
    if line.access in ("blocked", "turned away"):
        return line.access
    if line.access == "allowed" or line.realm != "whatsapp":
        return "yes"
    configured = settings.allowed_phone_numbers | settings.owner_phone_numbers
    return "no" if configured.isdisjoint(line.names) else "yes"


def _note(line: PersonLine, settings: Settings) -> str:
    if line.frozen:
        return f"{visible(line.frozen)}; recado people allow confirms"
    if line.access == "turned away":
        times = "once" if line.messages == 1 else f"{line.messages} times"
        return f"{times}, last {moment(line.last_at)}"
    if not line.id:
        return "in the configuration, has not written yet"
    return "no longer in the configuration" if _may_talk(line, settings) == "no" else ""
