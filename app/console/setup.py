"""The page that sets the assistant up: WhatsApp, the model, the owner, a backup."""

import asyncio
import os
import re
import secrets
import sqlite3
import tempfile
import time
import zipfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

import httpx2
from fastapi import Request, Response
from fastapi.responses import FileResponse
from pydantic import SecretStr
from starlette.background import BackgroundTask

from app.channels.access import shown_name
from app.console.site import HEADERS, Site, back, language_of
from app.errors import RecadoError
from app.http.endpoint import url_fault
from app.i18n import say
from app.security import write_private
from app.settings import OWN_FILE, Settings, own_settings
from app.store import ownership, people
from app.store.database import Connection, meta, scalar

WHATSAPP = (
    *("WHATSAPP_ACCESS_TOKEN", "WHATSAPP_PHONE_NUMBER_ID", "WHATSAPP_APP_SECRET"),
    *("WHATSAPP_VERIFY_TOKEN", "PUBLIC_URL", "WHATSAPP_API_URL"),
)
MODEL = ("OPENAI_BASE_URL", "LLM_MODEL", "OPENAI_API_KEY")
PEOPLE = ("ACCESS", "TIMEZONE")
FIND_SECONDS = 1.5
PARTS = {
    "whatsapp": ("WhatsApp", "people"),
    "model": ("model", "voice notes"),
    "machine": ("configuration", "data folder", "database", "sandbox"),
}
_OLLAMAS = ("http://127.0.0.1:11434", "http://host.docker.internal:11434", "http://ollama:11434")
_PLAIN = re.compile(r"[!#%-&(-\[\]-_a-z{-~]{0,2000}")  # what stands between quotes in the file as it is
_FIELDS = {(field.alias or name).upper(): name for name, field in Settings.model_fields.items()}
_KEPT = ("mcp_servers.json", "templates.yaml", "rates.yaml", "skills.json", "knowledge/**/*", "skills/**/*")


def add_setup(site: Site) -> None:
    """Add the page that sets the assistant up."""
    router, assistant, settings = site.router, site.assistant, site.settings
    verify_token = secrets.token_urlsafe(16)

    @router.get("/console/setup")
    async def setup(request: Request) -> Response:
        """Show every step with what is done and what is missing."""
        rules = assistant.access.access_rules(assistant.realm)

        def rows(conn: Connection) -> dict[str, Any]:
            first = "SELECT min(m.at) FROM messages m JOIN conversations c ON c.id = m.conversation_id"
            owners = [people.shown_as(conn, one)[0] for one in people.owners(conn, rules)]
            return {
                "handshake_at": float(meta(conn, "handshake") or 0),
                "first_at": scalar(conn, f"{first} WHERE c.channel = 'whatsapp' AND m.direction = 'in'"),
                "owners": [shown_name(name) for name in owners],
            }

        async def read() -> dict[str, Any]:
            return await site.store.read(rows) | {
                "settings": settings,
                "values": {name: _shown(settings, name) for name in (*WHATSAPP, *MODEL, *PEOPLE)},
                "fixed": _fixed(settings),
                "verify_token": settings.whatsapp_verify_token.get_secret_value() or verify_token,
                "realm": assistant.realm,
            }

        return await site.page(request, "setup.html", read)

    @router.post("/console/setup/save")
    async def save(request: Request) -> Response:
        """Keep settings, and start anew with them."""
        form, fixed = request.state.form, _fixed(settings)
        given = {name: form[name].strip() for name in (*WHATSAPP, *MODEL, *PEOPLE) if name in form}
        given = {name: value for name, value in given.items() if name not in fixed}
        for name, value in list(given.items()):
            if not value and _is_secret(name):  # left as it is
                del given[name]
            _check(name, value)
        kept = own_settings(settings.data_dir) | given
        text = "".join(f"{name}='{value}'\n" for name, value in kept.items() if value)
        await asyncio.to_thread(write_private, settings.data_dir / OWN_FILE, text)
        changes = {
            _FIELDS[name]: SecretStr(value) if _is_secret(name) else value for name, value in given.items()
        }
        request.app.state.restart(settings.model_copy(update=changes))
        return site.render(request, "restarting.html")

    @router.post("/console/setup/check")
    async def check(request: Request) -> Response:
        """Look at some parts as the doctor does, and show what is wrong with its cure."""
        what = request.state.form.get("what", "machine")
        findings = await site.check(*PARTS.get(what, PARTS["machine"]))
        return site.render(request, "checked.html", findings=findings, what=what)

    @router.post("/console/setup/ollama")
    async def ollama(request: Request) -> Response:
        """Look for models of Ollama on this machine."""
        async with httpx2.AsyncClient(timeout=FIND_SECONDS, trust_env=False) as http:
            found = [one for url in _OLLAMAS if (one := await _models(http, url))]
        return site.render(request, "ollama.html", found=found)

    @router.post("/console/setup/owner")
    async def owner(request: Request) -> Response:
        """Show the code that makes an owner of who sends it from their WhatsApp."""
        rules, now = assistant.access.access_rules(assistant.realm), time.time()
        code = await site.store.tx(lambda conn: ownership.offer_ownership(conn, rules, now))
        return site.render(request, "owner.html", code=code)

    @router.post("/console/setup/backup")
    async def backup(request: Request) -> Response:
        """Give out the database and what was installed and written, without our secrets."""
        if not isinstance(settings.database, Path):
            text = say(language_of(request), "The database is PostgreSQL: back it up with pg_dump.")
            raise RecadoError(text)
        path = await asyncio.to_thread(_backup, settings.database, settings.data_dir)
        name = f"recado-{time.strftime('%Y-%m-%d')}.zip"
        end = BackgroundTask(path.unlink, missing_ok=True)
        return FileResponse(path, headers=HEADERS, filename=name, background=end)

    @router.get("/console/setup/{what}")
    async def again(what: str) -> Response:
        """Lead back from a page that a form made."""
        return back("/console/setup")


