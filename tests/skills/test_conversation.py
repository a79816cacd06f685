"""The skill `conversation` through the chat: a person's own past, found by words and days."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from babel.dates import format_skeleton

from app.memory.history import History
from app.people import Person

HOME = ZoneInfo("America/New_York")  # of the stand-in's people, by their numbers


def test_what_was_said_is_found_by_its_words_and_by_nobody_else(offline_town):
    graph, person, other = offline_town.graph, offline_town.newcomer(), offline_town.newcomer()
    graph.say(person, "el plomero se llama Benjamín")
    graph.reply(person)
    graph.say(person, "qué te dije sobre el plomero?")
    answer = graph.reply(person, 2)
    assert "Benjamín" in answer
    assert format_skeleton("MMMEd", datetime.now(HOME), locale="es") in answer
    graph.say(other, "¿qué te dije sobre el plomero?")
    answer = graph.reply(other)
    assert "Benjamín" not in answer
    assert "No encontré" in answer


@pytest.fixture
async def store(store):
    await store.tx(_people)
    return store


def _people(conn):
    for person in ("ana", "bo"):
        conn.execute("INSERT INTO people (id, realm, created_at) VALUES (?, 'simulator', 0)", (person,))
        for group in ("", "family"):
            conn.execute(
                "INSERT INTO conversations (id, person_id, channel, group_id, created_at)"
                " VALUES (?, ?, 'simulator', ?, 0)",
                (f"{person}{group}", person, group),
            )


def _say(conn, text, at, *, person="ana", group="", taint="", state="done", direction="in", payload="{}"):
    turn = f"turn_{at}_{direction}"
    conn.execute(
        "INSERT INTO turns (id, person_id, conversation_id, state, taint, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (turn, person, f"{person}{group}", state, taint, at),
    )
    conn.execute(
        "INSERT INTO messages (person_id, conversation_id, direction, kind, text, payload, turn_id, at)"
        " VALUES (?, ?, ?, 'text', ?, ?, ?, ?)",
        (person, f"{person}{group}", direction, text, payload, turn, at),
    )


ANA = Person("ana", "simulator")


async def test_only_finished_turns_of_the_persons_own_chats_are_searched(store):
    def write(conn):
        _say(conn, "Compré DIEZ manzanas", 1)
        _say(conn, "diez peras y diez uvas", 2, direction="out")
        _say(conn, "diez de otra", 3, person="bo")
        _say(conn, "diez del grupo", 4, group="family")
        _say(conn, "diez que aún no", 5, state="running")

    await store.tx(write)
    found = await History(store).search(ANA, "diez")
    assert [(one.text, one.by_person) for one in found] == [
        ("diez peras y diez uvas", False),
        ("Compré DIEZ manzanas", True),
    ]
    best, *_ = await History(store).search(ANA, "manzanas diez")
    assert best.text == "Compré DIEZ manzanas"
    (between,) = await History(store).search(ANA, since=2, until=3)
    assert between.text == "diez peras y diez uvas"


async def test_text_of_others_stays_marked(store):
    def write(conn):
        _say(conn, "lee esto", 1)
        _say(conn, "reenviado", 2, payload='{"forwarded": true}')
        _say(conn, "dice la página", 3, direction="out", taint="tool:fetch_page")
        conn.execute(
            "INSERT INTO messages (person_id, conversation_id, direction, kind, text, at)"
            " VALUES ('ana', 'ana', 'out', 'text', 'un recordatorio', 4)"
        )

    await store.tx(write)
    found = await History(store).search(ANA)
    assert [(one.text, one.outside) for one in found] == [
        ("un recordatorio", True),
        ("dice la página", True),
        ("reenviado", True),
        ("lee esto", False),
    ]
