"""What learned phrases say of a message, and how that goes into a ranking."""

import pytest

from app.routing.feedback import LONGEST_STEM, SCORE_SHARE, SHARED_SHARE, fits, overlaid, stems_of
from app.search.index import Hit
from app.store.learned_phrases import OwnStem, SharedStem


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
    ("asked", "held", "size", "fit"),
    [(3, 3, 3, 1.0), (2, 1, 2, 0.25), (1, 1, 10, 0.1), (10, 1, 1, 0.1)],
)
def test_a_fit_is_the_share_of_the_message_times_that_of_the_phrase(
    asked: int, held: int, size: int, fit: float
) -> None:
    assert fits(asked, phrase(1, "spend", held, size), [])["spend"] == pytest.approx(fit)


def test_twenty_phrases_say_no_more_than_the_one_that_is_most_like_the_message() -> None:
    many = [stem for number in range(20) for stem in phrase(number, "spend", 1, 4)]
    assert fits(2, [*many, *phrase(20, "spend", 2, 2)], []) == {"spend": pytest.approx(1.0)}
    assert fits(2, many, []) == {"spend": pytest.approx(1 / 8)}


def test_a_word_that_was_learned_for_several_tools_says_less_of_each() -> None:
    both = fits(1, [*phrase(1, "spend", 1, 1), *phrase(2, "earn", 1, 1)], [])
    assert both["spend"] == both["earn"] < 0.5 < fits(1, phrase(1, "spend", 1, 1), [])["spend"]


def test_what_others_say_counts_little_however_much_of_it_there_is() -> None:
    stems = [SharedStem("spend", f"s{place}") for place in range(64)]
    assert fits(64, [], stems) == {"spend": pytest.approx(SHARED_SHARE)}
    assert fits(2, phrase(1, "spend", 2, 2), stems[:2]) == {"spend": pytest.approx(1.0)}


def test_a_ranking_has_what_was_learned_mixed_in() -> None:
    hits = [Hit("a", 0.6, 1.0), Hit("b", 0.5, 0.4)]
    assert overlaid(hits, {}) == hits
    mixed = overlaid(hits, {"b": 0.5, "c": 0.25})
    assert [hit.id for hit in mixed] == ["b", "a", "c"]
    assert mixed[0] == Hit("b", 0.5 + SCORE_SHARE * 0.5, 0.5)
    assert mixed[2] == Hit("c", SCORE_SHARE * 0.25, 0.25)
    assert overlaid(hits, {"a": 1.0})[0].score == 1.0
