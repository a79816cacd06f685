"""`recado setup`: what the console's Setup does, in a terminal."""

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from app.channels.access import access_rules
from app.cli.database import make_data_folder, read_records
from app.cli.output import command_settings, group, show
from app.cli.people import realm_of
from app.cli.server import RunningServer, ask_or_write, find_server
from app.console import setup as parts
from app.doctor import examine
from app.errors import RecadoError, StoreError
from app.i18n import lazy, said, say
from app.ops.finding import line
from app.settings import Settings
from app.store import ownership, people
from app.store.database import Connection

RESTART_SECONDS = 30.0
LOOK_SECONDS = 1.0
WATCH_SECONDS = 900.0

commands = group()


@commands.command()
def setup() -> None:
    """Set up WhatsApp, the model, the owner and a backup, step by step.

    Each step can be left out. What is written is kept in DATA_DIR/settings.env, as the console keeps it.
    """
    settings = command_settings("ERROR")
    make_data_folder(settings.data_dir)
    language = _language(settings)
    chapters: tuple[tuple[str, Callable[[Settings, str], Settings]], ...] = (
        (say(language, "Connect WhatsApp?"), _whatsapp),
        (say(language, "Connect a model?"), _model),
        (say(language, "Choose the owner, and who may write?"), _owner),
        (say(language, "Save a backup?"), _backup),
    )
    try:
        for title, chapter in chapters:
            if typer.confirm(f"\n{title}", default=True):
                settings = chapter(settings, language)
    except RecadoError as error:
        raise RecadoError(said(error.told, language)) from error
    show("")
    for _, is_done, step in parts.steps(settings, _progress(settings)):
        show(f"[{'x' if is_done else ' '}] {said(step, language)}")


