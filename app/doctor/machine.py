"""The configuration and the folder that is written to."""

import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from app.commands.configuration import unreadable_lines, zone_hint
from app.doctor.finding import FAIL, OK, WARN, Finding
from app.settings import Settings

LOW_SPACE = 500 * 1024 * 1024
_ALIKE = 0.8
_OURS = ("WHATSAPP_", "OPENAI_", "LLM_", "CLASSIFIER_", "MCP_")
_OF_OTHERS = {"OPENAI_API_BASE": "OPENAI_BASE_URL", "OPENAI_MODEL": "LLM_MODEL"}


def check_configuration(settings: Settings) -> Iterator[Finding]:
    """Whether `.env` was read, names that look misspelt, and the time zone."""
    path = Path(".env")
    read = f"{path.resolve()} is read" if path.is_file() else "no .env here, the environment alone counts"
    yield Finding(OK, "configuration", f"every variable is valid; {read}")
    for number in unreadable_lines(path):
        fact = f"line {number} of .env cannot be read and is left out"
        yield Finding(WARN, "configuration", fact, "write it as NAME=value")
    for written, meant in _misspelt(path):
        yield Finding(
            WARN, "configuration", f"{written} is set, which nothing reads", f"did you mean {meant}?"
        )
    yield _zone(settings)


def _zone(settings: Settings) -> Finding:
    from app.turns.profile import local_timezone

    hint = zone_hint(settings)
    if hint:
        fact, _, cure = hint.partition("; ")
        return Finding(WARN, "time zone", fact, cure)
    zone = settings.timezone or local_timezone()
    source = "TIMEZONE" if settings.timezone else "the machine's"
    return Finding(OK, "time zone", f"{zone} ({source}), where it is {datetime.now(ZoneInfo(zone)):%H:%M}")


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
    """Names that are none of ours but nearly: in `.env`, and in the environment if they begin like ours."""
    known = {str(field.alias or name).upper() for name, field in Settings.model_fields.items()}
    written = [name for name in os.environ if name.upper().startswith(_OURS)]
    if path.is_file():
        from dotenv import dotenv_values

        given = dotenv_values(path, interpolate=False)
        written += [name for name, value in given.items() if value is not None]
    for name in dict.fromkeys(written):
        close = difflib.get_close_matches(name.upper(), known, 1, _ALIKE)
        meant = _OF_OTHERS.get(name.upper()) or (close[0] if close else "")
        if meant and name.upper() not in known:
            yield name, meant
