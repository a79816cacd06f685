"""One of the two hours that we asked about, picked in few words: "pm", "a las 17", "da tarde"."""

import re
from collections.abc import Sequence

from app.calendar.grammar import pieces
from app.llm.offline.answers import hours_asked
from app.llm.offline.lists import ORDINALS
from app.search.words import fold, spaced, words

_HALF = re.compile(r"\b([ap])\.? ?m\b\.?")
_BEFORE_NOON = spaced("am manana manha morning madrugada")
_AFTER_NOON = spaced("pm tarde noche noite afternoon evening night")
_WITH_HOUR = spaced(
    "a as las la las los el o os the at in de da do del por en em na pela si sim yes ok mejor melhor one es e"
    " is it pues horas hs h opcion opcao option claro que digo quise decir mean meant i perdon desculpa sorry"
)
_MOST_HOUR_WORDS = 6


def with_hour(before: str, answer: str, said: str, language: str) -> str:
    """`before` with the hour that `said` picks of the two that our `answer` asked about.

    "" where we asked of none, or `said` picks none.
    """
    asked = hours_asked(answer)
    at = _hour_picked(_HALF.sub(r"\1m ", fold(said)), asked) if asked else None
    if at is None:
        return ""
    told = [piece for piece in pieces(before, language) if piece.kind == "clock"]
    if len(told) != 1:
        return ""
    return f"{before[: told[0].start]} {asked[at]} {before[told[0].end :]}".strip()


def _hour_picked(said: str, asked: Sequence[str]) -> int | None:
    """The place of the hour among those asked about."""
    hours = [int(one.partition(":")[0]) for one in asked]
    found = words(re.sub(r":\d\d", "", said))
    known = _WITH_HOUR | _BEFORE_NOON | _AFTER_NOON
    if len(found) > _MOST_HOUR_WORDS:
        return None
    if not all(word in known or word in ORDINALS or word.isdecimal() for word in found):
        return None
    named = next((int(word) for word in found if word.isdecimal()), None)
    if named is not None and named % 12 not in {hour % 12 for hour in hours}:
        return None
    if set(found) & _AFTER_NOON:
        return hours.index(max(hours))
    if set(found) & _BEFORE_NOON:
        return hours.index(min(hours))
    if named is not None:
        return hours.index(named) if named > 12 or re.search(r"\b0\d", said) else None
    place = next((ORDINALS[word] for word in found if word in ORDINALS), None)
    return {1: 0, 2: 1, 0: 1}.get(place) if place is not None else None
