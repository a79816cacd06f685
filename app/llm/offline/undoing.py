"""A message that is nothing but "undo": what our last receipt says to undo it by."""

import re
from collections.abc import Callable

from app.llm.offline.answers import undo_words
from app.llm.offline.plan import Planner
from app.llm.offline.steps import Plan
from app.search.words import fold, words

_UNDO = re.compile(
    r"\W*(?:(?:por favor|please|uy|ops|oops) )?(?:deshac\w*|deshaz\w*|desfaz\w*|desfac\w*|undo)"
    r"(?: (?:eso|esto|isso|isto|it|that|la instalacion|a instalacao|the install(?:ation)?))?\W*"
)


def is_undo(said: str) -> bool:
    """Whether a message is nothing but that the last thing be undone."""
    return _UNDO.fullmatch(fold(said)) is not None


def undoing(planner: Planner, before: str, answer: str, category_of: Callable[[str], str]) -> Plan:
    """What our last receipt said to undo it by, in the category of what it was a receipt of: a page that
    we told of may hold such words too."""
    plan = planner.plan(undo_words(answer))
    done = {category_of(step.tool) for step in planner.plan(before).steps}
    if done and any(category_of(step.tool) not in done for step in plan.steps):
        return Plan()
    return plan


def is_past_undoing(
    planner: Planner, said: str, before: str, answer: str, category_of: Callable[[str], str]
) -> bool:
    """Whether "undo" comes after a receipt of something that no tool takes back."""
    if not is_undo(said) or not answer.startswith("✓") or undo_words(answer):
        return False
    if " ".join(words(said)) in fold(answer):  # the receipt itself says so: "to get it back: undo"
        return False
    done = {category_of(step.tool) for step in planner.plan(before).steps}
    return bool(done) and done.isdisjoint(category_of(step.tool) for step in planner.plan(said).steps)