def _is_secret(name: str) -> bool:
    return Settings.model_fields[_FIELDS[name]].annotation is SecretStr


def _shown(settings: Settings, name: str) -> str:
    """Return a setting as its form shows it: a secret only by whether it is set."""
    value = getattr(settings, _FIELDS[name])
    return ("•" if value.get_secret_value() else "") if isinstance(value, SecretStr) else str(value)


def _fixed(settings: Settings) -> frozenset[str]:
    """Return the settings that the environment or `.env` gives: they come before what is kept here."""
    own, fixed = own_settings(settings.data_dir), set()
    for name in (*WHATSAPP, *MODEL, *PEOPLE):
        value = getattr(settings, _FIELDS[name])
        plain = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        if _FIELDS[name] in settings.model_fields_set and plain and own.get(name) != plain:
            fixed.add(name)
    return frozenset(fixed)


def _check(name: str, value: str) -> None:
    """Raise RecadoError for a value that cannot be kept or would not work."""
    fault = "" if _PLAIN.fullmatch(value) else "it has a space, a quotation mark or a special character in it"
    if value and name in ("PUBLIC_URL", "OPENAI_BASE_URL", "WHATSAPP_API_URL"):
        fault = fault or url_fault(value)
    if name == "ACCESS" and value not in ("listed", "code", "everyone"):
        fault = "it is listed, code or everyone"
    if name == "TIMEZONE" and value and value not in available_timezones():
        fault = "it is no time zone; write America/Santiago or the like"
    if fault:
        raise RecadoError(f"{name}: {fault}")


async def _models(http: httpx2.AsyncClient, url: str) -> tuple[str, list[str]] | None:
    """Return the names of the models that Ollama has at an address, None where it does not answer."""
    try:
        answer = (await http.get(f"{url}/api/tags")).json()
        return url, [str(one["name"]) for one in answer["models"]]
    except (httpx2.HTTPError, ValueError, LookupError, TypeError):
        return None


def _backup(database: Path, data_dir: Path) -> Path:
    """Write a zip file with a whole copy of the database beside the files of the operator. Blocks."""
    handle, name = tempfile.mkstemp(dir=data_dir, prefix=".backup-", suffix=".zip")
    os.close(handle)
    copy = Path(f"{name}.db")
    try:
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(copy, "recado.db")
            for path in (path for pattern in _KEPT for path in data_dir.glob(pattern)):
                with suppress(OSError):
                    if path.is_file() and not path.is_symlink():
                        archive.write(path, path.relative_to(data_dir).as_posix())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    finally:
        copy.unlink(missing_ok=True)
    return Path(name)
