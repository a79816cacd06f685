"""Checks of the configuration, the data folder and the database, and of the alerts and people in it."""

import difflib
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from dotenv import dotenv_values

from app.cli.database import read_records, shown, state_of
from app.cli.output import moment
from app.cli.people import incomplete, listed_people, may_talk, owns, without_answered
from app.cli.settings import zone_hint
from app.errors import StoreError
from app.i18n import LazyText, lazy
from app.ops import Finding, fail, ok, warn
from app.phones import canonical
from app.settings import SECRET_VARIABLES, VARIABLES, Settings
from app.store import alerts
from app.store.database import engine_of
from app.store.disk_space import MEGABYTE, Disk, is_full
from app.store.people import PersonLine

_ALIKE = 0.7
LATELY_SECONDS = 7 * 24 * 3600.0
# By the code of an alert about sending, mostly Meta's; of the codes that the sender knows the alert tells.
_CURES = {
    "131026": lazy("ask the person whether this phone has a current WhatsApp and its new terms are accepted"),
    "131030": lazy("a test number reaches only its list: add the person at WhatsApp > API Setup > To"),
    "131047": lazy("the person last wrote more than 24 hours ago and has to write first"),
    "131049": lazy("Meta limits what this person gets; there is nothing to mend, later answers may pass"),
    "unknown": lazy("ask the person whether it arrived"),
    "model": lazy("see what is said about the model above"),
    "turn": lazy("see what happened with: {recado} trace"),
}


def check_configuration(settings: Settings) -> Iterator[Finding]:
    """Check that `.env` was read and is private, look for misspelt names, and name the time zone."""
    path = Path(".env")
    if path.is_file():
        fact = lazy("every variable is valid; {path} is read", path=path.resolve())
    else:
        fact = lazy("every variable is valid; no .env here, the environment alone counts")
    yield ok("configuration", fact)
    yield from check_names(path)
    if path.is_file() and path.stat().st_mode & stat.S_IROTH and _given(path).intersection(SECRET_VARIABLES):
        fact = lazy("every user of this machine may read the secrets in .env")
        yield warn("configuration", fact, f"chmod go-rwx {path.resolve()}")
    if hint := zone_hint(settings):
        yield warn("time zone", hint, "TIMEZONE=America/Mexico_City")
    else:
        zone = settings.default_timezone
        now = f"{datetime.now(ZoneInfo(zone)):%H:%M}"
        yield ok("time zone", lazy("{zone}, where it is {time}", zone=zone, time=now))


def check_names(path: Path) -> Iterator[Finding]:
    """Report names of a `.env` file that nearly match one of our settings."""
    written = set[str]()
    with suppress(OSError, UnicodeDecodeError):  # reading the settings has named the fault
        written = _given(path)
    for name in sorted(written - VARIABLES.keys()):
        if meant := difflib.get_close_matches(name, VARIABLES, 3, _ALIKE):
            fact = lazy("{name} is set, which nothing reads", name=name)
            yield warn("configuration", fact, lazy("did you mean {name}?", name=", ".join(meant)))


def _given(path: Path) -> set[str]:
    """Return the names that have a value in a `.env` file."""
    return {name.upper() for name, value in dotenv_values(path, interpolate=False).items() if value}


def check_folder(settings: Settings) -> Iterator[Finding]:
    """Check that the folders of data, database and workspace can be written and have room."""
    folders = [settings.data_dir.absolute()]
    if isinstance(settings.database, Path):
        folders.append(settings.database.absolute().parent)
        yield from _files(settings.database.absolute())
    for folder in dict.fromkeys(folders):
        yield _folder(folder, settings.free_space_mb, "data folder", "DATA_DIR, DATABASE_URL")
    if settings.workspace_dir_setting:
        yield _folder(settings.workspace_dir.absolute(), 0, "workspace", "WORKSPACE_DIR")


def _files(database: Path) -> Iterator[Finding]:
    files = sorted(database.parent.glob(f"{database.name}*"))
    if shut := [file.name for file in files if not os.access(file, os.R_OK | os.W_OK)]:
        values = {"files": ", ".join(shut), "folder": database.parent}
        fact = lazy("{files} in {folder} cannot be read and written by this user", **values)
        yield fail("data folder", fact, f"sudo chown -R {os.getuid()} {database.parent}")
    if any(file.stat().st_mode & stat.S_IROTH for file in files):
        fact = lazy("every user of this machine may read the messages in {folder}", folder=database.parent)
        yield warn("data folder", fact, f"chmod -R go-rwx {database.parent}")


