"""The lines and sentences of a message, and which of them go on with the one before."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.llm.offline.steps import Step
from app.llm.smalltalk import small_talk

LONGEST_PLANNED = 2_000


@dataclass(frozen=True, slots=True)
class Part:
    """A line or a sentence, what stood between it and the part before, and what it asks for by itself."""

    text: str
    steps: Sequence[Step]
    gap: str = "\n"


def halved(said: str) -> tuple[str, str]:
    """What is planned of a message, and the rest of one that is too long."""
    if len(said) <= LONGEST_PLANNED:
        return said, ""
    cut = max(said.rfind(" ", 0, LONGEST_PLANNED), said.rfind("\n", 0, LONGEST_PLANNED))
    at = cut if cut > 0 else LONGEST_PLANNED
    return said[:at], said[at:].rstrip()


def may_go_on(part: Part) -> bool:
    """Whether what comes next may belong to this part."""
    if not part.steps:
        return part.text.endswith(":")
    last = part.steps[-1]
    return bool(last.open) or last.missing is not None or part.text.endswith(":")


def belongs(part: Part, opener: Part, is_last: bool) -> bool:
    """Whether a part goes on with the text that `opener` began: all that asks for nothing by itself does.

    After a colon at the end of a line that is everything but a question.
    """
    asks = bool(part.steps) and not part.steps[0].guessed
    question = part.text.endswith("?")
    if opener.text.endswith(":"):
        return not (asks and question)
    if asks or (part.steps and question):
        return False
    return not (is_last and small_talk(part.text) is not None)
