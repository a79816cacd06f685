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

from app.cli.settings import zone_hint
from app.doctor.finding import Finding, fail, ok, warn
from app.settings import SECRET_VARIABLES, Settings
from app.store.billing import RATES_FILE, read_rates
from app.store.disk_space import MEGABYTE, Disk, is_full

_ALIKE = 0.8
_OURS = ("WHATSAPP_", "OPENAI_", "LLM_", "CLASSIFIER_", "MCP_")
_OF_OTHERS = {
    "OPENAI_API_BASE": "OPENAI_BASE_URL",
    "OPENAI_MODEL": "LLM_MODEL",
    "WHATSAPP_TOKEN": "WHATSAPP_ACCESS_TOKEN",
    "WHATSAPP_PHONE_ID": "WHATSAPP_PHONE_NUMBER_ID",
    "VERIFY_TOKEN": "WHATSAPP_VERIFY_TOKEN",
    "APP_SECRET": "WHATSAPP_APP_SECRET",
}


def check_configuration(settings: Settings) -> Iterator[Finding]:
    """Check that `.env` was read, look for misspelt names, and name the time zone."""
    path = Path(".env")
    read = f"{path.resolve()} is read" if path.is_file() else "no .env here, the environment alone counts"
    yield ok("configuration", f"every variable is valid; {read}")
    yield from check_names(path)
    yield from _open_to_others(settings, path)
    yield from _few_rates(settings)
    yield _zone(settings)


def check_names(path: Path) -> Iterator[Finding]:
    """Report names of a `.env` file and of the environment that look misspelt."""
    for written, meant in _misspelt(path):
        yield warn("configuration", f"{written} is set, which nothing reads", f"did you mean {meant}?")


def _open_to_others(settings: Settings, path: Path) -> Iterator[Finding]:
    """Report secrets that every user of the machine may read."""
    if path.is_file() and path.stat().st_mode & stat.S_IROTH and _given(path).intersection(SECRET_VARIABLES):
        fact = "every user of this machine may read the secrets in .env"
        yield warn("configuration", fact, f"chmod go-rwx {path.resolve()}")


def _few_rates(settings: Settings) -> Iterator[Finding]:
    """Report a budget in money that is counted by the few rates of the release."""
    if not settings.monthly_message_budget.currency or (settings.data_dir / RATES_FILE).is_file():
        return
    known = sorted({rate.country for rate in read_rates(settings.data_dir).rates})
    fact = (
        f"MONTHLY_MESSAGE_BUDGET is money, and rates are known for {', '.join(known)} only: "
        "messages to other countries count as the dearest of them"
    )
    cure = f"write the rates of the people's countries into {settings.data_dir / RATES_FILE}"
    yield warn("configuration", fact, cure)


def _given(path: Path) -> set[str]:
    """Return the names that have a value in a `.env` file."""
    from dotenv import dotenv_values

    return {name.upper() for name, value in dotenv_values(path, interpolate=False).items() if value}


def _zone(settings: Settings) -> Finding:
    from app.turns.profiles import local_timezone

    hint = zone_hint(settings)
    if hint:
        fact, _, cure = hint.partition("; ")
        return warn("time zone", fact, cure)
    zone = settings.timezone or local_timezone()
    source = "TIMEZONE" if settings.timezone else "the machine's"
    return ok("time zone", f"{zone} ({source}), where it is {datetime.now(ZoneInfo(zone)):%H:%M}")


def check_folder(settings: Settings) -> Iterator[Finding]:
    """Check that the folders of data, database and workspace can be written and have room."""
    database = settings.database_path.absolute()
    yield from _ownership(database)
    for folder in dict.fromkeys((settings.data_dir.absolute(), database.parent)):
        yield from _folder(folder, settings.free_space_mb, "data folder", "DATA_DIR and DATABASE_URL")
    if settings.workspace_dir_setting:
        yield from _folder(settings.workspace_dir.absolute(), 0, "workspace", "WORKSPACE_DIR")


def _folder(folder: Path, least: int, name: str, variables: str) -> Iterator[Finding]:
    existing = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    room = f"free at least {least or 1} MB there; all goes on by itself within a minute"
    try:
        with tempfile.TemporaryFile(dir=existing) as trial:
            trial.write(b"trial")
    except OSError as error:
        cure = f"give this user write access to {existing}, or set {variables} to another place"
        fact = f"{folder} cannot be written: {error.strerror or error}"
        yield fail(name, fact, room if is_full(error) else cure)
        return
    disk = Disk(folder, least * MEGABYTE)
    free = disk.free()
    if not disk.has_room_for("traces"):
        notes = "" if disk.has_room_for("data") else ", and notes and files are refused"
        fact = f"only {free // MEGABYTE} MB are free for {folder}: traces and media are not kept{notes}"
        yield warn(name, fact, room)
        return
    state = "can be written" if folder.exists() else "will be made at the first start"
    yield ok(name, f"{folder} {state}, {free / 1024**3:.1f} GB free")


def _ownership(database: Path) -> Iterator[Finding]:
    """Report files left by an earlier start as another user, and files that everybody may read."""
    folder = database.parent
    files = sorted(folder.glob(f"{database.name}*"))
    shut = [file.name for file in files if not os.access(file, os.R_OK | os.W_OK)]
    if shut:
        fact = f"{', '.join(shut)} in {folder} cannot be read and written by this user"
        yield fail("data folder", fact, f"give them to it: sudo chown -R {os.getuid()} {folder}")
    if any(file.stat().st_mode & stat.S_IROTH for file in files):
        fact = f"every user of this machine may read the messages in {folder}"
        yield warn("data folder", fact, f"chmod -R go-rwx {folder}")


def _misspelt(path: Path) -> Iterator[tuple[str, str]]:
    """Return names that nearly match one of our settings, in `.env` and in the environment."""
    known = {str(field.alias or name).upper() for name, field in Settings.model_fields.items()}
    from dotenv import dotenv_values

    written = [name for name in os.environ if name.upper().startswith(_OURS)]
    with suppress(OSError, UnicodeDecodeError):  # reading the settings has named the fault
        given = dotenv_values(path, interpolate=False)
        written += [name for name, value in given.items() if value is not None]
    for name in dict.fromkeys(written):
        close = difflib.get_close_matches(name.upper(), known, 1, _ALIKE)
        meant = _OF_OTHERS.get(name.upper()) or (close[0] if close else "")
        if meant and name.upper() not in known:
            yield name, meant
