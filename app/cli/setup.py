"""`recado setup`: the steps of the console's Setup, asked one after the other in a terminal."""

import asyncio
import os
import secrets
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import typer

from app.channels.access import access_rules
from app.cli.database import make_data_folder, read_records
from app.cli.output import command_settings, group, show
from app.cli.server import find_server
from app.console import setup as parts
from app.doctor import examine
from app.errors import RecadoError
from app.i18n import lazy, said
from app.settings import Settings

RESTART_SECONDS = 30.0

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
    """Leads through the steps in the language of this machine; `settings` are as they were kept last."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        machine = (os.environ.get(name, "")[:2] for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
        self._language = next(filter(None, machine), "en")

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
        rules = access_rules(self.settings, self.settings.realm)
        none: dict[str, Any] = {"handshake": False, "message": False, "owners": []}
        made = read_records(self.settings.database, lambda conn: parts.progress(conn, rules), none=none)
        for _, is_done, step in parts.steps(self.settings, made):
            show(f"[{'x' if is_done else ' '}] {self.said(step)}")

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
        typer.prompt(self.said(lazy("Press Enter when that is done")), default="", show_default=False)
        self._check("whatsapp")

    def _model(self) -> None:
        for url, names in asyncio.run(parts.find_ollama()):
            show(f"Ollama, {url}/v1: {', '.join(names)}")
        self._save(self._ask("OPENAI_BASE_URL", "LLM_MODEL", "OPENAI_API_KEY"))
        self._check("model")

    def _owner(self) -> None:
        server = find_server(self.settings.data_dir)
        if self.settings.uses_simulator:
            show(self.said(lazy("In the simulator its first person is the owner.")))
        elif server is None:
            told = lazy("Start the server with {recado} serve: it prints a code, whose sender is the owner.")
            show(self.said(told))
        elif code := server.ask("setup/owner")["code"]:
            show(self.said(lazy("Send this code to the assistant from your WhatsApp, within an hour:")))
            show(f"\n{code}\n")
        self._save(self._ask("ACCESS", "TIMEZONE"))

    def _backup(self) -> None:
        made = parts.make_backup(self.settings)
        kept = made.rename(made.with_name(f"backup-{time.strftime('%Y-%m-%d-%H%M%S')}.zip"))
        told = lazy(
            "Saved {path}. Messages of people and your mcp_servers.json are in it: keep it safe.", path=kept
        )
        show(self.said(told))

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
