"""What rankings of tools say: which a message needs, which are of use, which does for another."""

import pytest

from app.routing.intent import Intent
from app.routing.rankings import Ranked, Rankings, rank_tools
from app.search import Document, ToolIndex
from app.search.scoring import Parts

TOOLS = {
    "rain": "weather",
    "wind": "weather",
    "save": "notes",
    "list": "notes",
    "zoo": "quiet",
    "ape": "quiet",
}


def ranking(**known: tuple[float, float]) -> list[Ranked]:
    """The tools of a text, best first: score and coverage of each."""
    return [
        Ranked(name, TOOLS[name], "", score, 1.0, share, 0.0, Parts())
        for name, (score, share) in known.items()
    ]


def rankings(*each: list[Ranked]) -> Rankings:
    return Rankings(each, TOOLS)


def test_names_come_by_turns_from_each_text() -> None:
    both = rankings(ranking(rain=(1.0, 1.0), wind=(0.9, 1.0)), ranking(save=(0.5, 1.0)))
    assert both.heads() == both.fitting() == ["rain", "save", "wind"]


@pytest.mark.parametrize(
    ("found", "heads"),
    [
        (ranking(rain=(1.0, 0.1), wind=(0.6, 0.2)), ["rain", "wind"]),
        (ranking(rain=(1.0, 0.1), wind=(0.59, 1.0)), ["rain"]),
        (ranking(rain=(1.0, 0.1), wind=(1.0, 0.19)), ["rain"]),
        (ranking(rain=(1.0, 0.0), wind=(1.0, 0.0)), []),
        (
            ranking(rain=(1.0, 1.0), wind=(1.0, 1.0), save=(1.0, 1.0), list=(1.0, 1.0)),
            ["rain", "wind", "save"],
        ),
    ],
)
def test_the_few_that_are_nearly_as_good_and_know_enough_stand_beside_the_first(
    found: list[Ranked], heads: list[str]
) -> None:
    assert rankings(found).heads() == heads


def test_of_use_is_what_has_a_fifth_of_the_first_ones_worth() -> None:
    assert rankings(ranking(rain=(1.0, 0.0), wind=(0.2, 0.0), save=(0.19, 1.0))).fitting() == ["rain", "wind"]


@pytest.mark.parametrize(
    ("rain", "save", "margin", "vital"),
    [(0.6, 0.5, 0.0, ["rain"]), (0.6, 0.5, 0.2, ["save"]), (0.5, 0.5, 0.0, ["save"]), (0.1, 0.1, 0.0, [])],
)
def test_another_category_takes_a_text_only_where_it_knows_more_of_the_words(
    rain: float, save: float, margin: float, vital: list[str]
) -> None:
    found = rankings(ranking(rain=(1.0, rain), save=(0.9, save), list=(0.5, 0.0)))
    assert found.vital(("notes",), margin) == vital


def test_a_category_comes_with_those_that_fit_first_and_the_others_by_name() -> None:
    found = rankings(ranking(save=(0.9, 1.0), wind=(0.8, 1.0)))
    assert list(dict.fromkeys(found.siblings(("weather",)))) == ["wind", "rain"]
    assert [found.best_of(one) for one in ("weather", "quiet", "gone")] == ["wind", "ape", None]


@pytest.mark.parametrize(
    ("wind", "answered"), [((0.7, 0.5), True), ((0.69, 1.0), False), ((1.0, 0.49), False)]
)
def test_a_tool_that_is_had_answers_where_it_is_nearly_as_good_and_knows_as_much(
    wind: tuple[float, float], answered: bool
) -> None:
    found = rankings(ranking(rain=(1.0, 0.5), wind=wind))
    assert found.is_answered("rain", ("wind",)) is answered
    assert not found.is_answered("rain", ("save",))


def test_what_was_learned_is_of_the_message_and_takes_no_place_from_what_its_words_find() -> None:
    index = ToolIndex(Document(name, name, f"About {name}", category) for name, category in TOOLS.items())
    intent = Intent(("notes",), ("save",), source="model")
    found = rank_tools(intent, "wind", index, TOOLS, {"zoo": 0.5, "gone": 1.0}, 4)
    of_phrase, of_words, of_message = found.each
    assert {(one.name, one.phrase, one.boost, one.learned) for one in of_phrase} == {
        ("save", "save", 1.25, 0)
    }
    assert [(one.name, one.learned) for one in of_words] == [("wind", 0)]
    assert {(one.name, one.phrase, one.boost) for one in of_message} == {("wind", "", 1.0), ("zoo", "", 1.0)}
    assert next(one for one in of_message if one.name == "zoo").learned == pytest.approx(0.35)
    assert rank_tools(intent, "thanks!", index, TOOLS, {}, 4).each == []
