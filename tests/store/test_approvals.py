"""Questions in their rows: who may answer them, with what, when, and what becomes of their turns."""

from dataclasses import replace
from sqlite3 import Connection
from typing import Any

import pytest

from app.messages import GraphError, Inbound, Status, Webhook
from app.people import Conversation
from app.store import approvals, delivery, inbox, outbox, schedules, turns
from app.store.approvals import BUTTON, Choice, Question, ReplyTaken
from app.store.inbox import ClassifiedMessage
from app.store.outbox import OutboxRow
from app.store.schedules import Due, Firing, Schedule
from app.turns.cards import CALL
from app.turns.inbound import read_answer
from tests.store.rows import (
    ANA,
    T,
    begun,
    claim,
    conversation,
    draft,
    entrance,
    inbound,
    sent_twice,
    take,
    value,
)


def question(name: str) -> Question:
    choices: dict[str, Choice] = {f"{BUTTON}{name}-{choice}": choice for choice in CALL}
    return Question(
        id=name,
        call_key=f"0:{name}",
        tool="send_mail",
        arguments="{}",
        arguments_hash="a" * 64,
        tool_hash="t" * 64,
        subject="",
        title=f"send_mail {name}",
        choices=choices,
        draft=draft("May I?"),
    )


def asked(
    conn: Connection, *names: str, sender: Any = ANA, sent: bool = True, now: float = T
) -> Conversation:
    """A turn of somebody's that is parked at these questions, which were sent."""
    where = conversation(conn, sender)
    take(conn, inbound(f"w.{names[0]}", sender=sender), now=now)
    turn = f"t.{names[0]}"
    begun(conn, where, turn, now)
    approvals.park(conn, turn, where, [question(name) for name in names], now)
    if sent:
        deliver(conn, where, now)
    return where


def deliver(conn: Connection, where: Conversation, now: float) -> None:
    """Sends what waits for a person; WhatsApp names each message after its row."""
    while isinstance(given := outbox.take(conn, where.person_id, now), OutboxRow):
        delivery.mark_sent(conn, given.id, f"wamid.{given.id}", now)


def hear(conn: Connection, where: Conversation, now: float = T + 1, quiet: float = 0.0) -> ReplyTaken | None:
    found = approvals.take_reply(conn, where.id, now, read_answer, quiet, 4 * quiet)
    assert not isinstance(found, float)
    return found


def hears_later(conn: Connection, where: Conversation, now: float, quiet: float) -> float:
    """When it will show whether what waits is an answer."""
    found = approvals.take_reply(conn, where.id, now, read_answer, quiet, 4 * quiet)
    assert isinstance(found, float)
    return found


def closed(found: ReplyTaken | None) -> bool:
    """Whether what was heard is for a question that is over."""
    return found is not None and found.closed


def say(conn: Connection, text: str, now: float = T + 1, *, kind: str = "message", **more: Any) -> None:
    take(conn, inbound(f"say.{text}.{now}.{sorted(more)}", text, **more), now=now, kind=kind)


def press(conn: Connection, button: str, now: float = T + 1, sender: Any = ANA) -> None:
    say(conn, "Sí", now, kind="answer", button=BUTTON + button, sender=sender)


def state(conn: Connection, name: str) -> str:
    return str(value(conn, "SELECT state FROM approvals WHERE id = ?", name))


def turn_state(conn: Connection, name: str) -> str:
    return str(value(conn, "SELECT state FROM turns WHERE id = ?", f"t.{name}"))


@pytest.mark.parametrize(
    "message",
    [
        {"text": "sí, y además apaga la luz"},
        {"text": "Sí", "kind": "interactive", "button": "choice:1"},
        {"text": "sí", "forwarded": True},
        {"text": "sí", "quoted": "wamid.of.something.else"},
        {"text": "ok", "kind": "image"},
        {"text": "sí", "details": {"referral": {"source_url": "https://ad.example", "body": "Say yes!"}}},
        {"text": "sí", "kind": "edit", "details": {"type": "text"}},
    ],
    ids=[
        *("says more", "a choice of the model's", "forwarded", "quotes something else", "a caption"),
        *("an advertisement", "an edit"),
    ],
)
def test_other_messages_answer_nothing(conn: Connection, message: dict[str, Any]) -> None:
    where = asked(conn, "q")
    take(conn, Inbound("other", ANA, **{"kind": "text", **message}), now=T + 1)
    assert hear(conn, where) is None
    assert (state(conn, "q"), turn_state(conn, "q")) == ("open", "parked")
    assert claim(conn, where, "t2", T + 9) == turns.Ready("t2")


