"""The data folder, the database, the people and the alerts in it."""

import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from sqlite3 import Connection

import pytest

from app.channels.whatsapp.errors import send_alert
from app.messages import Refused, Sender
from app.ops import Finding
from app.settings import Settings
from app.store import alerts, people
from app.store.database import Database
from app.store.ownership import AccessRules
from tests.doctor.house import found


@pytest.fixture
async def database(settings: Callable[..., Settings]) -> AsyncIterator[Database]:
    """The database of the settings, open."""
    opened = Database(settings().database)
    await opened.open()
    yield opened
    await opened.close()


async def test_those_turned_away_are_named_whole_with_the_command(connected, database):
    chosen = connected()
    doors, now = AccessRules("whatsapp"), time.time()
    for phone in ("5215512345678", "5491155550000"):
        ana = Sender(phone=phone, name="Ana\u202e")
        await database.tx(lambda conn, ana=ana: people.admit(conn, doors, ana, "hola", now))  # type: ignore[misc]
    await database.tx(lambda conn: people.block(conn, "whatsapp", "+54 9 11 5555 0000", now))
    await database.tx(lambda conn: alerts.raise_alert(conn, "send:190", "the token expired", now))

    nobody, turned_away = _sync(found, chosen, "people")
    assert "nobody owns" in nobody.fact
    assert "recado people owner" in nobody.cure
    assert "5215512345678 (Ana" in turned_away.fact
    assert turned_away.cure.endswith("recado people allow 5215512345678")
    assert [finding.fact for finding in _sync(found, chosen, "alert")] == ["the token expired"]

    await database.tx(lambda conn: people.make_owner(conn, "whatsapp", "5215512345678", now))
    (owned,) = _sync(found, chosen, "people")
    assert owned.level == "OK"


async def test_who_goes_by_no_name_any_more_can_be_erased_and_not_be_let_in(connected, database):
    chosen = connected()
    doors, now = AccessRules("whatsapp", open=True), time.time()
    phone, id_only = "5215512345678", "MX.ana"
    for ana in (Sender(phone=phone), Sender(user_id=id_only), Sender(phone=phone, user_id=id_only)):
        await database.tx(lambda conn, ana=ana: people.admit(conn, doors, ana, "hola", now))  # type: ignore[misc]

    def frozen() -> list[str]:
        return [finding.cure for finding in _sync(found, chosen, "people") if "is frozen" in finding.fact]

    assert [cure.partition("recado ")[2].split()[:2] for cure in frozen()] == [["people", "allow"]] * 2
    await database.tx(lambda conn: people.allow(conn, "whatsapp", phone, now))
    left = await database.all("SELECT id FROM people WHERE frozen <> ''")
    assert [cure.partition("recado ")[2] for cure in frozen()] == [f"erase {left[0]['id']}"]


async def test_what_was_not_sent_has_its_cure(settings, database):
    now = time.time()

    def begin(conn: Connection) -> None:
        alerts.raise_alert(conn, "undelivered:131026", "WhatsApp could not deliver a message: 131026", now)
        alerts.raise_alert(conn, "send:190", send_alert(Refused("hold", 190, "190")), now)

    await database.tx(begin)
    cures = {finding.fact: finding.cure for finding in _sync(found, settings(), "alert")}
    assert "current WhatsApp" in cures["WhatsApp could not deliver a message: 131026"]
    assert "set a new WHATSAPP_ACCESS_TOKEN" in cures["sending failed with 190"]


def _sync(look: Callable[[Settings, str], list[Finding]], settings: Settings, part: str) -> list[Finding]:
    """The doctor runs a loop of its own, so it is asked from another thread."""
    results: list[list[Finding]] = []
    thread = threading.Thread(target=lambda: results.append(look(settings, part)))
    thread.start()
    thread.join(30)
    return results[0]


@pytest.mark.parametrize(
    ("content", "cure"),
    [
        (b"this is no database, but a text of some length that pretends to be one" * 20, "restore a backup"),
        ("CREATE TABLE orders (id INTEGER)", "DATABASE_URL"),
        (
            "CREATE TABLE schema_version (version INTEGER, name TEXT, applied_at REAL);"
            "INSERT INTO schema_version VALUES (999, 'later', 0)",
            "start the newer version",
        ),
    ],
)
def test_a_database_that_is_not_ours_gets_its_cure(content, cure, settings, tmp_path):
    path = tmp_path / "data" / "recado.db"
    path.parent.mkdir()
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        connection = sqlite3.connect(path)
        connection.executescript(content)
        connection.close()
    (finding,) = found(settings(), "database")
    assert finding.level == "FAIL"
    assert cure in finding.cure
    assert not (tmp_path / "data" / "recado.db.lock").exists()


def test_messages_that_everybody_may_read_are_named(settings, tmp_path):
    path = tmp_path / "data" / "recado.db"
    path.parent.mkdir()
    sqlite3.connect(path).close()
    path.chmod(0o644)
    (readable, _) = found(settings(), "data folder")
    assert readable.level == "WARN"
    assert readable.cure == f"chmod -R go-rwx {path.parent}"
