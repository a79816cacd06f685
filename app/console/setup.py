"""The page that sets the assistant up, and its parts, which `recado setup` uses too."""

import asyncio
import os
import re
import secrets
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import available_timezones

import httpx2
from fastapi import Request, Response
from fastapi.responses import FileResponse
from pydantic import SecretStr
from starlette.background import BackgroundTask

from app.channels.access import shown_name
from app.console.site import HEADERS, Fields, Site, Values, back
from app.errors import RecadoError
from app.http.endpoint import url_fault
from app.i18n import lazy
from app.security import write_private
from app.settings import OWN_FILE, VARIABLES, Settings, own_settings
from app.store import people
from app.store.database import Connection, exists, meta
from app.store.ownership import AccessRules

TITLES = {
    "PUBLIC_URL": lazy("The https address at which the internet reaches this server"),
    "WHATSAPP_PHONE_NUMBER_ID": lazy("Id of the phone number"),
    "WHATSAPP_ACCESS_TOKEN": lazy("Access token"),
    "WHATSAPP_APP_SECRET": lazy("App secret"),
    "WHATSAPP_VERIFY_TOKEN": lazy("Verify token"),
    "WHATSAPP_API_URL": lazy("Address of the Graph API"),
    "OPENAI_BASE_URL": lazy("Address of the model's server"),
    "LLM_MODEL": lazy("Name of the model"),
    "OPENAI_API_KEY": lazy("Key, where the server wants one"),
    "ACCESS": lazy("Who may write"),
    "TIMEZONE": lazy("Time zone"),
}
WHATSAPP_STEPS = (
    lazy("At developers.facebook.com make an app of the kind Business, and add WhatsApp to it."),
    lazy("API Setup shows the id of the phone number: copy it here."),
    lazy("App settings > Basic shows the app secret: copy it here."),
    lazy(
        "Business settings > Users > System users > Generate token, without expiry, with "
        "whatsapp_business_messaging and whatsapp_business_management: copy it here."
    ),
)
FIND_SECONDS = 1.5
PARTS = {
    "whatsapp": ("WhatsApp", "people"),
    "model": ("model", "voice notes"),
    "machine": ("configuration", "data folder", "database", "sandbox"),
}
_OLLAMAS = ("http://127.0.0.1:11434", "http://host.docker.internal:11434", "http://ollama:11434")
_PLAIN = re.compile(r"[!#%-&(-\[\]-_a-z{-~]{0,2000}")  # what stands between quotes in the file as it is
_SENT_TO = {"WHATSAPP_API_URL": "WHATSAPP_ACCESS_TOKEN", "OPENAI_BASE_URL": "OPENAI_API_KEY"}
_KEPT = ("mcp_servers.json", "templates.yaml", "rates.yaml", "skills.json", "knowledge/**/*", "skills/**/*")


def add_setup(site: Site) -> None:
    """Add the page that sets the assistant up."""
    router, assistant, settings = site.router, site.assistant, site.settings
    verify_token = secrets.token_urlsafe(16)

    @site.page("/console/setup", "setup.html")
    async def setup(request: Request) -> Values:
        """Return every step with what is done and what is missing."""
        rules = assistant.access.access_rules(assistant.realm)
        return {
            "steps": steps(settings, await site.store.read(lambda conn: progress(conn, rules))),
            "settings": settings,
            "titles": TITLES,
            "whatsapp_steps": WHATSAPP_STEPS,
            "values": {name: shown_value(settings, name) for name in TITLES},
            "fixed": fixed(settings),
            "verify_token": settings.whatsapp_verify_token.get_secret_value() or verify_token,
            "realm": assistant.realm,
        }

    @router.post("/console/setup/save")
    async def save(request: Request, form: Fields) -> Response:
        request.state.subject = " ".join(name for name in TITLES if name in form)
        request.app.state.restart(await asyncio.to_thread(keep, settings, form))
        return site.render(request, "restarting.html")

    @router.post("/console/setup/check")
    async def check(request: Request, form: Fields) -> Response:
        """Look at some parts as the doctor does, and show what is wrong with its cure."""
        what = form.get("what", "machine")
        findings = await site.check(*PARTS.get(what, PARTS["machine"]))
        return site.render(request, "checked.html", findings=findings, what=what)

    @router.post("/console/setup/ollama")
    async def ollama(request: Request) -> Response:
        found = await find_ollama()
        return site.render(request, "ollama.html", found=found)

    @router.post("/console/setup/owner")
    async def owner(request: Request) -> Response:
        """Show the code that makes an owner of who sends it from their WhatsApp."""
        return site.render(request, "owner.html", code=await assistant.access.owner_code())

    @router.post("/console/setup/backup")
    async def backup(request: Request) -> Response:
        """Give out the database and what was installed and written, without our secrets."""
        path = await asyncio.to_thread(make_backup, settings)
        name = f"recado-{time.strftime('%Y-%m-%d')}.zip"
        end = BackgroundTask(path.unlink, missing_ok=True)
        return FileResponse(path, headers=HEADERS, filename=name, background=end)

    @router.get("/console/setup/{what}")
    async def again(what: str) -> Response:
        """Lead back from a page that a form made."""
        return back("/console/setup")


