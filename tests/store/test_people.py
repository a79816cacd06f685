"""People: who may come in, aliases, ownership, and the owner that the administrator acts for."""

from sqlite3 import Connection

import pytest

from app.messages import AliasChange, Sender
from app.phones import canonical
from app.store import journal, people, personal_data
from app.store.ownership import CODE_SECONDS, CODE_TRIES, AccessRules, offer_ownership, takes_ownership
from app.store.people import Admitted, TurnedAway
from app.store.personal_data import DAY, TRACE_DAYS
from tests.store.rows import ANA, BETO, OPEN, T, admit, begun, conversation, freeze, inbound, take, value

CLOSED = AccessRules("whatsapp", code_key=b"c" * 32)


ANA_PHONE, ANA_ID = Sender(phone=ANA.phone), Sender(user_id=ANA.user_id)


def listed(*phones: str) -> AccessRules:
    return AccessRules("whatsapp", allowed=frozenset(canonical(phone) for phone in phones))


def frozen(conn: Connection) -> list[str]:
    """Ids of the people whose role and memory are out of reach."""
    return [row["id"] for row in conn.execute("SELECT id FROM people WHERE frozen <> '' ORDER BY id")]


def aliases(conn: Connection, person: str) -> list[str]:
    rows = conn.execute("SELECT value FROM aliases WHERE person_id = ? ORDER BY kind, value", (person,))
    return [row["value"] for row in rows]


def test_a_phone_and_a_user_id_seen_together_are_one_person(conn: Connection) -> None:
    ana = admit(conn, ANA_PHONE).id
    admit(conn, ANA)
    assert admit(conn, ANA_ID).id == ana


@pytest.mark.parametrize(
    ("doors", "let_in"),
    [
        (CLOSED, False),
        (OPEN, True),
        (listed("+52 555 000 0001"), True),
        (listed(BETO.phone), False),
        (AccessRules("whatsapp", owners=frozenset({canonical(ANA.phone)})), True),
    ],
    ids=["closed", "open", "listed in the other form", "somebody else listed", "an owner"],
)
def test_the_doors(conn: Connection, doors: AccessRules, let_in: bool) -> None:
    assert isinstance(people.admit(conn, doors, ANA, "", T), Admitted) is let_in


def test_people_kept_of_those_turned_away_are_bounded(conn: Connection) -> None:
    for n in range(people.OUTSIDERS_KEPT + 5):
        people.admit(conn, CLOSED, Sender(phone=f"1212555{n:04}"), "", T + n)
    assert value(conn, "SELECT count(*) FROM outsiders") == people.OUTSIDERS_KEPT
    assert value(conn, "SELECT min(first_at) FROM outsiders") == T + 5


def two_who_share(conn: Connection) -> tuple[str, str]:
    """A phone of one person that comes with the user id of another."""
    one, two = admit(conn, ANA_PHONE).id, admit(conn, Sender(phone=BETO.phone, user_id=ANA.user_id)).id
    admit(conn, ANA)
    return one, two


@pytest.mark.parametrize(
    "sender", [Sender(ANA.phone, "MX.other"), Sender("12125550009", ANA.user_id)], ids=["user id", "phone"]
)
def test_a_known_person_with_another_alias_than_before_is_frozen(conn: Connection, sender: Sender) -> None:
    ana = admit(conn).id
    admit(conn, sender)
    assert frozen(conn) == [ana]
    assert aliases(conn, ana) == [canonical(ANA.phone), ANA.user_id]


def test_a_frozen_owner_has_no_role(conn: Connection) -> None:
    people.make_owner(conn, "whatsapp", ANA.phone, T)
    roles = [admit(conn, ANA).role]
    roles.append(admit(conn, Sender(ANA.phone, "MX.other")).role)
    assert roles == ["owner", "member"]


def test_confirming_moves_the_alias_that_was_claimed(conn: Connection) -> None:
    one, two = two_who_share(conn)
    assert people.allow(conn, "whatsapp", ANA.phone, T) == one
    assert aliases(conn, one) == [canonical(ANA.phone), ANA.user_id]
    assert ANA.user_id not in aliases(conn, two)
    assert frozen(conn) == [two]


def test_confirming_puts_the_new_user_id_in_place_of_the_old(conn: Connection) -> None:
    ana = admit(conn).id
    admit(conn, Sender(ANA.phone, "MX.other"))
    people.allow(conn, "whatsapp", ANA.phone, T)
    assert aliases(conn, ana) == [canonical(ANA.phone), "MX.other"]
    assert admit(conn, Sender(ANA.phone, "MX.other")).id == ana
    assert frozen(conn) == []


def test_confirming_somebody_takes_no_claim_from_their_namesake_of_another_realm(conn: Connection) -> None:
    simulated = AccessRules("simulator", open=True)
    for doors in (OPEN, simulated):
        admit(conn, doors=doors)
        admit(conn, Sender(ANA.phone, "MX.other"), doors=doors)
    people.allow(conn, "simulator", ANA.phone, T)
    ana = people.allow(conn, "whatsapp", ANA.phone, T)
    assert aliases(conn, ana) == [canonical(ANA.phone), "MX.other"]
    admit(conn, Sender(ANA.phone, "MX.other"))
    assert frozen(conn) == []


