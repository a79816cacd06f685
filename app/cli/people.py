"""`recado people`: who may talk and who owns, through the server or in the database itself."""

import asyncio
import io
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, BinaryIO

import orjson

from app.cli.database import none_yet, open_database, read_records
from app.cli.output import moment, table
from app.cli.server import RunningServer, find_server
from app.errors import RecadoError, StoreError
from app.messages import JSON
from app.people import SIMULATED_PEOPLE, TERMINAL_USER, Realm, Role
from app.phones import Doubt, canonical, country_of_zone, doubt_about
from app.settings import Settings
from app.store import people
from app.store.ownership import invite
from app.store.people import PersonLine
from app.text import visible

if TYPE_CHECKING:
    from app.store.personal_data import DataSubject, ErasedPerson, PersonFolders

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
        change, realm, now = _CHANGES[action], realm_of(settings), time.time()
        asyncio.run(_written(path, lambda conn: change(conn, realm, who, now)))
    place = "" if realm_of(settings) == "whatsapp" else " in the simulator (WhatsApp is not connected)"
    note = f"\nNo country is known to use {who}: see that its country code is right" if doubt else ""
    if is_made:
        note += f"\n{path.absolute()} was made for it: a server started in another folder does not see this"
    return f"{who} {_DONE[action]}{place}{note}"


def invitation(settings: Settings, role: Role, uses: int, hours: float) -> str:
    """Make an invitation code and return it with the ways to use it. Raise RecadoError if none counts."""
    if settings.access == "listed":
        raise RecadoError("invitations count with ACCESS=code or ACCESS=everyone only, and ACCESS is listed")
    server, path = find_server(settings.data_dir), settings.database_path
    if server is not None:
        code = server.ask("people/invite", {"role": role, "uses": uses, "hours": hours})["code"]
    else:
        until = time.time() + hours * 3600
        code = asyncio.run(_written(path, lambda conn: invite(conn, role, uses, until)))
    used = "once" if uses == 1 else f"{uses} times"
    becomes = "an owner" if role == "owner" else "a member"
    told = f"{code}\n\nWho sends this to the assistant is {becomes}; it works {used}, for {hours:g} hours."
    if not (number := own_number(settings)):
        return told
    import segno

    link = f"https://wa.me/{number}?text={code}"
    drawn = io.StringIO()
    segno.make(link).terminal(drawn, compact=True)
    return f"{told}\n\n{link}\n\n{drawn.getvalue()}"


def own_number(settings: Settings) -> str:
    """Return the digits of the assistant's own number as the Graph API tells it, "" where it does not."""
    if settings.uses_simulator or settings.missing_credentials:
        return ""
    from app.doctor.graph import GraphAPI

    token = settings.whatsapp_access_token.get_secret_value()
    with GraphAPI(settings.whatsapp_api_url) as graph:
        told = graph.get(settings.whatsapp_phone_number_id, token, {"fields": "display_phone_number"})
    return "".join(filter(str.isdigit, str(told.data.get("display_phone_number") or "")))


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


def role_of(line: PersonLine, settings: Settings) -> Role:
    """Return the role of a person by their row and by the configuration."""
    if owns(line, settings):
        return "owner"
    if settings.access == "listed" and line.realm != "whatsapp":
        return "member"
    configured = settings.allowed_phone_numbers | settings.owner_phone_numbers
    is_let_in = line.access == "allowed" or not configured.isdisjoint(line.names) or line.realm == "terminal"
    return "member" if is_let_in or settings.access == "listed" else "guest"


def may_talk(line: PersonLine, settings: Settings) -> bool:
    """Return True if a message of this person would be answered now."""
    if line.frozen or line.access not in ("allowed", "listed"):
        return False
    if line.realm == "simulator":
        return has_simulator(settings)
    if line.realm == "terminal" or line.access == "allowed" or settings.access == "everyone":
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


async def _written(path: Path, write: Callable[[Connection], str]) -> str:
    """Return what a function gives that writes into the database while no server runs."""
    database = await open_database(path)
    try:
        return await database.tx(write)
    finally:
        await database.close()