def _language(settings: Settings) -> str:
    """Return the owner's language, else that of this machine."""
    rules = access_rules(settings, realm_of(settings))

    def of_owner(conn: Connection) -> str:
        owners = people.owners(conn, rules)
        return people.language(conn, owners[0]) if owners else ""

    machine = [os.environ.get(name, "")[:2] for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    with suppress(StoreError):  # a database that cannot be read is told of by the steps
        if language := read_records(settings.database, of_owner, none=""):
            return language
    return next(filter(None, machine), "en")


def _whatsapp(settings: Settings, language: str) -> Settings:
    for number, step in enumerate(parts.WHATSAPP_STEPS, 1):
        show(f"{number}. {said(step, language)}")
    names = ("PUBLIC_URL", "WHATSAPP_PHONE_NUMBER_ID", "WHATSAPP_ACCESS_TOKEN", "WHATSAPP_APP_SECRET")
    given = _ask(settings, names, language)
    if not settings.whatsapp_verify_token.get_secret_value():
        given["WHATSAPP_VERIFY_TOKEN"] = secrets.token_urlsafe(16)
    settings = _save(settings, given)
    told = say(
        language, "Write these two into WhatsApp > Configuration > Webhook, and subscribe the field messages:"
    )
    show(f"\n{told}")
    show(f"  {say(language, 'Callback URL')}  {settings.reached_at}/webhook")
    token = said(parts.TITLES["WHATSAPP_VERIFY_TOKEN"], language)
    show(f"  {token}  {settings.whatsapp_verify_token.get_secret_value()}\n")
    _watch(settings, language, "handshake")
    _check(settings, language, "whatsapp")
    return settings


def _watch(settings: Settings, language: str, *awaited: str) -> None:
    """Wait at most a quarter of an hour for steps that others take, and say when each is done."""
    if find_server(settings.data_dir) is None:
        show(
            say(language, "No server runs: start it with {recado} serve, and come back to see what arrives.")
        )
        return
    show(say(language, "Waiting for it; Ctrl-C goes on without."))
    left, until = set(awaited), time.monotonic() + WATCH_SECONDS
    with suppress(KeyboardInterrupt):
        while left and time.monotonic() < until:
            for name, is_done, step in parts.steps(settings, _progress(settings)):
                if is_done and name in left:
                    left.remove(name)
                    show(f"[x] {said(step, language)}")
            time.sleep(LOOK_SECONDS if left else 0)


def _model(settings: Settings, language: str) -> Settings:
    found = [(f"{url}/v1", name) for url, names in asyncio.run(parts.find_ollama()) for name in names]
    for number, (url, name) in enumerate(found, 1):
        show(f"{number}. {name}: {url}")
    number = 0
    if found:
        asked = say(language, "Which of these models of Ollama (0: another one)")
        number = typer.prompt(asked, default=1, type=int)
    if 0 < number <= len(found):
        url, name = found[number - 1]
        given = {"OPENAI_BASE_URL": url, "LLM_MODEL": name, "OPENAI_API_KEY": "ollama"}
    else:
        given = _ask(settings, ("OPENAI_BASE_URL", "LLM_MODEL", "OPENAI_API_KEY"), language)
    settings = _save(settings, given)
    _check(settings, language, "model")
    return settings


def _owner(settings: Settings, language: str) -> Settings:
    realm, now = realm_of(settings), time.time()

    def offer(conn: Connection) -> dict[str, str]:
        rules = access_rules(settings, realm, ownership.hash_key(conn))
        return {"code": ownership.offer_ownership(conn, rules, now) or ""}

    if realm == "whatsapp" and (code := ask_or_write(settings, "setup/owner", {}, offer)["code"]):
        show(say(language, "Send this code to the assistant from your WhatsApp, within an hour:"))
        show(f"\n{code}\n")
        _watch(settings, language, "message", "owner")
    elif realm == "simulator":
        show(say(language, "In the simulator its first person is the owner."))
    return _save(settings, _ask(settings, ("ACCESS", "TIMEZONE"), language))


def _backup(settings: Settings, language: str) -> Settings:
    os.umask(0o077)  # for the copy that a move to another disk makes
    made = parts.make_backup(settings)
    try:
        usual = f"recado-{time.strftime('%Y-%m-%d')}.zip"
        target = Path(typer.prompt(say(language, "File"), default=usual)).expanduser()
        if target.exists():
            raise RecadoError(lazy("{path} is there already: choose another name", path=target))
        shutil.move(made, target)
    except OSError as error:
        why = error.strerror or str(error)
        raise RecadoError(lazy("the backup cannot be written there: {reason}", reason=why)) from error
    finally:
        made.unlink(missing_ok=True)
    show(
        say(
            language,
            "Saved {path}. Messages of people and your mcp_servers.json are in it: keep it safe.",
            path=target,
        )
    )
    return settings


def _ask(settings: Settings, names: Sequence[str], language: str) -> dict[str, str]:
    given, fixed = {}, parts.fixed(settings)
    for name in names:
        title, is_hidden = said(parts.TITLES[name], language), parts.is_secret(name)
        now = parts.shown_value(settings, name)
        if name in fixed:
            told = say(language, "Set in the environment as {name}: it is changed there.", name=name)
            show(f"{title}: {told}")
            continue
        if name == "ACCESS":
            title += " (listed, code, everyone)"
        if is_hidden and now:
            title += f" ({say(language, 'is set; empty keeps it')})"
        given[name] = typer.prompt(
            title,
            default="" if is_hidden else now,
            hide_input=is_hidden,
            show_default=bool(now) and not is_hidden,
            value_proc=partial(_checked, name, language),
        )
    return given


def _checked(name: str, language: str, value: str) -> str:
    try:
        parts.check_value(name, value.strip())
    except RecadoError as error:
        raise typer.BadParameter(said(error.told, language)) from error  # it is asked again
    return value


def _save(settings: Settings, given: dict[str, str]) -> Settings:
    changed, server = parts.keep(settings, given), find_server(settings.data_dir)
    if server is not None:
        server.ask("setup/save", {"given": given})
        _wait_for_another(server, settings)
    return changed


def _wait_for_another(server: RunningServer, settings: Settings) -> None:
    until = time.monotonic() + RESTART_SECONDS
    while time.monotonic() < until:
        with suppress(RecadoError):  # it is just starting
            now = find_server(settings.data_dir)
            if now is not None and now.token != server.token:
                return
        time.sleep(0.2)
    raise RecadoError(lazy("the server did not start anew; its log says why"))


def _check(settings: Settings, language: str, what: str) -> None:
    for one in examine(settings, parts.PARTS[what]):
        show(line(replace(one, fact=said(one.fact, language), cure=said(one.cure, language))))


def _progress(settings: Settings) -> dict[str, Any]:
    rules = access_rules(settings, realm_of(settings))
    none: dict[str, Any] = {"handshake": False, "message": False, "owners": []}
    return read_records(settings.database, lambda conn: parts.progress(conn, rules), none=none)
