"""`recado db move`, `upgrade` and `check`: the database as a whole."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from app.cli.database import opening, read_records, shown
from app.cli.output import FAILED, command_settings, group, show
from app.errors import ConfigurationError, StoreError
from app.i18n import program
from app.ops.finding import Finding, fail, line, ok
from app.store.database import Connection, Location, engine_of, exists, scalar
from app.store.migrations import UNFINISHED, migrations, tables
from app.store.moving import move as move_rows

commands = group()
db_commands = group(help="The database as a whole: move, upgrade, check.")
commands.add_typer(db_commands, name="db")


@db_commands.command()
def move(
    to: Annotated[str, typer.Option(metavar="ADDRESS", help="postgresql://USER@HOST/NAME, or a file.")],
) -> None:
    """Copy everything into an empty database, and compare both sides.

    The server must be stopped. A move that was cut off goes on with the same command.
    """
    settings = command_settings()
    url = to if "://" in to or to.startswith("postgres") else f"sqlite:///{Path(to).expanduser().absolute()}"
    moved = settings.model_copy(update={"database_url": url})
    try:
        source, target = settings.database, moved.database
    except ValueError as error:
        raise ConfigurationError(str(error).replace("DATABASE_URL", "--to")) from None
    if target == source:
        raise StoreError("both are the same database")
    read_records(source, _step)
    with opening(source), opening(target):
        move_rows(source, target, show)
    address = re.sub(r"(://[^:@/]*):[^@/]+@", r"\1:PASSWORD@", url)
    hidden = " (with the password in place of PASSWORD)" if "PASSWORD@" in address else ""
    show(
        f"\nEverything is in {shown(target)} now. Write into .env{hidden}, then start the server:\n"
        f"DATABASE_URL={address}\nDATA_DIR={settings.data_dir.absolute()}\n"
        f"{shown(source)} was left as it is: keep it as a backup, and let no server run on it."
    )


@db_commands.command()
def upgrade() -> None:
    """Bring the database to the newest step, as the next start of the server would."""
    location = command_settings().database
    before = read_records(location, _step)
    engine = engine_of(location)
    try:
        with opening(location):
            engine.prepare()
    finally:
        engine.unlock()
    steps = migrations()
    for name, _ in steps[before:]:
        show(f"applied {name}")
    if before == len(steps):
        show(f"{shown(location)} is at the newest step already, {before}")
    else:
        show(f"{shown(location)} was brought from step {before} to {len(steps)}")


@db_commands.command()
def check() -> None:
    """Look for damage, a line for each kind; status 1 if there is some. Safe while the server runs."""
    location = command_settings().database
    findings = read_records(location, lambda conn: list(_findings(conn, location)))
    for finding in findings:
        show(line(finding))
    raise typer.Exit(FAILED if any(finding.level == "FAIL" for finding in findings) else 0)


def _findings(conn: Connection, location: Location) -> Iterator[Finding]:
    step, newest = _step(conn), len(migrations())
    if exists(conn, "SELECT 1 FROM schema_version WHERE version = ?", UNFINISHED):
        yield fail("steps", "a move into this database was not finished", f"go on with {program()} db move")
    elif step == newest:
        yield ok("steps", f"all {newest} were applied")
    elif step < newest:
        yield fail("steps", f"{step} of {newest} were applied", f"{program()} db upgrade")
    else:
        yield fail("steps", f"it has {step}, this version knows {newest}", "start the newer version")
    restore = "stop the server, keep this database aside and restore a backup"
    damage = engine_of(location).damage(conn)
    yield from (fail("storage", fault, restore) for fault in damage)
    if not damage:
        yield ok("storage", "tables and indexes are whole")
    if step == newest:
        yield from _references(conn, restore)


def _references(conn: Connection, cure: str) -> Iterator[Finding]:
    rows = lost = 0
    for table in tables():
        rows += scalar(conn, f"SELECT count(*) FROM {table.name}")
        for one in table.references:
            missing = scalar(
                conn,
                f"SELECT count(*) FROM {table.name} WHERE {one.column} IS NOT NULL AND NOT EXISTS"
                f" (SELECT 1 FROM {one.table} found WHERE found.{one.key} = {table.name}.{one.column})",
            )
            if missing:
                lost += missing
                yield fail("rows", f"{missing:,} of {table.name} refer to {one.table} that are gone", cure)
    if not lost:
        yield ok("rows", f"{rows:,} rows, no broken references")


def _step(conn: Connection) -> int:
    return int(scalar(conn, "SELECT max(version) FROM schema_version") or 0)
