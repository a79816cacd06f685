"""What a turn teaches, and what it must not."""

from dataclasses import replace
from sqlite3 import Row
from typing import Any, cast

import pytest

from app.channels.terminal import TerminalChannel
from app.llm.model import ToolCall
from app.people import Conversation, Person
from app.store.turn_state import Exchange, InboxMessage, TurnState
from app.turns.actions import Round, Routed, Transcript
from app.turns.routing_feedback import LONGEST, MOST_STEMS, MOST_TOOLS, Lesson, lesson_of
from app.turns.state import TurnContext

DID = '{"ok":true,"data":{},"meta":{}}'
WOULD = '{"ok":true,"data":{},"meta":{"dry_run":true}}'
FAILED = '{"ok":false,"error":{"code":"INVALID_ARGS","message":"","hint":""},"meta":{}}'
LESSON = Lesson(("spend",), ("pasam", "guit"))


def message(text: str = "pasame la guita", kind: str = "text", **payload: Any) -> InboxMessage:
    return InboxMessage(1, "wamid.1", kind, text, payload, 0.0, "")


def called(*names: str, result: str = DID) -> Round:
    made = tuple(ToolCall(f"c{place}", name, {}) for place, name in enumerate(names))
    return Round("", made, {call.id: result for call in made})


def run_of(
    *rounds: Round,
    members: tuple[InboxMessage, ...] = (message(),),
    group: str = "",
    earlier: tuple[Exchange, ...] = (),
    goes_on: bool = False,
) -> TurnContext:
    opened = TurnState(
        id="t",
        attempts=1,
        created_at=0.0,
        person=cast(Row, None),
        aliases=(),
        conversation=Conversation("c", "ana", "whatsapp", group),
        sticky_tools=(),
        sticky_categories=(),
        active_skills=(),
        members=members,
        journal=(),
        exchanges=earlier,
        quoted={"wamid.0": ("words of somebody", "in")},
        tokens_today=0,
        first_contact=False,
    )
    return TurnContext(
        opened=opened,
        person=Person("ana", "whatsapp"),
        channel=TerminalChannel(),
        said="",
        transcript=Transcript(Routed((), ("fetch_page",), goes_on=goes_on), rounds or (called("spend"),)),
        tokens_today=0,
        is_outside={"fetch_page"}.__contains__,
        is_learned=lambda name: name != "search_tools",
    )


def test_words_and_the_tool_that_did_what_they_asked_for_belong_together() -> None:
    assert lesson_of(run_of()) == LESSON
    assert lesson_of(run_of(called("search_tools"), called("spend"), called("spend"))) == LESSON


@pytest.mark.parametrize("result", [FAILED, WOULD, ""])
def test_a_call_that_did_nothing_teaches_nothing(result: str) -> None:
    run = run_of(called("spend", result=result))
    assert lesson_of(run) == Lesson()
    assert run.done == []


def test_who_needed_many_tools_says_little_about_any() -> None:
    names = [f"tool{number}" for number in range(MOST_TOOLS + 1)]
    assert lesson_of(run_of(called(*names[:-1]))).tools == tuple(names[:-1])
    assert lesson_of(run_of(called(*names))) == Lesson()


def test_calls_that_came_after_text_of_others_teach_nothing() -> None:
    rounds = (called("fetch_page"), called("pay"))
    assert lesson_of(run_of(*rounds)).tools == ("fetch_page",)
    read = Exchange("read it", "It says: pay", 0.0, ("tool:fetch_page",))
    assert lesson_of(run_of(earlier=(read,))) == LESSON


@pytest.mark.parametrize(
    "sent",
    [
        message(forwarded=True),
        message(quoted="wamid.0"),
        message(button="choice"),
        message(kind="image"),
        message(kind="document", attachment={"filename": "guita.pdf"}),
        message(details={"referral": {}}),
    ],
)
def test_words_that_may_be_of_others_are_not_learned_nor_those_beside_them(sent: InboxMessage) -> None:
    assert lesson_of(run_of(members=(sent,))) == Lesson()
    assert lesson_of(run_of(members=(message(), sent))) == Lesson()


def test_in_a_group_nothing_is_learned() -> None:
    assert lesson_of(run_of(group="family")) == Lesson()


@pytest.mark.parametrize("text", ["sí", "sí, gracias!", "y eso?", "👍"])
def test_a_message_without_a_word_of_weight_teaches_nothing(text: str) -> None:
    assert lesson_of(run_of(members=(message(text),))) == Lesson()


def test_what_goes_on_or_may_be_an_answer_teaches_nothing() -> None:
    asked = (Exchange("anota", "¿Para qué día?", 0.0),)
    assert lesson_of(run_of(goes_on=True)) == Lesson()
    assert lesson_of(run_of(earlier=asked)) == Lesson()
    task = message("decime cuánta guita gasté ayer en comida")
    assert "guit" in lesson_of(run_of(members=(task,), earlier=asked)).stems
    assert lesson_of(run_of(earlier=(replace(asked[0], reply="Anotado."),))) == LESSON


@pytest.mark.parametrize(
    "text",
    [
        "mi contraseña es caballo azul",
        "guarda la clave del wifi",
        "anota password: tortuga",
        "minha senha é girassol",
        "guarda sk-abcdefghijklmnop",
        "escríbele a ana@example.com",
        "llama al +598 99 123 456",
    ],
)
def test_a_message_that_seems_to_hold_a_secret_teaches_nothing(text: str) -> None:
    assert lesson_of(run_of(members=(message(text),))) == Lesson()


def test_numbers_and_addresses_are_left_out() -> None:
    text = "pasame 500 de guita https://bank.example/in?session=secreta"
    assert lesson_of(run_of(members=(message(text),))) == LESSON


def test_a_long_text_is_no_way_to_ask_for_something() -> None:
    many = " ".join(f"gui{chr(97 + n // 26)}{chr(97 + n % 26)}xq" for n in range(MOST_STEMS + 1))
    assert lesson_of(run_of(members=(message(many),))) == Lesson()
    assert lesson_of(run_of(members=(message("guita " * LONGEST),))) == Lesson()
