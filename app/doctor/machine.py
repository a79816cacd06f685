"""Checks of the configuration and of the data folder."""

import difflib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from dotenv import dotenv_values

from app.cli.settings import zone_hint
from app.i18n import lazy
from app.ops.finding import Finding, fail, ok, warn
from app.settings import SECRET_VARIABLES, Settings
from app.store.disk_space import MEGABYTE, Disk, is_full
from app.turns.profiles import local_timezone

_ALIKE = 0.8
# What other programs call settings of ours.
_NAMES = {
    "OPENAI_API_BASE": "OPENAI_BASE_URL",
    "OPENAI_MODEL": "LLM_MODEL",
    "WHATSAPP_TOKEN": "WHATSAPP_ACCESS_TOKEN",
    "WHATSAPP_PHONE_ID": "WHATSAPP_PHONE_NUMBER_ID",
    "VERIFY_TOKEN": "WHATSAPP_VERIFY_TOKEN",
    "APP_SECRET": "WHATSAPP_APP_SECRET",
}
_OURS = ("WHATSAPP_", "OPENAI_", "LLM_", "CLASSIFIER_", "MCP_")


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
        zone = settings.timezone or local_timezone()
        now = f"{datetime.now(ZoneInfo(zone)):%H:%M}"
        yield ok("time zone", lazy("{zone}, where it is {time}", zone=zone, time=now))


def check_names(path: Path) -> Iterator[Finding]:
    """Report names of a `.env` file and of the environment that nearly match one of our settings."""
    known = {str(field.alias or name).upper() for name, field in Settings.model_fields.items()}
    written = {name.upper() for name in os.environ if name.upper().startswith(_OURS)}
    with suppress(OSError, UnicodeDecodeError):  # reading the settings has named the fault
        written |= _given(path)
    for name in sorted(written - known):
        close = difflib.get_close_matches(name, known, 1, _ALIKE)
        if meant := _NAMES.get(name) or (close[0] if close else ""):
            fact = lazy("{name} is set, which nothing reads", name=name)
            yield warn("configuration", fact, lazy("did you mean {name}?", name=meant))


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
