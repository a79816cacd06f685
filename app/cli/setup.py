"""`recado setup`: what the console's Setup does, in a terminal."""

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
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
from app.errors import RecadoError
from app.ops.finding import line
from app.settings import Settings
from app.store import ownership
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
    chapters: tuple[tuple[str, Callable[[Settings], Settings]], ...] = (
        ("Connect WhatsApp", _whatsapp),
        ("Connect a model", _model),
        ("Choose the owner, and who may write", _owner),
        ("Save a backup", _backup),
    )
    for title, chapter in chapters:
        if typer.confirm(f"\n{title}?", default=True):
            settings = chapter(settings)
    show("")
    for _, is_done, step in parts.steps(settings, _progress(settings)):
        show(f"[{'x' if is_done else ' '}] {step}")


def _whatsapp(settings: Settings) -> Settings:
    for number, step in enumerate(parts.WHATSAPP_STEPS, 1):
        show(f"{number}. {step}")
    names = ("PUBLIC_URL", "WHATSAPP_PHONE_NUMBER_ID", "WHATSAPP_ACCESS_TOKEN", "WHATSAPP_APP_SECRET")
    given = _ask(settings, names)
    if not settings.whatsapp_verify_token.get_secret_value():
        given["WHATSAPP_VERIFY_TOKEN"] = secrets.token_urlsafe(16)
    settings = _save(settings, given)
    show("\nWrite these two into WhatsApp > Configuration > Webhook, and subscribe the field messages:")
    show(f"  Callback URL  {settings.reached_at}/webhook")
    show(f"  Verify token  {settings.whatsapp_verify_token.get_secret_value()}\n")
    _watch(settings, "handshake")
    _check(settings, "whatsapp")
    return settings


def _watch(settings: Settings, *awaited: str) -> None:
    """Wait at most a quarter of an hour for steps that others take, and say when each is done."""
    if find_server(settings.data_dir) is None:
        show("No server runs: start it with recado serve, and come back to see what arrives.")
        return
    show("Waiting for it; Ctrl-C goes on without.")
    left, until = set(awaited), time.monotonic() + WATCH_SECONDS
    with suppress(KeyboardInterrupt):
        while left and time.monotonic() < until:
            for name, is_done, step in parts.steps(settings, _progress(settings)):
                if is_done and name in left:
                    left.remove(name)
                    show(f"[x] {step}")
            time.sleep(LOOK_SECONDS if left else 0)


def _model(settings: Settings) -> Settings:
    found = [(f"{url}/v1", name) for url, names in asyncio.run(parts.find_ollama()) for name in names]
    for number, (url, name) in enumerate(found, 1):
        show(f"{number}. {name} at {url}")
    number = 0
    if found:
        number = typer.prompt("Which of these models of Ollama (0: another one)", default=1, type=int)
    if 0 < number <= len(found):
        url, name = found[number - 1]
        settings = _save(settings, {"OPENAI_BASE_URL": url, "LLM_MODEL": name, "OPENAI_API_KEY": "ollama"})
    else:
        settings = _save(settings, _ask(settings, ("OPENAI_BASE_URL", "LLM_MODEL", "OPENAI_API_KEY")))
    _check(settings, "model")
    return settings


def _owner(settings: Settings) -> Settings:
    realm, now = realm_of(settings), time.time()

    def offer(conn: Connection) -> dict[str, str]:
        rules = access_rules(settings, realm, ownership.hash_key(conn))
        return {"code": ownership.offer_ownership(conn, rules, now) or ""}

    if realm == "whatsapp" and (code := ask_or_write(settings, "setup/owner", {}, offer)["code"]):
        show(f"{code}\n\nWho sends this code to the assistant from their WhatsApp owns it.")
        _watch(settings, "message", "owner")
    elif realm == "simulator":
        show("In the simulator its first person is the owner.")
    return _save(settings, _ask(settings, ("ACCESS", "TIMEZONE")))


def _backup(settings: Settings) -> Settings:
    os.umask(0o077)  # for the copy that a move to another disk makes
    made = parts.make_backup(settings)
    try:
        target = Path(typer.prompt("File", default=f"recado-{time.strftime('%Y-%m-%d')}.zip")).expanduser()
        if target.exists():
            raise RecadoError(f"{target} is there already: choose another name")
        shutil.move(made, target)
    except OSError as error:
        raise RecadoError(f"the backup cannot be written there: {error.strerror or error}") from error
    finally:
        made.unlink(missing_ok=True)
    show(f"Saved {target}. Messages of people and your mcp_servers.json are in it: keep it safe.")
    return settings


def _ask(settings: Settings, names: Sequence[str]) -> dict[str, str]:
    given, fixed = {}, parts.fixed(settings)
    for name in names:
        title, is_hidden = str(parts.TITLES[name]), parts.is_secret(name)
        now = parts.shown_value(settings, name)
        if name in fixed:
            show(f"{title}: set in the environment as {name}, and changed there")
            continue
        if name == "ACCESS":
            title += " (listed, code or everyone)"
        if is_hidden and now:
            title += " (is set; leave empty to keep it)"
        given[name] = typer.prompt(
            title,
            default="" if is_hidden else now,
            hide_input=is_hidden,
            show_default=bool(now) and not is_hidden,
            value_proc=partial(_checked, name),
        )
    return given


def _checked(name: str, value: str) -> str:
    try:
        parts.check_value(name, value.strip())
    except RecadoError as error:
        raise typer.BadParameter(str(error)) from error  # it is asked again
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
    raise RecadoError("the server did not start anew; its log says why")


def _check(settings: Settings, what: str) -> None:
    for finding in examine(settings, parts.PARTS[what]):
        show(line(finding))


def _progress(settings: Settings) -> dict[str, Any]:
    rules = access_rules(settings, realm_of(settings))
    none: dict[str, Any] = {"handshake": False, "message": False, "owners": []}
    return read_records(settings.database, lambda conn: parts.progress(conn, rules), none=none)
