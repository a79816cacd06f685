"""The configuration and the folder that is written to."""

import difflib
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from app.doctor.finding import FAIL, OK, WARN, Finding
from app.settings import Settings

LOW_SPACE = 500 * 1024 * 1024
_ALIKE = 0.85


def check_configuration(settings: Settings) -> Iterator[Finding]:
    """Whether `.env` was read, names that look misspelt, and the time zone."""
    from app.turns.profile import local_timezone

    path = Path(".env")
    read = f"{path.resolve()} is read" if path.is_file() else "no .env here, the environment alone counts"
    yield Finding(OK, "configuration", f"every variable is valid; {read}")
    for written, meant in _misspelt(path):
        yield Finding(
            WARN, "configuration", f".env sets {written}, which nothing reads", f"did you mean {meant}?"
        )
    zone = settings.timezone or local_timezone()
    source = "TIMEZONE" if settings.timezone else "the machine's"
    now = datetime.now(ZoneInfo(zone))
    yield Finding(OK, "time zone", f"{zone} ({source}), where it is {now:%H:%M}")


def check_folder(settings: Settings) -> Iterator[Finding]:
    """Whether the data folder can be written and has room."""
    folder = settings.data_dir.absolute()
    existing = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    try:
        with tempfile.TemporaryFile(dir=existing) as trial:
            trial.write(b"trial")
    except OSError as error:
        cure = f"give this user write access to {existing}, or set DATA_DIR and DATABASE_URL to another place"
        yield Finding(FAIL, "data folder", f"{folder} cannot be written: {error.strerror or error}", cure)
        return
    free = shutil.disk_usage(existing).free
    if free < LOW_SPACE:
        fact = f"only {free // 1024**2} MB are free for {folder}"
        yield Finding(WARN, "data folder", fact, "free at least 500 MB: traces and media stop first")
        return
    state = "can be written" if folder.exists() else "will be made at the first start"
    yield Finding(OK, "data folder", f"{folder} {state}, {free / 1024**3:.1f} GB free")


def _misspelt(path: Path) -> Iterator[tuple[str, str]]:
    """Names in `.env` that are none of ours but nearly: others may belong to skills."""
    if not path.is_file():
        return
    from dotenv import dotenv_values

    known = {str(field.alias or name).upper() for name, field in Settings.model_fields.items()}
    for name in dotenv_values(path, interpolate=False):
        close = difflib.get_close_matches(name.upper(), known, 1, _ALIKE)
        if name.upper() not in known and close:
            yield name, close[0]
