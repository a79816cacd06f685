"""What was learned of a person's words, in the choice of tools and of categories."""

import pytest

from app.people import Person
from app.routing.classifier import IntentRequest, goes_on, shortlist
from app.routing.feedback import Fits
from app.routing.intent import Intent
from app.routing.selector import Chosen, select_tools
from app.search.index import Document, ToolIndex

SAID = "zurupeta kwyjibo"
TOOLS = {f"measure_{number}": "meters" for number in range(12)} | {
    "list_expenses": "money",
    "get_forecast": "weather",
}


@pytest.fixture
def index() -> ToolIndex:
    return ToolIndex(Document(name, name, f"Does {name}", category) for name, category in TOOLS.items())


def chosen(
    index: ToolIndex, learned: Fits, *, said: str = SAID, intent: Intent | None = None
) -> list[Chosen]:
    return list(select_tools(intent or Intent(), said, index, TOOLS, learned=learned, limit=2))


def request(said: str, learned: Fits, *sticky: str, asked: bool = False) -> IntentRequest:
    described = tuple((category, "x" * 160) for category in {*TOOLS.values()})
    many = tuple((f"filler{number:02}", "y" * 160) for number in range(60))
    return IntentRequest(
        said, Person("p", "whatsapp"), (*described, *many), asked=asked, sticky=sticky, learned=learned
    )


def test_words_that_no_tool_knows_bring_the_tool_they_were_learned_for(index: ToolIndex) -> None:
    assert "list_expenses" not in [one.name for one in chosen(index, {})]
    (one,) = chosen(index, {"list_expenses": 0.5})[:1]
    assert (one.name, one.why, one.phrase) == ("list_expenses", "words", "")
    assert one.learned == one.score == 0.35


def test_tools_that_are_gone_or_not_this_persons_are_not_ranked(index: ToolIndex) -> None:
    assert chosen(index, {"gone": 1.0}) == chosen(index, {})
    assert shortlist(request(SAID, {"gone": 1.0}), index) == shortlist(request(SAID, {}), index)


def test_what_was_learned_is_of_the_message_and_not_of_phrases_for_it(index: ToolIndex) -> None:
    intent = Intent(("weather",), ("forecast",), "es", "model")
    names = {one.name: one for one in chosen(index, {"list_expenses": 0.5}, intent=intent)}
    assert names["get_forecast"].learned == 0
    assert names["list_expenses"].learned > 0


def test_a_learned_tool_puts_its_category_before_the_classifier(index: ToolIndex) -> None:
    shown = [name for name, _ in shortlist(request("zzzz", {}), index)]
    assert "money" not in shown
    shown = [name for name, _ in shortlist(request("zzzz", {"list_expenses": 0.3}), index)]
    assert "money" in shown


def test_a_short_message_of_learned_words_is_no_answer_to_what_went_before(index: ToolIndex) -> None:
    assert goes_on(request("la zurupeta", {}, "weather", asked=True), index)
    assert not goes_on(request("la zurupeta", {"list_expenses": 0.5}, "weather", asked=True), index)
