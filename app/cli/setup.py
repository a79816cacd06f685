"""`recado setup`: what the console's Setup does, in a terminal."""

import asyncio
import os
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from app.channels.access import access_rules
from app.cli.database import make_data_folder, read_records
from app.cli.output import command_settings, group, show
from app.cli.server import ask_or_write, find_server
from app.console import setup as parts
from app.doctor import examine
from app.errors import RecadoError, StoreError
from app.i18n import lazy, said
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
    guide = Guide(settings)
    try:
        guide.run()
    except RecadoError as error:
        raise RecadoError(guide.said(error.told)) from error


class Guide:
    """Leads through the steps in the language of the owner; `settings` are as they were kept last."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._language = _language(settings)

    def said(self, text: object) -> str:
        return said(text, self._language)

    def run(self) -> None:
        """Offer each chapter, then show what is done."""
        for title, chapter in (
            (lazy("Connect WhatsApp?"), self._whatsapp),
            (lazy("Connect a model?"), self._model),
            (lazy("Choose the owner, and who may write?"), self._owner),
            (lazy("Save a backup?"), self._backup),
        ):
            if typer.confirm(f"\n{self.said(title)}", default=True):
                chapter()
        show("")
        for _, is_done, step in self._steps():
            show(f"[{'x' if is_done else ' '}] {self.said(step)}")

    def _steps(self) -> list[tuple[str, bool, str]]:
        rules = access_rules(self.settings, self.settings.realm)
        none: dict[str, Any] = {"handshake": False, "message": False, "owners": []}
        made = read_records(self.settings.database, lambda conn: parts.progress(conn, rules), none=none)
        return parts.steps(self.settings, made)

    def _whatsapp(self) -> None:
        for number, step in enumerate(parts.WHATSAPP_STEPS, 1):
            show(f"{number}. {self.said(step)}")
        names = ("PUBLIC_URL", "WHATSAPP_PHONE_NUMBER_ID", "WHATSAPP_ACCESS_TOKEN", "WHATSAPP_APP_SECRET")
        given = self._ask(*names)
        if not self.settings.whatsapp_verify_token.get_secret_value():
            given["WHATSAPP_VERIFY_TOKEN"] = secrets.token_urlsafe(16)
        self._save(given)
        told = lazy(
            "Write these two into WhatsApp > Configuration > Webhook, and subscribe the field messages:"
        )
        show(f"\n{self.said(told)}")
        show(f"  {self.said(lazy('Callback URL'))}  {self.settings.reached_at}/webhook")
        token = self.said(parts.TITLES["WHATSAPP_VERIFY_TOKEN"])
        show(f"  {token}  {self.settings.whatsapp_verify_token.get_secret_value()}\n")
        self._watch("handshake")
        self._check("whatsapp")

    def _model(self) -> None:
        found = [(f"{url}/v1", name) for url, names in asyncio.run(parts.find_ollama()) for name in names]
        for number, (url, name) in enumerate(found, 1):
            show(f"{number}. {name}: {url}")
        number = 0
        if found:
            asked = self.said(lazy("Which of these models of Ollama (0: another one)"))
            number = typer.prompt(asked, default=1, type=int)
        if 0 < number <= len(found):
            url, name = found[number - 1]
            self._save({"OPENAI_BASE_URL": url, "LLM_MODEL": name, "OPENAI_API_KEY": "ollama"})
        else:
            self._save(self._ask("OPENAI_BASE_URL", "LLM_MODEL", "OPENAI_API_KEY"))
        self._check("model")

    def _owner(self) -> None:
        settings, now = self.settings, time.time()

        def offer(conn: Connection) -> dict[str, str]:
            rules = access_rules(settings, settings.realm, ownership.hash_key(conn))
            return {"code": ownership.offer_ownership(conn, rules, now) or ""}

        if settings.uses_simulator:
            show(self.said(lazy("In the simulator its first person is the owner.")))
        elif code := ask_or_write(settings, "setup/owner", {}, offer)["code"]:
            show(self.said(lazy("Send this code to the assistant from your WhatsApp, within an hour:")))
            show(f"\n{code}\n")
            self._watch("message", "owner")
        self._save(self._ask("ACCESS", "TIMEZONE"))

    def _backup(self) -> None:
        os.umask(0o077)  # for the copy that a move to another disk makes
        made = parts.make_backup(self.settings)
        try:
            usual = f"recado-{time.strftime('%Y-%m-%d')}.zip"
            target = Path(typer.prompt(self.said(lazy("File")), default=usual)).expanduser()
            if target.exists():
                raise RecadoError(lazy("{path} is there already: choose another name", path=target))
            shutil.move(made, target)
        except OSError as error:
            why = error.strerror or str(error)
            raise RecadoError(lazy("the backup cannot be written there: {reason}", reason=why)) from error
        finally:
            made.unlink(missing_ok=True)
        told = lazy(
            "Saved {path}. Messages of people and your mcp_servers.json are in it: keep it safe.", path=target
        )
        show(self.said(told))

    def _watch(self, *awaited: str) -> None:
        """Wait at most a quarter of an hour for steps that others take, and say when each is done."""
        if find_server(self.settings.data_dir) is None:
            told = lazy("No server runs: start it with {recado} serve, and come back to see what arrives.")
            show(self.said(told))
            return
        show(self.said(lazy("Waiting for it; Ctrl-C goes on without.")))
        left, until = set(awaited), time.monotonic() + WATCH_SECONDS
        with suppress(KeyboardInterrupt):
            while left and time.monotonic() < until:
                for name, is_done, step in self._steps():
                    if is_done and name in left:
                        left.remove(name)
                        show(f"[x] {self.said(step)}")
                time.sleep(LOOK_SECONDS if left else 0)

    def _check(self, what: str) -> None:
        for one in examine(self.settings, parts.PARTS[what]):
            show(str(replace(one, fact=self.said(one.fact), cure=self.said(one.cure))))

    def _ask(self, *names: str) -> dict[str, str]:
        given, fixed = {}, parts.fixed(self.settings)
        for name in names:
            title, is_hidden = self.said(parts.TITLES[name]), parts.is_secret(name)
            now = parts.shown_value(self.settings, name)
            if name in fixed:
                told = lazy("Set in the environment as {name}: it is changed there.", name=name)
                show(f"{title}: {self.said(told)}")
                continue
            if name == "ACCESS":
                title += " (listed, code, everyone)"
            if is_hidden and now:
                title += f" ({self.said(lazy('is set; empty keeps it'))})"
            given[name] = typer.prompt(
                title,
                default="" if is_hidden else now,
                hide_input=is_hidden,
                show_default=bool(now) and not is_hidden,
                value_proc=partial(self._checked, name),
            )
        return given

    def _checked(self, name: str, value: str) -> str:
        try:
            parts.check_value(name, value.strip())
        except RecadoError as error:
            raise typer.BadParameter(self.said(error.told)) from error  # it is asked again
        return value

    def _save(self, given: dict[str, str]) -> None:
        """Keep settings, and wait until a server that runs has started anew with them."""
        data_dir, before = self.settings.data_dir, find_server(self.settings.data_dir)
        self.settings = parts.keep(self.settings, given)
        if before is None:
            return
        before.ask("setup/save", {"given": given})
        until = time.monotonic() + RESTART_SECONDS
        while time.monotonic() < until:
            with suppress(RecadoError):  # it is just starting
                now = find_server(data_dir)
                if now is not None and now.token != before.token:
                    return
            time.sleep(0.2)
        raise RecadoError(lazy("the server did not start anew; its log says why"))


def _language(settings: Settings) -> str:
    """Return the owner's language, else that of this machine."""
    rules = access_rules(settings, settings.realm)

    def of_owner(conn: Connection) -> str:
        owners = people.owners(conn, rules)
        return people.language(conn, owners[0]) if owners else ""

    machine = [os.environ.get(name, "")[:2] for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    with suppress(StoreError):  # a database that cannot be read is told of by the steps
        if language := read_records(settings.database, of_owner, none=""):
            return language
    return next(filter(None, machine), "en")
