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
from app.doctor.finding import CURES, Finding, fail, ok, warn
from app.settings import SECRET_VARIABLES, Settings
from app.store.disk_space import MEGABYTE, Disk, is_full
from app.turns.profiles import local_timezone

_ALIKE = 0.8
_OURS = ("WHATSAPP_", "OPENAI_", "LLM_", "CLASSIFIER_", "MCP_")


def check_configuration(settings: Settings) -> Iterator[Finding]:
    """Check that `.env` was read and is private, look for misspelt names, and name the time zone."""
    path = Path(".env")
    read = f"{path.resolve()} is read" if path.is_file() else "no .env here, the environment alone counts"
    yield ok("configuration", f"every variable is valid; {read}")
    yield from check_names(path)
    if path.is_file() and path.stat().st_mode & stat.S_IROTH and _given(path).intersection(SECRET_VARIABLES):
        fact = "every user of this machine may read the secrets in .env"
        yield warn("configuration", fact, f"chmod go-rwx {path.resolve()}")
    if hint := zone_hint(settings):
        fact, _, cure = hint.partition("; ")
        yield warn("time zone", fact, cure)
    else:
        zone = settings.timezone or local_timezone()
        yield ok("time zone", f"{zone}, where it is {datetime.now(ZoneInfo(zone)):%H:%M}")


def check_names(path: Path) -> Iterator[Finding]:
    """Report names of a `.env` file and of the environment that nearly match one of our settings."""
    known = {str(field.alias or name).upper() for name, field in Settings.model_fields.items()}
    written = {name.upper() for name in os.environ if name.upper().startswith(_OURS)}
    with suppress(OSError, UnicodeDecodeError):  # reading the settings has named the fault
        written |= _given(path)
    for name in sorted(written - known):
        close = difflib.get_close_matches(name, known, 1, _ALIKE)
        if meant := CURES["names"].get(name) or (close[0] if close else ""):
            yield warn("configuration", f"{name} is set, which nothing reads", f"did you mean {meant}?")


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
        yield _folder(folder, settings.free_space_mb, "data folder", "DATA_DIR and DATABASE_URL")
    if settings.workspace_dir_setting:
        yield _folder(settings.workspace_dir.absolute(), 0, "workspace", "WORKSPACE_DIR")


def _files(database: Path) -> Iterator[Finding]:
    files = sorted(database.parent.glob(f"{database.name}*"))
    if shut := [file.name for file in files if not os.access(file, os.R_OK | os.W_OK)]:
        fact = f"{', '.join(shut)} in {database.parent} cannot be read and written by this user"
        yield fail("data folder", fact, f"give them to it: sudo chown -R {os.getuid()} {database.parent}")
    if any(file.stat().st_mode & stat.S_IROTH for file in files):
        fact = f"every user of this machine may read the messages in {database.parent}"
        yield warn("data folder", fact, f"chmod -R go-rwx {database.parent}")


def _folder(folder: Path, least: int, name: str, variables: str) -> Finding:
    existing = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    room = f"free at least {least or 1} MB there; all goes on by itself within a minute"
    try:
        with tempfile.TemporaryFile(dir=existing) as trial:
            trial.write(b"trial")
    except OSError as error:
        cure = f"give this user write access to {existing}, or set {variables} to another place"
        fact = f"{folder} cannot be written: {error.strerror or error}"
        return fail(name, fact, room if is_full(error) else cure)
    disk = Disk(folder, least * MEGABYTE)
    free = disk.free()
    if not disk.has_room_for("traces"):
        notes = "" if disk.has_room_for("data") else ", and notes and files are refused"
        fact = f"only {free // MEGABYTE} MB are free for {folder}: traces and media are not kept{notes}"
        return warn(name, fact, room)
    state = "can be written" if folder.exists() else "will be made at the first start"
    return ok(name, f"{folder} {state}, {free / 1024**3:.1f} GB free")
