"""`recado audit`: who did what, and whether the record of it is whole."""

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
def audit_verify() -> None:
    """Check that no row was changed, or taken out from before another; status 1 if one was."""
    count, fault = read_records(command_settings().database, audit.verify)
    if fault:
        raise RecadoError(f"the audit is broken: {fault}")
    show(f"The audit is whole: {count} rows.")
