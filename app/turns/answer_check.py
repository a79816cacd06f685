"""Check an answer before it is sent: a guest's for what was made up, any for deeds that no tool did."""

from dataclasses import dataclass
from typing import Literal

from app.i18n import say
from app.turns import claims, deeds
from app.turns.state import TurnContext


@dataclass(frozen=True, slots=True)
class AnswerFault:
    """A fault of an answer: `correction` tells the model, `honest` is the answer that the person may get."""

    kind: Literal["made up", "not done"]
    correction: str
    honest: str


def find_fault(turn: TurnContext, answer: str, *, offline: bool) -> AnswerFault | None:
    """Return what is wrong with an answer of a model, None if nothing is. Takes time for a long answer."""
    return _made_up(turn, answer) or (None if offline else _not_done(turn, answer))


def _made_up(turn: TurnContext, answer: str) -> AnswerFault | None:
    """Look for prices, dates and the like, in an answer to a guest, that stand nowhere."""
    if not turn.is_checked:
        return None
    if not (found := claims.unsupported(answer, turn.prompt.given, turn.prompt.moment)):
        return None
    listed = " ".join(found)
    unknown = say(
        turn.person.language, "That I do not know. If you like, say that you want to talk to a person."
    )
    return AnswerFault(
        "made up",
        f"what it tells here stands in no result and in nothing that was said: {listed} Answer again, in the "
        "same language, without that and without other figures that you were not given; say plainly what "
        "you do not know, and offer a person of the business.",
        deeds.without(answer, found) or unknown,
    )


def _not_done(turn: TurnContext, answer: str) -> AnswerFault | None:
    """Look for "I added it" and "I will remind you" in an answer before which no tool changed anything."""
    finished = [(call, result) for one in turn.transcript.rounds for call, result in one.finished]
    reading = turn.tools.read_only()
    if any(result.dry_run or (result.ok and call.name not in reading) for call, result in finished):
        return None
    earlier = any(call.changed for exchange in turn.state.exchanges for call in exchange.calls)
    has_read = earlier or any(result.ok for _, result in finished)
    if not (found := deeds.claimed(answer, read_something=has_read)):
        return None
    listed = " ".join(found)
    rest = deeds.without(answer, found)
    denial = say(turn.person.language, "I have not done that. Ask me for it again, in one short sentence.")
    return AnswerFault(
        "not done",
        f"it says that something was or will be done, but no tool did it: {listed} Call the tool that does "
        "it if you have one; else answer again, in the same language, and say plainly that it is not done.",
        f"{rest}\n\n{denial}".strip(),
    )
