"""A person's rows and folders: found, erased, and every table accounted for."""

from pathlib import Path
from sqlite3 import Connection

import pytest

from app.errors import RecadoError
from app.messages import Sender, Status
from app.store import alerts, delivery, people, personal_data
from app.store.ownership import AccessRules
from app.store.personal_data import PersonFolders
from tests.databases import of_sqlite
from tests.deep import make_deep
from tests.store.rows import OPEN, T, admit

ANA, BETO = Sender(phone="12125550000"), Sender(user_id="US.beto", name="Beto")


def texts(conn: Connection) -> str:
    rows = (tuple(row) for table in tables(conn) for row in conn.execute(f"SELECT * FROM {table}"))
    return "\n".join(map(str, rows))


def test_a_number_means_who_is_known_here_before_anybody_of_another_realm(conn: Connection) -> None:
    elsewhere = admit(conn, Sender(phone="5215512345678"), doors=AccessRules("simulator", open=True)).id
    assert personal_data.find(conn, "whatsapp", "+52 55 1234 5678").id == elsewhere
    people.admit(conn, AccessRules("whatsapp"), Sender(phone="5215512345678"), "hi", T)
    assert personal_data.find(conn, "whatsapp", "+52 55 1234 5678").id == ""
    here = admit(conn, Sender(phone="5215512345678")).id
    assert [personal_data.find(conn, "whatsapp", who).id for who in ("525512345678", f" {here} ")] == [
        here,
        here,
    ]
    with pytest.raises(RecadoError, match=f"{elsewhere} .simulator."):
        personal_data.find(conn, "terminal", "525512345678")


def test_a_name_that_two_people_came_with_goes_with_the_one_who_is_erased(conn: Connection) -> None:
    ana, beto = admit(conn, ANA).id, admit(conn, BETO).id
    people.admit(conn, OPEN, Sender(phone=ANA.phone, user_id=BETO.user_id), "both", T)
    assert ANA.phone in texts(conn)
    personal_data.erase(conn, "whatsapp", ana, T)
    assert ANA.phone not in texts(conn)
    assert conn.execute("SELECT frozen <> '' FROM people WHERE id = ?", (beto,)).fetchone()[0]
    people.allow(conn, "whatsapp", "US.beto", T)
    assert admit(conn, ANA).id not in (ana, beto)


def test_what_could_not_be_read_of_theirs_goes_too(conn: Connection) -> None:
    admit(conn, ANA)
    for phone in (ANA.phone, "12125550001"):
        alerts.add_dead_letter(conn, "whatsapp", "no id", {"from": phone, "text": "secret"}, T)
    who = personal_data.find(conn, "whatsapp", ANA.phone)
    assert [ANA.phone in row["payload"] for row in personal_data.export(conn, who)["dead_letters"]] == [True]
    personal_data.erase(conn, "whatsapp", ANA.phone, T)
    assert ANA.phone not in texts(conn)
    assert "12125550001" in texts(conn)


def test_a_status_of_a_message_to_somebody_erased_is_not_kept(conn: Connection) -> None:
    assert delivery.apply_status(conn, Status("wamid.1", "delivered", T, outbox_id="outbox_gone"), T) is None
    assert delivery.apply_status(conn, Status("wamid.2", "delivered", T), T) is None
    kept = conn.execute("SELECT wamid FROM statuses").fetchall()
    assert [row["wamid"] for row in kept] == ["wamid.2"]


@pytest.fixture
def folders(deep_ground: Path) -> PersonFolders:
    return PersonFolders(deep_ground / "workspace", deep_ground / "data")


def test_what_a_server_made_too_deep_for_any_path_goes_with_its_person(folders: PersonFolders) -> None:
    """It kept every sweep from what is old."""
    workspace, media = folders.of("person_ana")
    workspace.mkdir(parents=True)
    make_deep(workspace / "inner")
    media.mkdir(parents=True)
    folders.remove(["person_ana"])
    assert not workspace.exists()
    assert not media.exists()


def test_a_link_in_the_place_of_a_folder_goes_and_what_it_leads_to_stays(folders: PersonFolders) -> None:
    place, media = folders.of("person_ana")
    kept = place.parent / "kept"
    kept.mkdir(parents=True)
    place.symlink_to(kept)
    media.parent.mkdir(parents=True)
    media.write_text("a file in the place of the folder")
    folders.remove(["person_ana"])
    assert not place.is_symlink()
    assert not media.exists()
    assert kept.is_dir()


NOBODYS = {
    "people": "is the person",
    "outsiders": "who was turned away, and is nobody here",
    "used": "sums over everybody",
    "webhook_addresses": "of the operator's systems",
    "erased": "random ids of people who are gone",
    "seen": "hashes of message ids, kept without the person on purpose",
    "alerts": "what the operator must know, one row a cause",
    "meta": "keys of this database",
    "invitations": "hashes of codes, for whoever sends them",
    "audit": "who did what, under our own random ids, so that the chain outlives a person",
    "tool_statistics": "how often tools were called, by nobody in particular",
    "schema_version": "the migrations that were applied",
}


# Rows that may come before it is known whom they are about, or of nobody.
NOT_YET_KNOWN = {"statuses", "dead_letters", "webhook_deliveries", "console_sessions"}
# Rows that go with their turn, and it with the person.
OF_A_TURN = {"journal", "model_calls"}


def tables(conn: Connection) -> list[str]:
    found = conn.execute("SELECT DISTINCT table_name FROM table_columns WHERE table_name NOT LIKE 'sqlite_%'")
    return [row["table_name"] for row in found]


@of_sqlite
def test_every_table_has_a_person_or_a_reason_for_none(conn: Connection) -> None:
    without = []
    for table in tables(conn):
        columns = {row["name"]: row for row in conn.execute(f"PRAGMA table_info({table})")}
        person = columns.get("person_id")
        if person is None:
            without.append(table)
            continue
        assert (table, person["notnull"]) == (table, int(table not in NOT_YET_KNOWN))
    assert sorted(without) == sorted(NOBODYS)


@of_sqlite
def test_a_persons_rows_go_with_the_person(conn: Connection) -> None:
    for table in set(tables(conn)) - set(NOBODYS):
        keys = conn.execute(f"PRAGMA foreign_key_list({table})").fetchall()
        column, parent = ("turn_id", "turns") if table in OF_A_TURN else ("person_id", "people")
        owner = [(key["table"], key["on_delete"]) for key in keys if key["from"] == column]
        assert (table, owner) == (table, [(parent, "CASCADE")])
