"""`recado people`: who may talk and who owns, through the server or in the database itself."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from sqlite3 import Connection

from app.commands.records import open_database, read_records
from app.commands.running import find_server
from app.commands.tables import moment, table
from app.errors import RecadoError
from app.people import SIMULATED_PEOPLE, TERMINAL_USER, Realm
from app.phones import Doubt, canonical, country_of_zone, doubt_about
from app.settings import Settings
from app.store import people
from app.store.people import PersonLine
from app.text import visible

_CHANGES = {"allow": people.allow, "block": people.block, "owner": people.make_owner}
_DONE = {"allow": "may talk now", "block": "is blocked", "owner": "is an owner now"}


def change_person(settings: Settings, action: str, who: str) -> str:
    """Let a person in, block them or make them an owner; return what to tell.

    Raise RecadoError for a malformed number.
    """
    sender = people.sender_named(who)
    doubt = doubts(settings, [sender.phone]).get(sender.phone) if action != "block" and sender.phone else None
    if doubt is not None and doubt.certain:
        raise RecadoError(f"{who!r} is no phone number with its country code; {doubt.cure}")
    server, path = find_server(settings.data_dir), settings.database_path
    is_made = server is None and not path.is_file()
    if server is not None:
        server.ask("people/change", {"action": action, "who": who})
    else:
        asyncio.run(_change(path, realm_of(settings), action, who))
    place = "" if realm_of(settings) == "whatsapp" else " in the simulator (WhatsApp is not connected)"
    note = f"\nNo country is known to use {who}: see that its country code is right" if doubt else ""
    if is_made:
        note += f"\n{path.absolute()} was made for it: a server started in another folder does not see this"
    return f"{who} {_DONE[action]}{place}{note}"


def people_table(settings: Settings) -> str:
    """Return a table of everybody known, everybody configured, and those who were turned away."""
    addresses = _addresses(settings.database_path)
    rows = [_row(line, settings, addresses) for line in without_answered(_listing(settings), settings)]
    if not rows:
        return "Nobody has written yet, and the configuration names nobody."
    return table(("WHO", "NAME", "WHERE", "ROLE", "MAY TALK", "NOTE"), rows)


def realm_of(settings: Settings) -> Realm:
    """Return the realm in which an operator's numbers are valid: WhatsApp or the simulator."""
    return "simulator" if settings.uses_simulator else "whatsapp"


def doubts(settings: Settings, numbers: Iterable[str]) -> dict[str, Doubt]:
    """Return the numbers that may lack their country code, without those that have written already."""
    from app.turns.profiles import local_timezone

    path = settings.database_path
    lines = read_records(path, people.listing) if path.is_file() else []
    written = {_plain(name) for line in lines if line.realm == realm_of(settings) for name in line.names}
    home = country_of_zone(settings.timezone or local_timezone())
    found = {number: doubt_about(number, home) for number in numbers if canonical(number) not in written}
    return {number: doubt for number, doubt in found.items() if doubt is not None}


def listed_people(settings: Settings) -> list[PersonLine]:
    """Return everybody in the database and a line for each configured number not seen yet."""
    path = settings.database_path
    return _with_configured(read_records(path, people.listing) if path.is_file() else [], settings)


def _listing(settings: Settings) -> list[PersonLine]:
    server = find_server(settings.data_dir)
    if server is None:
        return listed_people(settings)
    return _with_configured([PersonLine(**line) for line in server.ask("people")], settings)


def _with_configured(lines: list[PersonLine], settings: Settings) -> list[PersonLine]:
    seen = {name for line in lines if line.id and line.realm == "whatsapp" for name in line.names}
    configured = sorted((settings.owner_phone_numbers | settings.allowed_phone_numbers) - seen)
    return lines + [
        PersonLine(id="", names=[number], name="", role="member", access="listed", realm="whatsapp")
        for number in configured
    ]


def owns(line: PersonLine, settings: Settings) -> bool:
    """Return True if a person is an owner by their row or by the configuration, and may talk."""
    return may_talk(line, settings) and (
        line.role == "owner" or not _configured_owners(line.realm, settings).isdisjoint(line.names)
    )


def may_talk(line: PersonLine, settings: Settings) -> bool:
    """Return True if a message of this person would be answered now."""
    if line.frozen or line.access not in ("allowed", "listed"):
        return False
    if line.realm == "simulator":
        return has_simulator(settings)
    if line.realm == "terminal" or line.access == "allowed":
        return True
    configured = settings.allowed_phone_numbers | settings.owner_phone_numbers
    return not configured.isdisjoint(line.names)


def has_simulator(settings: Settings) -> bool:
    """Return True if the simulator's people can write."""
    return settings.uses_simulator and settings.simulator != "off"


def without_answered(lines: Sequence[PersonLine], settings: Settings) -> list[PersonLine]:
    """Drop the lines of people who were turned away but may talk now."""
    answered = {
        (line.realm, _plain(name)) for line in lines if may_talk(line, settings) for name in line.names
    }
    return [
        line
        for line in lines
        if line.access != "turned away" or (line.realm, _plain(line.names[0])) not in answered
    ]


def _plain(name: str) -> str:
    """Return a name in canonical digits; people turned away are kept in the form they came in."""
    return canonical(name) if name.isdigit() else name


def _configured_owners(realm: str, settings: Settings) -> frozenset[str]:
    if realm == "whatsapp":
        return settings.owner_phone_numbers
    if not settings.uses_simulator:
        return frozenset()
    if realm == "terminal":
        return frozenset({TERMINAL_USER})
    return frozenset({SIMULATED_PEOPLE[0].user_id})


def _addresses(path: Path) -> Mapping[tuple[str, str], str]:
    """Map (realm, canonical digits) to a phone as WhatsApp delivered it or somebody typed it."""

    def read(conn: Connection) -> Mapping[tuple[str, str], str]:
        rows = conn.execute("SELECT realm, value, address FROM aliases WHERE kind = 'phone'")
        return {(row["realm"], row["value"]): row["address"] for row in rows if row["address"]}

    return read_records(path, read) if path.is_file() else {}


async def _change(path: Path, realm: Realm, action: str, who: str) -> None:
    change, now = _CHANGES[action], time.time()

    def write(conn: Connection) -> str:
        return change(conn, realm, who, now)

    database = await open_database(path)
    try:
        await database.tx(write)
    finally:
        await database.close()


def _row(line: PersonLine, settings: Settings, addresses: Mapping[tuple[str, str], str]) -> Sequence[str]:
    role = "-" if line.role == "outsider" else "owner" if owns(line, settings) else "member"
    names = [addresses.get((line.realm, name), name) for name in line.names]
    return (
        visible(", ".join(names)) or line.id,
        visible(line.name),
        line.realm,
        role,
        _answered(line, settings),
        _note(line, settings),
    )


def _answered(line: PersonLine, settings: Settings) -> str:
    if line.frozen:
        return "frozen"
    if line.access in ("blocked", "turned away"):
        return line.access
    return "yes" if may_talk(line, settings) else "no"


def _note(line: PersonLine, settings: Settings) -> str:
    if line.frozen and not line.names:
        return f"{visible(line.frozen)}; the names are another's: recado erase deletes what is left"
    if line.frozen:
        return f"{visible(line.frozen)}; recado people allow confirms"
    if line.access == "turned away":
        times = "once" if line.messages == 1 else f"{line.messages} times"
        return f"{times}, last {moment(line.last_at)}"
    if not line.id:
        return "in the configuration, has not written yet"
    if line.access == "blocked" or may_talk(line, settings):
        return ""
    return "the simulator is off" if line.realm == "simulator" else "no longer in the configuration"