NEW = Sender(phone="5215550000009", user_id="MX.ana9")


def test_being_listed_moves_with_a_changed_number(conn: Connection) -> None:
    doors = listed(ANA.phone)
    admit(conn, doors=doors)
    people.apply_change(conn, "whatsapp", AliasChange(ANA, NEW), doors, T)
    assert isinstance(people.admit(conn, doors, NEW, "", T), Admitted)


def test_a_blocked_person_is_not_let_in_by_a_changed_number(conn: Connection) -> None:
    doors = listed(ANA.phone)
    people.block(conn, "whatsapp", ANA.phone, T)
    people.apply_change(conn, "whatsapp", AliasChange(ANA_PHONE, Sender(phone=NEW.phone)), doors, T)
    assert people.admit(conn, doors, Sender(phone=NEW.phone), "", T) == TurnedAway(NEW.phone, "blocked")


def test_a_number_that_becomes_somebody_elses_freezes_both(conn: Connection) -> None:
    pair = sorted([admit(conn, ANA).id, admit(conn, BETO).id])
    people.apply_change(conn, "whatsapp", AliasChange(ANA, Sender(phone=BETO.phone)), OPEN, T)
    assert frozen(conn) == pair


def test_a_change_to_a_number_of_ones_own_and_an_id_of_anothers_moves_nothing(conn: Connection) -> None:
    ana, beto = admit(conn, ANA).id, admit(conn, BETO).id
    people.apply_change(conn, "whatsapp", AliasChange(ANA, Sender(NEW.phone, BETO.user_id)), OPEN, T)
    assert frozen(conn) == sorted([ana, beto])
    assert aliases(conn, ana) == [canonical(ANA.phone), ANA.user_id]


def test_a_change_whose_old_names_are_two_peoples_freezes_both_and_moves_nothing(conn: Connection) -> None:
    ana, beto = admit(conn, ANA_PHONE).id, admit(conn, BETO).id
    people.apply_change(conn, "whatsapp", AliasChange(Sender(ANA.phone, BETO.user_id), NEW), OPEN, T)
    assert frozen(conn) == sorted([ana, beto])
    assert (aliases(conn, ana), len(aliases(conn, beto))) == ([canonical(ANA.phone)], 2)
    people.allow(conn, "whatsapp", ANA.phone, T)
    assert (aliases(conn, ana), frozen(conn)) == ([canonical(NEW.phone), NEW.user_id], [beto])


def code_of(conn: Connection) -> str:
    code = offer_ownership(conn, CLOSED, T)
    assert code is not None
    return code


@pytest.mark.parametrize(("after", "good"), [(CODE_SECONDS - 1, True), (CODE_SECONDS + 1, False)])
def test_the_code_expires(conn: Connection, after: float, good: bool) -> None:
    code = code_of(conn)
    assert takes_ownership(conn, CLOSED, code, T + after) is good


@pytest.mark.parametrize(("wrong", "good"), [(CODE_TRIES - 1, True), (CODE_TRIES, False)])
def test_five_wrong_codes_spend_the_code(conn: Connection, wrong: int, good: bool) -> None:
    code = code_of(conn)
    for _ in range(wrong):
        assert not takes_ownership(conn, CLOSED, "AAAA-AAAA-AAAA", T)
    assert takes_ownership(conn, CLOSED, code, T) is good


def test_the_code_is_void_once_there_is_an_owner(conn: Connection) -> None:
    code = code_of(conn)
    people.make_owner(conn, "whatsapp", BETO.phone, T)
    assert not takes_ownership(conn, CLOSED, code, T)
    people.block(conn, "whatsapp", BETO.phone, T)  # nobody owns it again: an old code does not come back
    assert not takes_ownership(conn, CLOSED, code, T)


@pytest.mark.parametrize("configured", [True, False], ids=["configured", "made"])
def test_no_code_is_offered_while_there_is_an_owner(conn: Connection, configured: bool) -> None:
    code_of(conn)
    doors = (
        AccessRules("whatsapp", owners=frozenset({"1"}), code_key=CLOSED.code_key) if configured else CLOSED
    )
    if not configured:
        people.make_owner(conn, "whatsapp", BETO.phone, T)
    assert offer_ownership(conn, doors, T) is None
    assert value(conn, "SELECT count(*) FROM meta") == 0


def test_what_waits_under_a_name_goes_with_the_name_that_an_owner_confirms(conn: Connection) -> None:
    phone, id_only = conversation(conn, ANA_PHONE), conversation(conn, ANA_ID)
    take(conn, inbound("wamid.0", "ours since before", sender=ANA_ID))
    begun(conn, id_only, "turn_before")
    admit(conn, ANA)  # both at once: one of two people
    take(conn, inbound("wamid.1", "written as an id alone", sender=ANA_ID))
    people.allow(conn, "whatsapp", ANA.phone, T)
    assert frozen(conn) == [id_only.person_id]
    waiting = "SELECT i.person_id, i.conversation_id, m.person_id, m.conversation_id, m.text FROM inbox i"
    waiting += " JOIN messages m ON m.id = i.message_id WHERE i.turn_id IS NULL AND i.done_at IS NULL"
    assert [tuple(row) for row in conn.execute(waiting)] == [
        (phone.person_id, phone.id, phone.person_id, phone.id, "written as an id alone")
    ]
    assert value(conn, "SELECT person_id FROM inbox WHERE turn_id = 'turn_before'") == id_only.person_id


