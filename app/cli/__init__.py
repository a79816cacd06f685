"""The `recado` command: each of its commands is in the module of its subject, loaded when it is asked for."""

import os
import signal
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from app.cli.output import FAILED, MISUSED, group, show
from app.errors import ConfigurationError, RecadoError

_MODULES = {
    "app.cli.server": ("serve", "token", "simulator"),
    "app.cli.setup": ("setup",),
    "app.cli.chat": ("chat",),
    "app.doctor": ("doctor",),
    "app.cli.people": ("people", "export", "erase"),
    "app.cli.skills": ("skills",),
    "app.cli.mcp": ("mcp",),
    "app.cli.trace": ("catalog", "route", "trace", "usage", "audit"),
    "app.cli.database": ("db",),
    "app.cli.evaluation": ("eval",),
    "app.cli.knowledge": ("knowledge", "templates"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


class _Commands(TyperGroup):
    """Loads the module of a command, and ends one that cannot do its work with one clear line."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_PLACES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _PLACES:
            return None
        found = import_module(_PLACES[cmd_name]).commands
        return typer.main.get_group(found).get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except RecadoError as error:
            for line in str(error).splitlines():
                show(f"recado: {line}", err=True)
            status = MISUSED if isinstance(error, ConfigurationError) else FAILED
            raise typer.Exit(status) from error


app = group(cls=_Commands, help="Recado: a self-hosted assistant that lives in WhatsApp.")


def _show_version(wanted: bool) -> None:
    if wanted:
        from app import __version__

        typer.echo(f"recado {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options before any command."""


def main() -> None:
    """The entry point of `recado` and of `python -m app`."""
    os.umask(0o077)  # whatever we write holds people's messages: for the operator's account alone
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no emoji shows the rest
    # Until a server hears these itself it has begun nothing; SIGHUP is ignored as under nohup.
    for number in (signal.SIGTERM, signal.SIGHUP) if sys.argv[1:2] == ["serve"] else ():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: os._exit(0))
    app()