def _row(line: PersonLine, settings: Settings, addresses: Mapping[tuple[str, str], str]) -> Sequence[str]:
    role = "-" if line.role == "outsider" else role_of(line, settings)
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


ERASE_SECONDS = 120.0


def export_person(settings: Settings, who: str, to: Path | None) -> str:
    """Return everything kept of a person as JSON, or write it with their files to the zip file `to`.

    Raise RecadoError for an unknown person, or if the file cannot be written.
    """
    from app.store import personal_data

    def read(conn: Connection) -> "tuple[DataSubject, Mapping[str, JSON]]":
        somebody = personal_data.find(conn, realm_of(settings), who)
        return somebody, personal_data.export(conn, somebody)

    somebody, rows = read_records(settings.database_path, read)
    files = _files(settings, somebody.id)
    document = {"names": somebody.names, "realm": somebody.realm, **rows, "files": list(files)}
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    if to is None:
        return text
    try:
        with to.open("xb") as made:
            _write_archive(made, text, files)
    except FileExistsError as error:
        raise RecadoError(f"{to} is there already, and is not replaced") from error
    except OSError as error:
        to.unlink(missing_ok=True)
        raise RecadoError(f"{to} cannot be written: {error.strerror or error}") from error
    messages = len(document.get("messages", ()))
    return f"{to}: {messages} messages, {len(files)} files, and whatever else is kept of {who}"


def erase_person(settings: Settings, who: str) -> str:
    """Delete everything kept of a person and return what to tell.

    Raise RecadoError for an unknown person, or if something could not be deleted.
    """
    if not settings.database_path.is_file():  # "nobody is known" would sound as if they were gone already
        raise StoreError(none_yet(settings.database_path))
    owners = {line.id for line in listed_people(settings) if owns(line, settings)}
    server = find_server(settings.data_dir)
    if server is not None:
        erased = server.ask("people/erase", {"who": who}, seconds=ERASE_SECONDS)
    else:
        erased = asdict(asyncio.run(_erase(settings, who)))
    told = f"everything of {who} is erased, {erased['messages']} messages with the rest"
    if erased["who"]["id"] in owners:
        told += f"\nThey were an owner: files of owners lie together in {settings.workspace_dir}, and stay"
    return told


async def _erase(settings: Settings, who: str) -> "ErasedPerson":
    from app.erasure import Erasure, StoredPhones
    from app.store import build_store

    database = await open_database(settings.database_path)
    try:
        store = replace(build_store(settings), database=database)
        return await Erasure(store, StoredPhones(settings.data_dir)).erase(realm_of(settings), who)
    finally:
        await database.close()


def folders(settings: Settings) -> "PersonFolders":
    from app.store.personal_data import PersonFolders

    return PersonFolders(settings.workspace_dir, settings.data_dir)


def _files(settings: Settings, person: str) -> dict[str, Path]:
    """Map archive names to the person's files; links are left out, because they may lead anywhere."""
    return {
        os.fsencode(f"{kind}/{path.relative_to(folder)}").decode("utf-8", "replace"): path
        for kind, folder in folders(settings).of(person).items()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _write_archive(made: BinaryIO, text: str, files: Mapping[str, Path]) -> None:
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        archive.writestr("data.json", text)
        for name, path in files.items():
            with suppress(FileNotFoundError):  # it went meanwhile
                archive.write(path, name)


def open_approvals(settings: Settings) -> str:
    """Return every open question with its whole card. Raise RecadoError if no server runs."""
    waiting = _server(settings).ask("approvals")
    if not waiting:
        return "No question waits for an answer."
    return "\n\n".join(
        f"{one['id']}  {moment(one['at'])}  asked: {visible(one['asked'])}"
        f"  answers: {', '.join(one['choices'])}\n{one['card']}"
        for one in waiting
    )


def answer(settings: Settings, approval: str, choice: str) -> str:
    """Answer a question in place of the person who was asked. Raise RecadoError if it is not open."""
    _server(settings).ask("approvals/answer", {"id": approval, "choice": choice})
    return f"{approval}: {choice}"


def _server(settings: Settings) -> RunningServer:
    server = find_server(settings.data_dir)
    if server is None:
        raise RecadoError("no server runs on this data folder, so nothing could go on; start: recado serve")
    return server
