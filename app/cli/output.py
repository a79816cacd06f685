"""Parts that all commands share: groups, settings, output, exit statuses."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from app.errors import RecadoError
from app.messages import JSON
from app.ops import Finding
from app.text import visible, visible_lines

if TYPE_CHECKING:
    from app.settings import Settings

FAILED = 1
MISUSED = 2

AsJson = Annotated[bool, typer.Option("--json", help="Everything that is known, as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def group(**options: Any) -> typer.Typer:
    """Return a group of commands as all of ours are."""
    return typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


def command_settings(usual_log_level: str = "WARNING", **changes: object) -> "Settings":
    """Return the settings, and log at LOG_LEVEL or the command's usual level. Raise ConfigurationError."""
    from app.cli.settings import read_settings

    settings = read_settings(**changes)
    configure_logs(settings, usual_log_level)
    return settings


def configure_logs(settings: "Settings", usual_level: str) -> None:
    """Log as the settings say, without their secrets."""
    from app.cli.settings import secrets_of
    from app.ops.logs import configure

    level = settings.log_level if "log_level" in settings.model_fields_set else usual_level
    configure(level, settings.log_json, secrets_of(settings), settings.data_dir)


def show(text: str, *, err: bool = False) -> None:
    """Print a text with everything escaped that a terminal would obey."""
    typer.echo(visible_lines(text), err=err)


def need_yes(question: str, refusal: str) -> None:
    """Ask at the terminal. Raise RecadoError without one, and unless the answer is yes."""
    if not sys.stdin.isatty():
        raise RecadoError(f"{refusal}: this wants a yes; run it in a terminal, or with --yes")
    if not typer.confirm(f"\n{visible_lines(question)}"):
        raise RecadoError(refusal)


def show_findings(findings: Iterable[Finding]) -> NoReturn:
    """Print each finding as soon as it is known, then end the command; status 1 if something is broken."""
    status = 0
    for finding in findings:
        show(str(finding))
        status = FAILED if finding.level == "FAIL" else status
    raise typer.Exit(status)


def show_json(value: JSON) -> None:
    """Print a value as JSON."""
    show(json.dumps(value, ensure_ascii=False, indent=2))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return the rows under their heads, each column as wide as its widest cell; a row is one line."""
    lines = [tuple(head), *(tuple(visible(str(cell)) for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]], none: str) -> None:
    """Print rows as a table, or a sentence if there are none."""
    rows = list(rows)
    show(table(head, rows) if rows else none)


def moment(at: float) -> str:
    """Format a time in this machine's zone."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
