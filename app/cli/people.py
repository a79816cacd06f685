"""`recado people`, `export` and `erase`: who may talk, and what is kept."""

import asyncio
import io
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Literal

import orjson
import typer

from app.channels.access import access_rules
from app.channels.whatsapp.channel import invitation_link
from app.cli.database import open_database, read_records
from app.cli.output import command_settings, group, moment, show, show_table
from app.cli.server import ask_or_write, find_server
from app.errors import RecadoError
from app.i18n import program
from app.messages import JSON
from app.people import Role
from app.phones import canonical, country_of_zone, without_country_code
from app.settings import Settings
from app.store import people, personal_data
from app.store.database import Connection
from app.store.ownership import invite as make_invitation
from app.store.people import PersonLine
from app.store.personal_data import ErasedPerson, PersonFolders

commands = group()
people_commands = group(help="Who may talk, and who owns.")
commands.add_typer(people_commands, name="people")

Phone = Annotated[str, typer.Argument(help="A number with its country code, or a WhatsApp user id.")]
Person = Annotated[
    str, typer.Argument(help="A number with its country code, a WhatsApp user id, or our own id of them.")
]

ERASE_SECONDS = 120.0
_DONE = {"allow": "may talk now", "block": "is blocked", "owner": "is an owner now"}


@people_commands.command("list")
def people_list() -> None:
    """Show everybody known and those turned away."""
    settings, rows = command_settings(), []
    for line in without_answered(listed_people(settings), settings):
        role = "-" if line.role == "outsider" else _role(line, settings)
        who = ", ".join(line.names) or line.id
        rows.append((who, line.name, line.realm, role, *_answered(line, settings)))
    head = ("WHO", "NAME", "WHERE", "ROLE", "MAY TALK", "NOTE")
    show_table(head, rows, "Nobody has written yet, and the configuration names nobody.")


@people_commands.command()
def allow(who: Phone) -> None:
    """Let somebody in, and confirm somebody who is frozen."""
    _change("allow", who)


@people_commands.command()
def block(who: Phone) -> None:
    """Shut somebody out, whatever the configuration says."""
    _change("block", who)


@people_commands.command()
def owner(who: Phone) -> None:
    """Make somebody an owner: who installs, approves and administers."""
    _change("owner", who)


def _change(action: Literal["allow", "block", "owner"], who: str) -> None:
    settings = command_settings()
    phone = people.sender_named(who).phone
    if action != "block" and phone and (cure := incomplete(settings, [phone]).get(phone)):
        raise RecadoError(f"{who!r} is no phone number with its country code; {cure}")
    change = {"allow": people.allow, "block": people.block, "owner": people.make_owner}[action]
    asked, now = {"action": action, "who": who}, time.time()
    ask_or_write(settings, "people/change", asked, lambda conn: change(conn, settings.realm, who, now))
    place = "" if settings.realm == "whatsapp" else " in the simulator (WhatsApp is not connected)"
    show(f"{who} {_DONE[action]}{place}")


@people_commands.command()
def invite(
    role: Annotated[Literal["member", "owner"], typer.Option(help="The role that it gives.")] = "member",
    uses: Annotated[int, typer.Option(min=1, max=10_000, help="How many people may use it.")] = 1,
    hours: Annotated[float, typer.Option(min=0.1, max=24 * 366, help="How long it is valid.")] = 48,
) -> None:
    """Make an invitation code, as a link and a QR code where WhatsApp is connected."""
    settings = command_settings()
    if settings.access == "listed":
        raise RecadoError("invitations count with ACCESS=code or ACCESS=everyone only, and ACCESS is listed")
    asked, until = {"role": role, "uses": uses, "hours": hours}, time.time() + hours * 3600

    def write(conn: Connection) -> dict[str, str]:
        return {"code": make_invitation(conn, role, uses, until)}

    code = ask_or_write(settings, "people/invite", asked, write)["code"]
    becomes = "an owner" if role == "owner" else "a member"
    works = f"it works {times(uses)}, for {hours:g} hours"
    show(f"{code}\n\nWho sends this to the assistant is {becomes}; {works}.")
    if link := asyncio.run(invitation_link(settings, code)):
        import segno

        drawn = io.StringIO()
        segno.make(link).terminal(drawn, compact=True)
        show(f"\n{link}\n\n{drawn.getvalue()}")


