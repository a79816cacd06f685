"""Learned phrases: whose they are, how many there are, and what enough people share."""

from sqlite3 import Connection

import pytest

from app.messages import Sender
from app.people import Person
from app.store import learned_phrases, people, retention
from app.store.database import Database
from app.store.learned_phrases import MOST_PHRASES
from app.store.ownership import AccessRules
from app.store.retention import DAY, PHRASE_DAYS
from tests.store.rows import T, admit, freeze, value


def somebody(number: int) -> Sender:
    return Sender(phone=f"52155500001{number:02}")


async def taught(store: Database, number: int, *stems: str, tool: str = "spend") -> Person:
    """Somebody by whose words a tool was called."""

    def write(conn: Connection) -> Person:
        person = admit(conn, somebody(number))
        learned_phrases.learn(conn, person.id, [tool], stems, T)
        return person

    return await store.tx(write)


async def shared(store: Database, person: Person, *stems: str) -> dict[str, int]:
    _, found = await store.read(
        lambda conn: learned_phrases.matching_stems(conn, person.id, person.realm, stems)
    )
    return dict(found)


def kept(conn: Connection) -> list[str]:
    return [row["stems"] for row in conn.execute("SELECT stems FROM learned_phrases ORDER BY at, id")]


def test_the_same_phrase_counts_once_and_is_as_young_as_when_it_was_said_last(conn: Connection) -> None:
    ana = admit(conn).id
    for at, stems in enumerate([("guit", "ayer"), ("plat",), ("ayer", "guit")]):
        learned_phrases.learn(conn, ana, ["spend"], stems, T + at)
    assert kept(conn) == ["plat", "ayer guit"]
    assert value(conn, "SELECT count(*) FROM learned_stems") == 3


def test_of_more_phrases_than_a_tool_may_have_the_oldest_leaves(conn: Connection) -> None:
    ana = admit(conn).id
    learned_phrases.learn(conn, ana, ["earn"], ["other"], T)
    for number in range(MOST_PHRASES + 1):
        learned_phrases.learn(conn, ana, ["spend"], [f"w{number}"], T + 1 + number)
    assert kept(conn) == ["other", *(f"w{number}" for number in range(1, MOST_PHRASES + 1))]
    assert value(conn, "SELECT count(*) FROM learned_stems WHERE stem = 'w0'") == 0


def test_a_phrase_that_nobody_says_any_more_is_forgotten_with_its_stems(conn: Connection) -> None:
    learned_phrases.learn(conn, admit(conn).id, ["spend"], ["guit"], T)
    left = []
    for age in (PHRASE_DAYS - 0.1, PHRASE_DAYS + 0.1):
        retention.sweep(conn, T + age * DAY)
        left.append(value(conn, "SELECT count(*) FROM learned_stems"))
    assert left == [1, 0]


async def test_a_stem_is_shared_from_three_others_on(store: Database) -> None:
    asking = await taught(store, 0, "guit")
    for number in (1, 2):
        await taught(store, number, "guit", f"own{number}")
    await taught(store, 2, "guit", "again")
    assert await shared(store, asking, "guit", "own1", "own2") == {}
    await taught(store, 3, "guit", tool="earn")
    assert await shared(store, asking, "guit") == {}
    await taught(store, 3, "plat", "guit")
    await taught(store, 4, "guit", tool="earn")
    await taught(store, 5, "guit", tool="earn")
    assert await shared(store, asking, "guit", "own1", "own2", "plat") == {"earn": 1, "spend": 1}


@pytest.mark.parametrize("what", ["frozen", "blocked", "erased", "elsewhere"])
async def test_who_is_frozen_blocked_gone_or_of_another_realm_does_not_count(
    store: Database, what: str
) -> None:
    asking = await taught(store, 0, "other")
    several = [await taught(store, number, "guit") for number in (1, 2)]

    def change(conn: Connection) -> None:
        if what == "elsewhere":
            third = admit(conn, somebody(3), doors=AccessRules("simulator", open=True, code_key=b"c" * 32))
            learned_phrases.learn(conn, third.id, ["spend"], ["guit"], T)
        elif what == "frozen":
            freeze(conn, several[0].id)
        elif what == "blocked":
            people.block(conn, "whatsapp", somebody(1).phone, T)
        else:
            conn.execute("DELETE FROM people WHERE id = ?", (several[0].id,))

    if what != "elsewhere":
        await taught(store, 3, "guit")
        assert await shared(store, asking, "guit") == {"spend": 1}
    await store.tx(change)
    assert await shared(store, asking, "guit") == {}