def _folder(folder: Path, least: int, name: str, variables: str) -> Finding:
    existing = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    room = lazy("free at least {n} MB there; all goes on by itself within a minute", n=least or 1)
    try:
        with tempfile.TemporaryFile(dir=existing) as trial:
            trial.write(b"trial")
    except OSError as error:
        values = {"folder": existing, "names": variables}
        cure = lazy("give this user write access to {folder}, or set {names} to another place", **values)
        fact = lazy("{folder} cannot be written: {reason}", folder=folder, reason=error.strerror or error)
        return fail(name, fact, room if is_full(error) else cure)
    disk = Disk(folder, least * MEGABYTE)
    free = disk.free()
    if not disk.has_room_for("traces"):
        values = {"n": free // MEGABYTE, "folder": folder}
        fact = lazy("only {n} MB are free for {folder}: traces and media are not kept", **values)
        if not disk.has_room_for("data"):
            fact = lazy("{fact}, and notes and files are refused", fact=fact)
        return warn(name, fact, room)
    values = {"folder": folder, "n": f"{free / 1024**3:.1f}"}
    if folder.exists():
        return ok(name, lazy("{folder} can be written, {n} GB free", **values))
    return ok(name, lazy("{folder} will be made at the first start, {n} GB free", **values))


def check_database(settings: Settings) -> Iterator[Finding]:
    """Check that the file can be read, has a known schema and is sound."""
    location = settings.database
    try:
        if not engine_of(location).exists():
            yield ok("database", lazy("{path} will be made at the first start", path=shown(location)))
            return
        yield from read_records(location, lambda conn: list(state_of(conn, location)))
    except StoreError as error:
        fact = str(error).partition("; ")[0]
        cure = lazy("let this user read it, restore a backup, or name another database in DATABASE_URL")
        yield fail("database", fact, cure)


def check_alerts(settings: Settings) -> Iterator[Finding]:
    """Report open alerts; those of events that cannot be mended only for some days."""
    try:
        opened = read_records(settings.database, alerts.open_alerts)
    except StoreError:  # the database has a line of its own
        return
    since = time.time() - LATELY_SECONDS
    past = ("turn", "undelivered:")
    found = [one for one in opened if one.last_at >= since or not one.code.startswith(past)]
    for alert in found:
        fact, cure = alert.text, _CURES.get(alert.code.rpartition(":")[2], "")
        if isinstance(fact, LazyText) and "cure" in fact.values:  # of a failed send
            cure = cure or str(fact.values["cure"])
            fact = lazy("sending failed with {detail}", detail=fact.values["detail"])
        if alert.times > 1:
            last = moment(alert.last_at)
            fact = lazy("{fact} ({n} times, last {at})", fact=fact, n=alert.times, at=last)
        yield warn("alert", fact, cure)
    if not found:
        yield ok("alerts", lazy("none is open"))


def check_people(settings: Settings) -> Iterator[Finding]:
    """Report owners, members, frozen people, and whom to let in with which command."""
    try:
        lines = listed_people(settings)
    except StoreError:  # the database has a line of its own
        return
    for variable in ("OWNER_PHONE_NUMBERS", "ALLOWED_PHONE_NUMBERS"):
        for number, cure in sorted(incomplete(settings, getattr(settings, variable.lower())).items()):
            values = {"variable": variable, "number": number}
            fact = lazy("{variable} has {number}, which is no phone number with its country code", **values)
            yield fail("people", fact, cure)
    if not (settings.uses_simulator and settings.simulator == "off"):  # the line about WhatsApp says so
        yield _allowed([line for line in lines if line.realm == "whatsapp"], settings)
    for line in lines:
        if line.frozen:
            cure = lazy(
                "the names are another's now; to delete what is left: {recado} erase {id}", id=line.id
            )
            if line.names:
                cure = lazy("if it is the same person: {recado} people allow {name}", name=line.names[0])
            fact = lazy("{name} is frozen: {reason}", name=_name(line), reason=line.frozen)
            yield warn("people", fact, cure)
    yield from _turned_away(lines, settings)


def _allowed(lines: Sequence[PersonLine], settings: Settings) -> Finding:
    if settings.uses_simulator:
        return ok("people", lazy("everybody in the simulator may talk; its first person is the owner"))
    owners = sum(owns(line, settings) for line in lines)
    others = sum(may_talk(line, settings) for line in lines) - owners
    if not owners:
        fact = lazy("nobody owns this assistant yet")
        cure = lazy(
            "send the code that Setup of the console shows from your WhatsApp, "
            "or set OWNER_PHONE_NUMBERS, or: {recado} people owner PHONE"
        )
        return warn("people", fact, cure)
    cure = lazy("let others in with ALLOWED_PHONE_NUMBERS or: {recado} people allow PHONE")
    fact = lazy("{owners} owners and {others} others may talk", owners=owners, others=others)
    return ok("people", fact, cure)


def _turned_away(lines: Sequence[PersonLine], settings: Settings) -> Iterator[Finding]:
    """Return those who may want in, without the blocked and those who have a line already."""
    settled = {name for line in lines if line.access == "blocked" or line.frozen for name in line.names}
    since = time.time() - LATELY_SECONDS
    found = [
        line
        for line in without_answered(lines, settings)
        if line.access == "turned away"
        and line.realm == settings.realm
        and line.last_at >= since
        and settled.isdisjoint({line.names[0], canonical(line.names[0])})
    ]
    for line in found:
        values = {"name": _name(line), "n": line.messages, "at": moment(line.last_at)}
        fact = lazy("{name} was turned away ({n} times, last {at})", **values)
        yield warn("people", fact, lazy("to let them in: {recado} people allow {name}", name=line.names[0]))


def _name(line: PersonLine) -> str:
    number = ", ".join(line.names) or line.id
    return f"{number} ({line.name})" if line.name else number
