"""Long conversations in three languages with planted facts, and questions in other words."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DAY = 86_400.0
START = 1_740_000_000.0

TALKS = yaml.safe_load(Path(__file__).with_name("talks.yaml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Talk:
    """Messages and questions in the form that `recado eval recall` reads; `shares`: a word with the fact."""

    history: list[dict[str, Any]]
    questions: list[dict[str, Any]]


def talks(people: int, exchanges: int, seed: int = 1) -> Talk:
    """Return the conversations of so many people; each has all facts of one language at random places."""
    rng = random.Random(seed)
    talk = Talk([], [])
    for number in range(people):
        language = ("es", "pt", "en")[number % 3]
        _converse(talk, f"person{number}", language, exchanges, rng)
    return talk


def _converse(talk: Talk, person: str, language: str, exchanges: int, rng: random.Random) -> None:
    facts = TALKS["facts"][language]
    planted = dict(zip(rng.sample(range(exchanges), len(facts)), facts, strict=True))
    for number in range(exchanges):
        at = START + number * DAY / 4
        asked, answered = _daily(language, rng)
        if fact := planted.get(number):
            text, direction, shared, other = fact
            asked, answered = (text, answered) if direction == "in" else (asked, text)
            id = f"{person}:{number}:{direction}"
            for query, shares in ((shared, True), (other, False)):
                question = {"person": person, "query": query, "relevant": [id], "shares": shares}
                talk.questions.append(question)
        for who, text, direction in ((person, asked, "in"), ("assistant", answered, "out")):
            talk.history.append(
                {"person": person, "id": f"{person}:{number}:{direction}", "at": at, "who": who, "text": text}
            )


def _daily(language: str, rng: random.Random) -> Iterator[str]:
    daily = TALKS["daily"][language]
    slots = {slot: rng.choice(daily[slot]) for slot in ("when", "what", "who")}
    return (rng.choice(daily[forms]).format(**slots) for forms in ("said", "answers"))
