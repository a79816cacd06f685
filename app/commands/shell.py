"""Parts that all commands share: groups, settings, output, exit statuses."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from app.settings import Settings

FAILED = 1
MISUSED = 2


def group(**options: Any) -> typer.Typer:
    return typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


def command_settings(usual_log_level: str = "WARNING", *, names_faults: bool = True) -> "Settings":
    """Return the settings, with logs set up. Raise ConfigurationError for faulty ones."""
    from app.commands import configuration

    settings = configuration.read_settings()
    configuration.configure_logs(settings, usual_log_level)
    if names_faults:
        name_unreadable_lines()
    return settings


def name_unreadable_lines() -> None:
    from app.commands.configuration import unreadable_lines

    for number in unreadable_lines(Path(".env")):
        typer.echo(f"recado: line {number} of .env is no NAME=value and is left out", err=True)


def show(text: str, *, err: bool = False) -> None:
    """Print a text with everything escaped that a terminal would obey."""
    from app.text import visible_lines

    typer.echo(visible_lines(text), err=err)


def agreed(question: str) -> bool:
    """Ask at the terminal until there is an answer; the end of the input is a no."""
    while True:
        try:
            answer = input(f"{question} [y/n] ").strip().lower()
        except EOFError:
            return False
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")
