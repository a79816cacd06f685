"""Who is meant by a name, and what of an erased person stands in other rows than their own."""

from sqlite3 import Connection

import pytest

from app.errors import RecadoError
from app.messages import Sender, Status
from app.store import alerts, outbox, people, personal_data
from app.store.ownership import AccessRules

T = 1_760_000_000.0
OPEN = AccessRules("whatsapp", open=True)
ANA, BETO = Sender(phone="12125550000"), Sender(user_id="US.beto", name="Beto")


def admitted(conn: Connection, sender: Sender, doors: AccessRules = OPEN) -> str:
    found = people.admit(conn, doors, sender, "hi", T)
    assert isinstance(found, people.Admitted)
    return found.person.id


def texts(conn: Connection) -> str:
    tables = [row["name"] for row in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return "\n".join(str(tuple(row)) for table in tables for row in conn.execute(f"SELECT * FROM {table}"))


def test_a_number_means_who_is_known_here_before_anybody_of_another_realm(conn: Connection) -> None:
    elsewhere = admitted(conn, Sender(phone="5215512345678"), AccessRules("simulator", open=True))
    assert personal_data.find(conn, "whatsapp", "+52 55 1234 5678").id == elsewhere
    people.admit(conn, AccessRules("whatsapp"), Sender(phone="5215512345678"), "hi", T)
    assert personal_data.find(conn, "whatsapp", "+52 55 1234 5678").id == ""
    here = admitted(conn, Sender(phone="5215512345678"))
    assert [personal_data.find(conn, "whatsapp", who).id for who in ("525512345678", f" {here} ")] == [
        here,
        here,
    ]
    with pytest.raises(RecadoError, match=f"{elsewhere} .simulator."):
        personal_data.find(conn, "terminal", "525512345678")


def test_a_name_that_two_people_came_with_goes_with_the_one_who_is_erased(conn: Connection) -> None:
    ana, beto = admitted(conn, ANA), admitted(conn, BETO)
    people.admit(conn, OPEN, Sender(phone=ANA.phone, user_id=BETO.user_id), "both", T)
    assert ANA.phone in texts(conn)
    personal_data.erase(conn, "whatsapp", ana, T)
    assert ANA.phone not in texts(conn)
    assert conn.execute("SELECT frozen <> '' FROM people WHERE id = ?", (beto,)).fetchone()[0]
    people.allow(conn, "whatsapp", "US.beto", T)
    assert admitted(conn, ANA) not in (ana, beto)


def test_what_could_not_be_read_of_theirs_goes_too(conn: Connection) -> None:
    admitted(conn, ANA)
    for phone in (ANA.phone, "12125550001"):
        alerts.add_dead_letter(conn, "whatsapp", "no id", {"from": phone, "text": "secret"}, T)
    who = personal_data.find(conn, "whatsapp", ANA.phone)
    assert [ANA.phone in row["payload"] for row in personal_data.export(conn, who)["dead_letters"]] == [True]
    personal_data.erase(conn, "whatsapp", ANA.phone, T)
    assert ANA.phone not in texts(conn)
    assert "12125550001" in texts(conn)


def test_a_status_of_a_message_to_somebody_erased_is_not_kept(conn: Connection) -> None:
    assert outbox.apply_status(conn, Status("wamid.1", "delivered", T, outbox_id="outbox_gone"), T) is None
    assert outbox.apply_status(conn, Status("wamid.2", "delivered", T), T) is None
    kept = conn.execute("SELECT wamid FROM statuses").fetchall()
    assert [row["wamid"] for row in kept] == ["wamid.2"]
