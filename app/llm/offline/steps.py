"""What a message asks for: calls in their order."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.llm.offline.offers import Parameter
from app.messages import JSON


@dataclass(frozen=True, slots=True)
class Step:
    """One call; `missing` is the required parameter that the person has to be asked for first.

    `guessed`: only the index found it, no example phrase; too little to take a sentence apart for.
    `open` names the argument that ran to the end of what was said: prose that may go on.
    `beside`: belongs to the same question as the step before, so that both may run at once.
    """

    tool: str
    arguments: Mapping[str, JSON]
    missing: Parameter | None = None
    guessed: bool = False
    open: str = ""
    beside: bool = False


def is_sure(step: Step) -> bool:
    """Whether an example phrase led to it, and nothing is missing."""
    return step.missing is None and not step.guessed


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps a message asks for, and the parts of it that none of them is about.

    `lacking`: how many lines the list has that was told last, where the one that was picked is none of them,
    or may be several; else 0.
    """

    steps: tuple[Step, ...] = ()
    unknown: tuple[str, ...] = ()
    lacking: int = 0
