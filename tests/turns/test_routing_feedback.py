"""What a turn teaches routing, and what it must not."""

from dataclasses import replace

import pytest

from app.store.turn_state import Exchange, InboxMessage
from app.tools import ToolResult
from app.turns.actions import Round
from app.turns.routing import LONGEST_MESSAGE, MOST_STEMS, MOST_TOOLS, RoutingFeedback, routing_feedback
from app.turns.state import TurnContext
from tests.turns.standins import Catalog, called, message, state_of, turn_of

FAILED = ToolResult.failure("INVALID_ARGS", "")
WOULD = ToolResult.success({}, dry_run=True)
NOTHING = RoutingFeedback()
LEARNED = RoutingFeedback(("spend",), ("pasam", "guit"))


def turn(
    *rounds: Round,
    members: tuple[InboxMessage, ...] = (message(),),
    earlier: tuple[Exchange, ...] = (),
    group: str = "",
    goes_on: bool = False,
) -> TurnContext:
    quoted = {"wamid.0": ("words of somebody", "in")}
    state = state_of(*members, group=group, exchanges=earlier, quoted=quoted)
    catalog = Catalog(outside={"fetch_page"})
    return turn_of(state, rounds or (called("spend"),), catalog, tools=("fetch_page",), goes_on=goes_on)


def test_words_and_the_tool_that_did_what_they_asked_for_belong_together() -> None:
    assert routing_feedback(turn()) == LEARNED
    assert routing_feedback(turn(called("search_tools"), called("spend"), called("spend"))) == LEARNED


@pytest.mark.parametrize("result", [FAILED, WOULD])
def test_a_call_that_did_nothing_teaches_nothing(result: ToolResult) -> None:
    one = turn(called("spend", value=result))
    assert routing_feedback(one) == NOTHING
    assert one.done_by_others == []


def test_who_needed_many_tools_says_little_about_any() -> None:
    names = [f"tool{number}" for number in range(MOST_TOOLS + 1)]
    assert routing_feedback(turn(called(*names[:-1]))).tools == tuple(names[:-1])
    assert routing_feedback(turn(called(*names))) == NOTHING


def test_calls_that_came_after_text_of_others_teach_nothing() -> None:
    rounds = (called("fetch_page"), called("pay"))
    assert routing_feedback(turn(*rounds)).tools == ("fetch_page",)
    read = Exchange("read it", "It says: pay", 0.0, ("tool:fetch_page",))
    assert routing_feedback(turn(earlier=(read,))) == LEARNED


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
    assert routing_feedback(turn(members=(sent,))) == NOTHING
    assert routing_feedback(turn(members=(message(), sent))) == NOTHING


def test_in_a_group_nothing_is_learned() -> None:
    assert routing_feedback(turn(group="family")) == NOTHING


@pytest.mark.parametrize("text", ["sí", "sí, gracias!", "y eso?", "👍"])
def test_a_message_without_a_word_of_weight_teaches_nothing(text: str) -> None:
    assert routing_feedback(turn(members=(message(text),))) == NOTHING


def test_what_goes_on_or_may_be_an_answer_teaches_nothing() -> None:
    asked = (Exchange("anota", "¿Para qué día?", 0.0),)
    assert routing_feedback(turn(goes_on=True)) == NOTHING
    assert routing_feedback(turn(earlier=asked)) == NOTHING
    task = message("decime cuánta guita gasté ayer en comida")
    assert "guit" in routing_feedback(turn(members=(task,), earlier=asked)).stems
    assert routing_feedback(turn(earlier=(replace(asked[0], reply="Anotado."),))) == LEARNED


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
    assert routing_feedback(turn(members=(message(text),))) == NOTHING


def test_numbers_and_addresses_are_left_out() -> None:
    text = "pasame 500 de guita https://bank.example/in?session=secreta"
    assert routing_feedback(turn(members=(message(text),))) == LEARNED


def test_a_long_text_is_no_way_to_ask_for_something() -> None:
    many = " ".join(f"gui{chr(97 + n // 26)}{chr(97 + n % 26)}xq" for n in range(MOST_STEMS + 1))
    assert routing_feedback(turn(members=(message(many),))) == NOTHING
    assert routing_feedback(turn(members=(message("guita " * LONGEST_MESSAGE),))) == NOTHING
