"""Check of the database without its lock, and of open alerts."""

import time
from collections.abc import Iterator
from pathlib import Path

from app.cli.database import read_records, shown
from app.cli.output import moment
from app.cli.people import realm_of
from app.doctor.finding import CURES, Finding, fail, ok, warn
from app.errors import StoreError
from app.settings import Settings
from app.store import alerts
from app.store.alerts import Alert
from app.store.database import Connection, Location, engine_of, scalar
from app.store.migrations import migrations

LATELY_SECONDS = 7 * 24 * 3600.0


def check_database(settings: Settings) -> Iterator[Finding]:
    """Check that the file can be read, has a known schema and is sound."""
    location = settings.database
    try:
        if not engine_of(location).exists():
            yield ok("database", f"{shown(location)} will be made at the first start")
            return
        yield read_records(location, lambda conn: _state(conn, location))
    except StoreError as error:
        fact = str(error).partition("; ")[0]
        yield fail("database", fact, "let this user read it, or move it away and restore a copy")


def check_alerts(settings: Settings) -> Iterator[Finding]:
    """Report open alerts; those of events that cannot be mended only for some days."""

    def read(conn: Connection) -> list[Alert]:
        """Return the alerts that the next start, which may be in another realm, leaves open."""
        is_same = alerts.last_realm(conn) in (None, realm_of(settings))
        opened = alerts.open_alerts(conn)
        return [one for one in opened if is_same or not one.code.startswith(alerts.ABOUT_SENDING)]

    try:
        opened = read_records(settings.database, read)
    except StoreError:  # the database has a line of its own
        return
    since = time.time() - LATELY_SECONDS
    past = ("turn", "undelivered:")
    found = [one for one in opened if one.last_at >= since or not one.code.startswith(past)]
    for alert in found:
        often = "" if alert.times == 1 else f" ({alert.times} times, last {moment(alert.last_at)})"
        fact, cure = _alert_words(alert)
        yield warn("alert", f"{fact}{often}", cure)
    if not found:
        yield ok("alerts", "none is open")


def _alert_words(alert: Alert) -> tuple[str, str]:
    """Return an alert's fact and its cure; the text of a failed send ends with one."""
    known = CURES["alerts"].get(alert.code.rpartition(":")[2], "")
    if alert.text.startswith("sending failed"):
        fact, _, cure = alert.text.rpartition("; ")
        return fact, known or cure
    return alert.text, known


def _state(connection: Connection, location: Location) -> Finding:
    known, path = len(migrations()), shown(location)
    is_file = isinstance(location, Path)
    tables = [row["name"] for row in connection.execute("SELECT name FROM sqlite_schema")] if is_file else []
    if tables and "schema_version" not in tables:
        fact = f"{path} holds another program's tables"
        return fail("database", fact, "name a file of Recado's own in DATABASE_URL")
    is_empty = is_file and not tables
    schema = 0 if is_empty else int(scalar(connection, "SELECT max(version) FROM schema_version") or 0)
    if schema > known:
        fact = f"{path} has schema {schema}, this version of Recado knows {known}"
        return fail("database", fact, "start the newer version that wrote it")
    damage = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0]) if is_file else "ok"
    if damage != "ok":
        fact = f"{path} is damaged: {damage}"
        return fail("database", fact, "stop the server, keep the file aside and restore a copy")
    brought = "" if schema == known else f", brought to {known} at the next start"
    return ok("database", f"{path} is sound, schema {schema}{brought}")