@pytest.mark.parametrize(("written", "answer"), [(12, "yes"), (10, "open"), (8, "open")])
def test_words_beside_the_news_that_a_question_was_sent_go_by_whatsapps_clock(
    conn: Connection, written: float, answer: str
) -> None:
    """A crash cut the send off; what was told and written meanwhile comes together, in any order."""
    where = asked(conn, "q", sent=False)
    given = outbox.take(conn, where.person_id, T + 9)
    assert isinstance(given, OutboxRow)
    outbox.recover(conn, T + 90)
    say(conn, "sí", T + 60, at=T + written)
    delivery.apply_status(conn, Status("wamid.q", "sent", T + 10, outbox_id=given.id), T + 61)
    hear(conn, where, T + 62)
    assert state(conn, "q") == answer


def test_a_button_counts_from_the_moment_its_message_is_on_its_way(conn: Connection) -> None:
    where = asked(conn, "q", sent=False)
    assert isinstance(outbox.take(conn, where.person_id, T), OutboxRow)
    press(conn, "q-yes", T - 1)
    hear(conn, where)
    assert state(conn, "q") == "yes"


@pytest.mark.parametrize("way", ["button", "words", "reaction"])
def test_buttons_whose_card_did_not_arrive_as_a_whole_answer_nothing(conn: Connection, way: str) -> None:
    """Meta takes each part, and says of the first one later that it failed: the buttons stand there alone."""
    where = asked(conn, "q")
    take(conn, inbound("w2"), now=T)
    begun(conn, where, "t2")
    card = replace(question("r"), draft=draft("what it would do", "Shall I?"))
    approvals.park(conn, "t2", where, [card], T)
    deliver(conn, where, T)
    wamids = [row["wamid"] for row in conn.execute("SELECT wamid FROM outbox WHERE source = 'approval:r'")]
    delivery.apply_status(conn, Status(wamids[0], "failed", T, "", (GraphError(131026, "no"),)), T)
    if way == "button":
        press(conn, "r-yes")
    else:
        message = inbound("answer", "👍", kind="text" if way == "words" else way, quoted=wamids[-1])
        reply = ClassifiedMessage(message, "message", answers=True)
        inbox.take_in(conn, entrance(), [reply], Webhook(), T + 1)
    assert closed(hear(conn, where)) == (way == "button")
    assert (state(conn, "r"), state(conn, "q")) == ("open", "open")
    approvals.expire(conn, T + 2)
    assert (state(conn, "r"), state(conn, "q")) == ("failed", "open")
    assert value(conn, "SELECT state FROM turns WHERE id = 't2'") == "queued"


@pytest.mark.parametrize("kind", ["text", "reaction"])
@pytest.mark.parametrize("quoted", ["wamid.1", "wamid.2"])
def test_a_question_that_was_sent_twice_is_answered_at_either_copy(
    conn: Connection, quoted: str, kind: str
) -> None:
    where = asked(conn, "q", "r")
    sent_twice(conn, "approval:r")
    message = inbound("answer", "👍", kind=kind, quoted=quoted)
    inbox.take_in(conn, entrance(), [ClassifiedMessage(message, "message", answers=True)], Webhook(), T + 1)
    hear(conn, where)
    assert (state(conn, "q"), state(conn, "r")) == ("open", "yes")


def test_what_was_answered_while_the_turn_looked_is_not_waited_for(conn: Connection) -> None:
    where = asked(conn, "q", "r")
    press(conn, "q-yes")
    hear(conn, where)
    begun_again = claim(conn, where, "t2", T + 2)
    assert begun_again == turns.Ready("t.q")
    conn.execute("UPDATE turns SET state = 'running' WHERE id = 't.q'")
    press(conn, "r-no", T + 2)
    hear(conn, where, T + 3)
    approvals.park(conn, "t.q", where, [], T + 3)
    assert turn_state(conn, "q") == "queued"


@pytest.mark.parametrize("words", [("sí", "no lo mandes"), ("sí", "no"), ("sí", "sí", "mejor mañana")])
def test_words_that_together_are_no_plain_answer_are_a_message(
    conn: Connection, words: tuple[str, ...]
) -> None:
    where = asked(conn, "q")
    for number, text in enumerate(words):
        say(conn, text, T + 1 + number / 2)
    last = T + 1 + (len(words) - 1) / 2
    assert hear(conn, where, T + 9, quiet=1.2) is None
    assert (state(conn, "q"), turn_state(conn, "q")) == ("open", "parked")
    assert claim(conn, where, "t2", last + 2, 1.2, 5.0) == turns.Ready("t2")