def incomplete(settings: Settings, numbers: Iterable[str]) -> dict[str, str]:
    """Return the numbers that lack their country code, with the cure; none that has written already."""
    lines: list[PersonLine] = read_records(settings.database, people.listing, none=[])
    written = {_plain(name) for line in lines if line.realm == settings.realm for name in line.names}
    home = country_of_zone(settings.default_timezone)
    cures = {number: without_country_code(number, home) for number in numbers}
    return {number: cure for number, cure in cures.items() if cure and canonical(number) not in written}


def listed_people(settings: Settings) -> list[PersonLine]:
    """Return everybody in the database and a line for each configured number not seen yet."""
    lines: list[PersonLine] = read_records(settings.database, people.listing, none=[])
    seen = {name for line in lines if line.id and line.realm == "whatsapp" for name in line.names}
    configured = sorted((settings.owner_phone_numbers | settings.allowed_phone_numbers) - seen)
    return lines + [
        PersonLine(id="", names=[number], name="", role="member", access="listed", realm="whatsapp")
        for number in configured
    ]


def owns(line: PersonLine, settings: Settings) -> bool:
    """Return True if a person is an owner by their row or by the configuration, and may talk."""
    return may_talk(line, settings) and _role(line, settings) == "owner"


def may_talk(line: PersonLine, settings: Settings) -> bool:
    """Return True if a message of this person would be answered now."""
    if line.frozen or line.access not in ("allowed", "listed"):
        return False
    if line.realm == "simulator" and (not settings.uses_simulator or settings.simulator == "off"):
        return False
    return access_rules(settings, line.realm).guests or _role(line, settings) != "guest"


def _role(line: PersonLine, settings: Settings) -> Role:
    return people.role_of(access_rules(settings, line.realm), line.role, line.access, line.names)


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


def _answered(line: PersonLine, settings: Settings) -> tuple[str, str]:
    if line.frozen:
        cure = f"{program()} people allow confirms"
        cure = cure if line.names else f"the names are another's: {program()} erase deletes what is left"
        return "frozen", f"{line.frozen}; {cure}"
    if line.access == "turned away":
        return line.access, f"{times(line.messages)}, last {moment(line.last_at)}"
    if not line.id:
        return "yes" if may_talk(line, settings) else "no", "in the configuration, has not written yet"
    if line.access == "blocked":
        return line.access, ""
    if may_talk(line, settings):
        return "yes", ""
    return "no", "the simulator is off" if line.realm == "simulator" else "no longer in the configuration"


def times(count: int) -> str:
    """Say how often something happened."""
    return "once" if count == 1 else f"{count} times"


@commands.command("export")
def export_person(who: Person) -> None:
    """Give out everything that is kept of somebody, as JSON, with the paths of their files."""
    settings = command_settings()

    def read(conn: Connection) -> dict[str, JSON]:
        somebody = personal_data.find(conn, settings.realm, who)
        files = _files(settings, somebody.id)
        rows = personal_data.export(conn, somebody)
        return {"names": somebody.names, "realm": somebody.realm, **rows, "files": files}

    document = read_records(settings.database, read)
    show(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


@commands.command("erase")
def erase_person(
    who: Person, yes: Annotated[bool, typer.Option("--yes", help="Do not ask first, in a terminal.")] = False
) -> None:
    """Erase everything that is kept of somebody, for good."""
    settings = command_settings()
    if sys.stdin.isatty() and not yes:
        typer.confirm(f"Erase everything of {who}? It cannot be undone", abort=True)
    # Without a database "nobody is known" would sound as if they were gone already.
    lines = read_records(settings.database, people.listing)
    owners = {line.id for line in lines if owns(line, settings)}
    server = find_server(settings.data_dir)
    if server is not None:
        erased = server.ask("people/erase", {"who": who}, seconds=ERASE_SECONDS)
    else:
        erased = asdict(asyncio.run(_erase(settings, who)))
    show(f"everything of {who} is erased, {erased['messages']} messages with the rest")
    if erased["who"]["id"] in owners:
        show(f"They were an owner: files of owners lie together in {settings.workspace_dir}, and stay")


async def _erase(settings: Settings, who: str) -> ErasedPerson:
    from app.erasure import Erasure
    from app.store import build_store

    async with open_database(settings.database) as database:
        store = replace(build_store(settings), database=database)
        return await Erasure(store).erase(settings.realm, who)


def _files(settings: Settings, person: str) -> list[str]:
    """Return the paths of the person's files; links are left out, because they may lead anywhere."""
    return [
        os.fsencode(path.absolute()).decode("utf-8", "replace")
        for folder in PersonFolders(settings.workspace_dir, settings.data_dir).of(person)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]