def test_what_was_written_before_a_name_was_the_persons_stays_with_who_wrote_it(conn: Connection) -> None:
    beto = conversation(conn, Sender(phone=NEW.phone))
    freeze(conn, beto.person_id, "of another matter")
    take(conn, inbound("wamid.0", "of Beto alone", sender=Sender(phone=NEW.phone)), now=T)
    ana = admit(conn, ANA_PHONE).id
    people.apply_change(conn, "whatsapp", AliasChange(ANA_PHONE, Sender(phone=NEW.phone)), OPEN, T + 60)
    take(conn, inbound("wamid.1", "of Ana, with Beto's number", sender=Sender(phone=NEW.phone)), now=T + 70)
    people.apply_change(conn, "whatsapp", AliasChange(ANA_PHONE, Sender(phone=NEW.phone)), OPEN, T + 80)
    assert people.allow(conn, "whatsapp", ANA.phone, T + 90) == ana
    assert aliases(conn, beto.person_id) == []
    waiting = conn.execute("SELECT i.person_id, m.text FROM inbox i JOIN messages m ON m.id = i.message_id")
    assert [tuple(row) for row in waiting] == [
        (beto.person_id, "of Beto alone"),
        (ana, "of Ana, with Beto's number"),
    ]


def test_of_names_that_somebody_came_with_the_last_is_confirmed(conn: Connection) -> None:
    ana = admit(conn).id
    for minute, name in enumerate(("MX.one", "MX.two", "MX.one", "MX.one")):
        take(conn, inbound(f"wamid.{minute}", sender=Sender(ANA.phone, name)), now=T + minute)
    people.allow(conn, "whatsapp", ANA.phone, T + 9)
    assert aliases(conn, ana) == [canonical(ANA.phone), "MX.one"]


def test_what_waits_of_somebody_who_keeps_a_name_stays_theirs(conn: Connection) -> None:
    _, two = two_who_share(conn)
    take(conn, inbound("wamid.1", "mine", sender=Sender(phone=BETO.phone)))
    people.allow(conn, "whatsapp", ANA.phone, T)
    assert aliases(conn, two) == [canonical(BETO.phone)]
    assert value(conn, "SELECT person_id FROM inbox") == two


FIRST, SECOND, THIRD = "12125550001", "12125550002", "12125550003"


def doors(*owners: str) -> AccessRules:
    return AccessRules("whatsapp", owners=frozenset(owners), open=True)


def arrive(conn: Connection, at: AccessRules, *phones: str) -> None:
    for number, phone in enumerate(phones):
        people.admit(conn, at, Sender(phone=phone), "", T + number)


def named(conn: Connection, at: AccessRules) -> str:
    """The phone of whoever the calls belong to."""
    return people.acting_owner(conn, at, T + 100)[0].names[0]


@pytest.mark.parametrize(
    ("owners", "arrived", "expected"),
    [
        ((FIRST, SECOND), (THIRD, SECOND, FIRST), SECOND),
        ((FIRST,), (SECOND, THIRD), FIRST),
        ((SECOND, FIRST), (), FIRST),
        ((), (FIRST,), people.OPERATOR),
    ],
)
def test_the_owner_known_for_longest_then_one_of_the_configuration_then_nobody(
    conn: Connection, owners: tuple[str, ...], arrived: tuple[str, ...], expected: str
) -> None:
    at = doors(*owners)
    arrive(conn, at, *arrived)
    assert named(conn, at) == expected
    assert named(conn, at) == expected, "it is the same person at every call"
    assert value(conn, "SELECT count(*) FROM people") == len({*arrived, expected})


def test_nothing_is_done_in_the_name_of_who_is_frozen_or_blocked(conn: Connection) -> None:
    at = doors(FIRST, SECOND)
    arrive(conn, at, FIRST, SECOND)
    people.block(conn, "whatsapp", FIRST, T)
    assert named(conn, at) == SECOND
    freeze(conn, value(conn, "SELECT person_id FROM aliases WHERE value = ?", SECOND), "why")
    assert named(conn, at) == people.OPERATOR


def test_a_call_is_forgotten_whole(conn: Connection) -> None:
    _, where = people.acting_owner(conn, doors(FIRST), T)
    journal.record_admin_call(conn, "t1", where, "intent", {"tool": "save_note"}, T)
    journal.record_admin_call(conn, "t1", where, "tool", {"result": "{}"}, T)
    kept = []
    for age in (TRACE_DAYS - 0.1, TRACE_DAYS + 0.1):
        personal_data.delete_old(conn, T + age * DAY)
        kept.append((value(conn, "SELECT count(*) FROM turns"), value(conn, "SELECT count(*) FROM journal")))
    assert kept == [(1, 2), (0, 0)]
