"""In whose name whoever holds the administrator's token acts."""

from sqlite3 import Connection

import pytest

from app.messages import Sender
from app.store import aliases, journal, people, retention
from app.store.ownership import AccessRules
from app.store.retention import DAY, TRACE_DAYS
from tests.store.rows import T, value

FIRST, SECOND, THIRD = "12125550001", "12125550002", "12125550003"


def doors(*owners: str) -> AccessRules:
    return AccessRules("whatsapp", owners=frozenset(owners), open=True)


def arrive(conn: Connection, at: AccessRules, *phones: str) -> None:
    for number, phone in enumerate(phones):
        people.admit(conn, at, Sender(phone=phone), "", T + number)


def named(conn: Connection, at: AccessRules) -> str:
    """The phone of whoever the calls belong to."""
    return people.acting_owner(conn, at, T + 100).names[0]


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


def test_who_owns_by_a_role_counts_like_who_is_configured(conn: Connection) -> None:
    at = doors()
    arrive(conn, at, FIRST, SECOND)
    people.make_owner(conn, "whatsapp", SECOND, T)
    assert named(conn, at) == SECOND


def test_nothing_is_done_in_the_name_of_who_is_frozen_or_blocked(conn: Connection) -> None:
    at = doors(FIRST, SECOND)
    arrive(conn, at, FIRST, SECOND)
    people.block(conn, "whatsapp", FIRST, T)
    assert named(conn, at) == SECOND
    aliases.freeze(conn, [value(conn, "SELECT person_id FROM aliases WHERE value = ?", SECOND)], "why")
    assert named(conn, at) == people.OPERATOR


def test_a_call_is_forgotten_whole(conn: Connection) -> None:
    where = people.acting_owner(conn, doors(FIRST), T).conversation
    journal.record_admin_call(conn, "t1", where, "intent", {"tool": "save_note"}, T)
    journal.record_admin_call(conn, "t1", where, "tool", {"result": "{}"}, T)
    kept = []
    for age in (TRACE_DAYS - 0.1, TRACE_DAYS + 0.1):
        retention.sweep(conn, T + age * DAY)
        kept.append((value(conn, "SELECT count(*) FROM turns"), value(conn, "SELECT count(*) FROM journal")))
    assert kept == [(1, 2), (0, 0)]
