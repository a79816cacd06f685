"""The calls that a message asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.llm.offline.slots import Parameter
from app.messages import JSON
from app.search.phrases import Template


@dataclass(frozen=True)
class Step:
    """One call. `missing`: the required parameter to ask for first; `phrase`: what it was found by."""

    tool: str
    arguments: Mapping[str, JSON]
    missing: Parameter | None = None
    is_guess: bool = False  # a search for what a question may be about
    phrase: Template | None = field(default=None, compare=False)

    def says(self, other: "Step") -> bool:
        """Tell whether the same words ask for both, of two tools."""
        own, its = self.phrase, other.phrase
        return bool(own and its and own.phrase == its.phrase and self.arguments == other.arguments)


@dataclass(frozen=True)
class Plan:
    """The steps of a message, and its parts that no step is about.

    `lacking`: the number of lines of the list shown last, if the line that was picked is not one of them.
    `withheld`: a change is asked for by no clear order; `is_when_unclear`: at a time that is not understood.
    """

    steps: tuple[Step, ...] = ()
    unknown: tuple[str, ...] = ()
    lacking: int = 0
    withheld: bool = False
    is_when_unclear: bool = False
