"""`recado audit`: who did what, and whether the record of it is whole."""

import re
from typing import Annotated

import typer

from app.cli.database import read_records
from app.cli.output import command_settings, group, moment, show, table
from app.errors import RecadoError
from app.store import audit
from app.store.audit import AuditRow

commands = group()
audit_commands = group(help="Who did what: a chain of rows.")
commands.add_typer(audit_commands, name="audit")


@audit_commands.command("list")
def audit_list() -> None:
    """Show what was done last, the newest first."""
    location = command_settings().database
    rows: list[AuditRow] = read_records(location, lambda conn: audit.listing(conn, 1), none=[])
    head = ("NUMBER", "WHEN", "WHO", "WHAT", "ABOUT")
    show(table(head, [(row.seq, moment(row.at), row.actor, row.action, row.subject) for row in rows]))


@audit_commands.command("verify")
def audit_verify(
    head: Annotated[str, typer.Option(help="A head from an earlier run or from the log.")] = "",
) -> None:
    """Check that no row was changed or taken out; status 1 if one was.

    Only a head that was kept elsewhere can show that the newest rows are still there.
    """
    if head and not re.fullmatch(r"0:|[1-9]\d*:[0-9a-f]{64}", head, re.ASCII):
        raise typer.BadParameter("a head is a number of rows and a hash: 12:3f0a…")
    now, fault = read_records(command_settings().database, lambda conn: audit.verify(conn, head))
    if fault:
        raise RecadoError(f"the audit is broken: {fault}")
    show(f"The audit is whole: {now.partition(':')[0]} rows.\nKeep its head elsewhere: {now}")