def progress(conn: Connection, rules: AccessRules) -> dict[str, Any]:
    """Return what arrived from Meta, and the names of the owners."""
    first = "SELECT 1 FROM messages m JOIN conversations c ON c.id = m.conversation_id"
    owners = [people.shown_as(conn, one)[0] for one in people.owners(conn, rules)]
    return {
        "handshake": float(meta(conn, "handshake") or 0) > 0,
        "message": exists(conn, f"{first} WHERE c.channel = 'whatsapp' AND m.direction = 'in' LIMIT 1"),
        "owners": [shown_name(name) for name in owners],
    }


def steps(settings: Settings, made: Mapping[str, Any]) -> list[tuple[str, bool, str]]:
    """Return each step with whether it is done, and its name; `made` is the progress."""
    names = ", ".join(made["owners"])
    owned = lazy("Owners: {names}", names=names) if names else lazy("Somebody owns this assistant")
    return [
        ("whatsapp", settings.is_connected, lazy("WhatsApp's four values are here")),
        ("handshake", made["handshake"], lazy("Meta's handshake arrived")),
        ("message", made["message"], lazy("The first message arrived")),
        ("model", settings.has_model, lazy("A model is connected")),
        ("owner", bool(names), owned),
    ]


def keep(settings: Settings, given: Mapping[str, str]) -> Settings:
    """Keep settings in DATA_DIR; return those to start anew with. Blocks. Raises RecadoError.

    An empty secret stays as it is, and so does what the environment or `.env` gives. A secret that is kept is
    sent to no other host than the one that it was given for.
    """
    set_there = fixed(settings)
    written = {name: given[name].strip() for name in TITLES if name in given and name not in set_there}
    written = {name: value for name, value in written.items() if value or not is_secret(name)}
    for name, value in written.items():
        check_value(name, value)
    for name, secret in _SENT_TO.items():
        before = shown_value(settings, name)
        is_moved = urlsplit(written.get(name, before))[:2] != urlsplit(before)[:2]
        if is_moved and shown_value(settings, secret) and secret not in written:
            raise RecadoError(
                lazy("{name} changed: write {secret} anew, it is sent there", name=name, secret=secret),
                field=secret,
            )
    kept = own_settings(settings.data_dir) | written
    text = "".join(f"{name}='{value}'\n" for name, value in kept.items() if value)
    write_private(settings.data_dir / OWN_FILE, text)
    changes = {VARIABLES[name]: SecretStr(one) if is_secret(name) else one for name, one in written.items()}
    return settings.model_copy(update=changes)


def is_secret(name: str) -> bool:
    return Settings.model_fields[VARIABLES[name]].annotation is SecretStr


def shown_value(settings: Settings, name: str) -> str:
    """Return a setting as its form shows it: a secret only by whether it is set."""
    value = _value(settings, name)
    return "•" if value and is_secret(name) else value


def _value(settings: Settings, name: str) -> str:
    value = getattr(settings, VARIABLES[name])
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def fixed(settings: Settings) -> frozenset[str]:
    """Return the settings that the environment or `.env` gives: they come before what is kept here."""
    own = own_settings(settings.data_dir)
    given = {name: _value(settings, name) for name in TITLES if VARIABLES[name] in settings.model_fields_set}
    return frozenset(name for name, value in given.items() if value and own.get(name) != value)


def check_value(name: str, value: str) -> None:
    """Raise RecadoError for a value that cannot be kept or would not work."""
    fault = ""
    if not _PLAIN.fullmatch(value):
        fault = lazy("it has a space, a quotation mark or a special character in it")
    elif value and name in ("PUBLIC_URL", "OPENAI_BASE_URL", "WHATSAPP_API_URL"):
        fault = url_fault(value)
    elif name == "ACCESS" and value not in ("listed", "code", "everyone"):
        fault = lazy("it is listed, code or everyone")
    elif name == "TIMEZONE" and value and value not in available_timezones():
        fault = lazy("it is no time zone; write America/Santiago or the like")
    if fault:
        raise RecadoError(lazy("{name}: {fault}", name=name, fault=fault), field=name)


async def find_ollama() -> list[tuple[str, list[str]]]:
    """Return the addresses on this machine at which Ollama answers, each with the names of its models."""
    found = []
    async with httpx2.AsyncClient(timeout=FIND_SECONDS, trust_env=False) as http:
        for url in _OLLAMAS:
            with suppress(httpx2.HTTPError, ValueError, LookupError, TypeError):  # it is not there
                answer = (await http.get(f"{url}/api/tags")).json()
                found.append((url, [str(one["name"]) for one in answer["models"]]))
    return found


def make_backup(settings: Settings) -> Path:
    """Return a zip file with the whole database beside the files of the operator, without our secrets.

    Blocks. Raises RecadoError where the database is no file.
    """
    database, data_dir = settings.database, settings.data_dir
    if not isinstance(database, Path):
        raise RecadoError(lazy("The database is PostgreSQL: back it up with pg_dump."))
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
