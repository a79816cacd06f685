"""Check of the database without its lock, and of open alerts."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from sqlite3 import Connection

from app.cli.database import BUSY_SECONDS, read_only, read_records
from app.cli.output import moment
from app.cli.people import realm_of
from app.doctor.finding import Finding, fail, ok, warn
from app.errors import StoreError
from app.people import Realm
from app.settings import Settings
from app.store import alerts
from app.store.alerts import Alert
from app.store.migrations import migrations

SCAN_SECONDS = 5.0
LATELY_SECONDS = 7 * 24 * 3600.0
_STEPS_BETWEEN_LOOKS = 100_000
_OUR_FAULT = "Meta refuses a message of this form: please report the line"
_CURES = {
    "100": _OUR_FAULT,
    "130472": "Meta does not deliver to this person for a while, as an experiment of its own",
    "131008": _OUR_FAULT,
    "131009": _OUR_FAULT,
    "131021": "the number is the assistant's own: write from another phone",
    "131026": "ask the person whether this phone has a current WhatsApp and its new terms are accepted",
    "131030": "a test number reaches only its list: add the person at WhatsApp > API Setup > To",
    "131047": "the person last wrote more than 24 hours ago and has to write first",
    "131049": "Meta limits what this person gets; there is nothing to mend, later answers may pass",
    "131050": "the person refuses such messages and has to write first",
    "131051": _OUR_FAULT,
    "131062": "Meta wants the person's phone number, which it has not told us",
    "135000": "Meta names no cause: try again later, then ask Meta's support",
    "137000": "the person cannot get messages of the assistant: see WhatsApp Manager",
    "unknown": "ask the person whether it arrived",
    "model": "see what is said about the model above",
    "turn": "see what happened with: recado trace",
}


def check_database(settings: Settings) -> Iterator[Finding]:
    """Check that the file can be read, has a known schema, is sound, and keeps a write-ahead log."""
    path = settings.database_path
    if not path.exists():
        yield ok("database", f"{path} will be made at the first start")
        return
    try:
        with closing(sqlite3.connect(read_only(path), uri=True, timeout=BUSY_SECONDS)) as connection:
            yield _state(connection, str(path))
    except sqlite3.Error as error:
        cure = "see that the file and its folder can be read, or move it away and restore a copy"
        yield fail("database", f"{path}: {error}", cure)


def check_alerts(settings: Settings) -> Iterator[Finding]:
    """Report open alerts; those of events that cannot be mended only for some days."""
    try:
        opened = read_records(settings.database_path, _alerts_of(realm_of(settings)))
    except StoreError:  # the database has a line of its own
        return
    since = time.time() - LATELY_SECONDS
    found = [alert for alert in opened if alert.last_at >= since or not _is_past(alert)]
    for alert in found:
        often = "" if alert.times == 1 else f" ({alert.times} times, last {moment(alert.last_at)})"
        fact, cure = _alert_words(alert)
        yield warn("alert", f"{fact}{often}", cure)
    if not found:
        yield ok("alerts", "none is open")


def _alerts_of(realm: Realm) -> Callable[[Connection], list[Alert]]:
    """Return the alerts that the next start in this realm leaves open."""

    def read(conn: Connection) -> list[Alert]:
        opened = alerts.open_alerts(conn)
        if alerts.last_realm(conn) in (None, realm):
            return opened
        return [alert for alert in opened if not alert.code.startswith(alerts.ABOUT_SENDING)]

    return read


def _is_past(alert: Alert) -> bool:
    return alert.code == "turn" or alert.code.startswith("undelivered:")


def _alert_words(alert: Alert) -> tuple[str, str]:
    """Return an alert's fact and its cure; the text of a failed send ends with one."""
    known = _CURES.get(alert.code.rpartition(":")[2], "")
    if alert.text.startswith("sending failed"):
        fact, _, cure = alert.text.rpartition("; ")
        return fact, known or cure
    return alert.text, known


def _state(connection: sqlite3.Connection, path: str) -> Finding:
    known = len(migrations())
    schema = _schema(connection)
    if schema > known:
        fact = f"{path} has schema {schema}, this version of Recado knows {known}"
        return fail("database", fact, "start the newer version that wrote it")
    if schema == 0:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables:
            fact = f"{path} holds another program's tables"
            return fail("database", fact, "name a file of Recado's own in DATABASE_URL")
    damage = _damage(connection)
    if damage:
        fact = f"{path} is damaged: {damage}"
        return fail("database", fact, "stop the server, keep the file aside and restore a copy")
    if damage is None:
        return warn("database", f"{path}: looking through it was ended after {SCAN_SECONDS:g} s")
    mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    if mode != "wal":
        return warn("database", f"{path} keeps no write-ahead log ({mode})", "start the server once")
    brought = "" if schema == known else f", brought to {known} at the next start"
    return ok("database", f"{path} is sound, schema {schema}{brought}, write-ahead log on")


def _schema(connection: sqlite3.Connection) -> int:
    """Return the version of the tables, 0 if none are ours."""
    row = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'").fetchone()
    if row is None:
        return 0
    return int(connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()[0])


def _damage(connection: sqlite3.Connection) -> str | None:
    """Return the first damage found, "" for none, None if time ran out first."""
    until = time.monotonic() + SCAN_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_LOOKS)
    try:
        result = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return None
    finally:
        connection.set_progress_handler(None, 0)
    return "" if result == "ok" else result