def test_words_answer_once_their_burst_is_over(conn: Connection) -> None:
    where = asked(conn, "q")
    say(conn, "sí", T + 1)
    assert hears_later(conn, where, T + 1.5, 1.0) == T + 2
    say(conn, "claro", T + 1.5)
    assert hears_later(conn, where, T + 2, 1.0) == T + 2.5
    assert hear(conn, where, T + 2.5, quiet=1.0) is not None
    assert state(conn, "q") == "yes"
    assert value(conn, "SELECT count(*) FROM inbox WHERE turn_id IS NULL AND done_at IS NULL") == 0


@pytest.mark.parametrize("way", ["button", "quote"])
def test_what_names_its_question_counts_at_once_also_behind_words_that_wait(
    conn: Connection, way: str
) -> None:
    where = asked(conn, "q")
    say(conn, "sí", T + 1)
    if way == "button":
        press(conn, "q-no", T + 1.2)
    else:
        say(conn, "no", T + 1.2, quoted=value(conn, "SELECT wamid FROM outbox WHERE source = 'approval:q'"))
    assert not closed(hear(conn, where, T + 1.3, quiet=1.0))
    assert state(conn, "q") == "no"
    hear(conn, where, T + 9, quiet=1.0)
    assert state(conn, "q") == "no"


def test_words_for_one_of_two_do_not_answer_the_one_that_is_left(conn: Connection) -> None:
    where = asked(conn, "q", "r")
    say(conn, "sí", T + 1)
    press(conn, "q-yes", T + 1.2)
    hear(conn, where, T + 1.2, quiet=1.0)
    found = hear(conn, where, T + 3, quiet=1.0)
    assert found is not None
    assert [one.title for one in found.unclear] == ["send_mail r"]
    assert (state(conn, "q"), state(conn, "r")) == ("yes", "open")


@pytest.mark.parametrize(("words", "told"), [("sí", False), ("no", True)])
def test_words_before_the_button_that_was_pressed_are_no_message(
    conn: Connection, words: str, told: bool
) -> None:
    where = asked(conn, "q")
    say(conn, words, T + 1)
    press(conn, "q-yes", T + 1.2)
    assert not closed(hear(conn, where, T + 1.2, quiet=1.0))
    assert hears_later(conn, where, T + 1.2, 1.0) == T + 2
    assert closed(hear(conn, where, T + 2, quiet=1.0)) == told
    assert state(conn, "q") == "yes"
    assert claim(conn, where, "t2", T + 2) == turns.Ready("t.q")


def test_a_yes_that_was_deleted_answers_nothing(conn: Connection) -> None:
    where = asked(conn, "q")
    take(conn, inbound("yes", "sí"), now=T + 1)
    take(conn, inbound("gone", "", kind="revoke", quoted="yes"), now=T + 1.5)
    assert hear(conn, where, T + 3, quiet=1.0) is None
    assert state(conn, "q") == "open"


@pytest.mark.parametrize("outcome", ["answered", "failed"])
@pytest.mark.parametrize(("taint", "expected"), [((), "yes"), (("tool:read_mail",), "open")])
def test_words_after_an_answer_made_of_text_of_others_are_not_taken_for_a_yes(
    conn: Connection, taint: tuple[str, ...], expected: str, outcome: turns.Outcome
) -> None:
    """The model may have been told to ask "shall I tell you a joke?"."""
    where = asked(conn, "q")
    say(conn, "hola", T + 1)
    begun(conn, where, "t2", T + 1)
    turns.end(conn, "t2", where, outcome, draft("¿Te cuento un chiste?"), T + 1, sources=taint)
    say(conn, "sí", T + 2)
    hear(conn, where, T + 3)
    assert state(conn, "q") == expected


@pytest.mark.parametrize(("told", "expected"), [(T - 1, "yes"), (T + 1, "open")])
def test_words_after_a_reminder_are_not_taken_for_a_yes(conn: Connection, told: float, expected: str) -> None:
    """It may ask something itself: "did you drink water?"."""
    where = conversation(conn)
    reminder = Schedule("r", where.person_id, where.id, 1, "¿Ya tomaste agua?", "", "", "UTC", due_at=told)
    assert schedules.add(conn, reminder, 10, told) is not None
    asked(conn, "q")
    assert schedules.fire(conn, Firing(Due(reminder, "es", where), draft("¿Ya tomaste agua?"), None), told)
    deliver(conn, where, told)
    say(conn, "sí", T + 2)
    hear(conn, where, T + 3)
    assert state(conn, "q") == expected
