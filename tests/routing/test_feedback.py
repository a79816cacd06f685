"""Routing feedback: fits by earlier messages, and what they do to a selection."""

import pytest

from app.people import Person
from app.routing.classifier import IntentRequest, goes_on, shortlist
from app.routing.feedback import LONGEST_STEM, SCORE_SHARE, SHARED_SHARE, Fits, fits, overlaid, stems_of
from app.routing.intent import Intent
from app.routing.selector import Chosen, select_tools
from app.search.index import Document, Hit, ToolIndex
from app.store.learned_phrases import OwnStem


@pytest.mark.parametrize(
    ("said", "stems"),
    [
        ("pásame la guita", ["pasam", "guit"]),
        ("Guita, guita y GUITA", ["guit"]),
        ("sí, gracias", []),
        ("que me lo", []),
        ("", []),
        ("llama al 099123456 el 3er piso", ["llam", "pis"]),
        ("x" * (LONGEST_STEM + 1), []),
    ],
)
def test_the_words_that_carry_meaning_are_what_can_be_learned(said: str, stems: list[str]) -> None:
    assert stems_of(said) == stems


def phrase(number: int, tool: str, held: int, size: int) -> list[OwnStem]:
    """A phrase of `size` stems, of which a message holds the first ones."""
    return [OwnStem(tool, number, f"s{place}", 1 / size) for place in range(held)]


@pytest.mark.parametrize(
    ("asked", "held", "size", "fit"), [(3, 3, 3, 1.0), (2, 1, 2, 0.25), (1, 1, 10, 0.1), (10, 1, 1, 0.1)]
)
def test_a_fit_is_the_share_of_the_message_times_that_of_the_phrase(
    asked: int, held: int, size: int, fit: float
) -> None:
    assert fits(asked, phrase(1, "spend", held, size), {})["spend"] == pytest.approx(fit)


def test_twenty_phrases_say_no_more_than_the_one_that_is_most_like_the_message() -> None:
    many = [stem for number in range(20) for stem in phrase(number, "spend", 1, 4)]
    assert fits(2, [*many, *phrase(20, "spend", 2, 2)], {}) == {"spend": pytest.approx(1.0)}
    assert fits(2, many, {}) == {"spend": pytest.approx(1 / 8)}


def test_a_word_that_was_learned_for_several_tools_says_less_of_each() -> None:
    both = fits(1, [*phrase(1, "spend", 1, 1), *phrase(2, "earn", 1, 1)], {})
    assert both["spend"] == both["earn"] < 0.5 < fits(1, phrase(1, "spend", 1, 1), {})["spend"]


def test_what_others_say_counts_little_however_much_of_it_there_is() -> None:
    assert fits(64, [], {"spend": 64}) == {"spend": pytest.approx(SHARED_SHARE)}
    assert fits(2, phrase(1, "spend", 2, 2), {"spend": 2}) == {"spend": pytest.approx(1.0)}


def test_a_ranking_has_what_was_learned_mixed_in() -> None:
    hits = [Hit("a", 0.6, 1.0), Hit("b", 0.5, 0.4)]
    assert overlaid(hits, {}) == hits
    mixed = overlaid(hits, {"b": 0.5, "c": 0.25})
    assert [hit.id for hit in mixed] == ["b", "a", "c"]
    assert mixed[0] == Hit("b", 0.5 + SCORE_SHARE * 0.5, 0.5)
    assert mixed[2] == Hit("c", SCORE_SHARE * 0.25, 0.25)
    assert overlaid(hits, {"a": 1.0})[0].score == 1.0


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
