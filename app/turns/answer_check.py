"""Check an answer before it is sent: a guest's for what was made up, any for deeds that no tool did.

A small model writes "I added it" without a call. What it says is compared with the calls of the turn.
"""

import re
from dataclasses import dataclass
from typing import Literal

from app.i18n import say, word_tables
from app.turns import claims
from app.turns.state import TurnContext

# Each language in its own spelling: without accents "anoté" would be "anote".
_DEEDS = {name: "|".join(words.split()) for name, words in word_tables()["deeds"].items()}
_SAYS = {name: "|".join(listed) for name, listed in word_tables()["tells_of_deeds"].items()}
_DONE = {**_DEEDS, **{name: _SAYS[name].format(**_DEEDS) for name in ("done_es", "done_pt", "done_en")}}
_DID = re.compile(rf"(?<!\w)(?:{_SAYS['did']}|{_SAYS['will']})(?!\w)|{_SAYS['at_once']}".format(**_DONE))
_STANDS = re.compile(rf"(?<!\w)(?:{_SAYS['is_done']})(?!\w)".format(**_DONE))
_NOT = re.compile(rf"\b(?:{_SAYS['not']})\b|n['’]t\b")
_IF = re.compile(rf"\b(?:{_SAYS['if']})\b")
_EARLIER = re.compile(rf"\b(?:{_SAYS['earlier']})\b")
_QUOTED = re.compile(r"“[^“”]*”|«[^«»]*»|\"[^\"\n]*\"|`[^`]*`")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*")


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
    if not turn.person.is_guest or turn.asks:
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
        without(answer, found) or unknown,
    )


def _not_done(turn: TurnContext, answer: str) -> AnswerFault | None:
    """Look for "I added it" and "I will remind you" in an answer before which no tool changed anything."""
    finished = turn.transcript.finished
    reading = turn.tools.read_only()
    if any(result.dry_run or (result.ok and call.name not in reading) for call, result in finished):
        return None
    earlier = any(call.changed for exchange in turn.state.exchanges for call in exchange.calls)
    has_read = earlier or any(result.ok for _, result in finished)
    if not (found := claimed(answer, read_something=has_read)):
        return None
    listed = " ".join(found)
    rest = without(answer, found)
    denial = say(turn.person.language, "I have not done that. Ask me for it again, in one short sentence.")
    return AnswerFault(
        "not done",
        f"it says that something was or will be done, but no tool did it: {listed} Call the tool that does "
        "it if you have one; else answer again, in the same language, and say plainly that it is not done.",
        f"{rest}\n\n{denial}".strip(),
    )


def claimed(answer: str, *, read_something: bool) -> list[str]:
    """Return the sentences that say that the assistant did something, or will.

    `read_something`: a tool told how things stand, so "it is booked" says no more than that.
    """
    sentences = filter(str.strip, _SENTENCE.findall(answer))
    return [one for one in sentences if _claims(one, read_something=read_something)]


def without(answer: str, sentences: list[str]) -> str:
    """Return an answer without these sentences."""
    for sentence in sentences:
        answer = answer.replace(sentence, "", 1)
    return re.sub(r"(?<![ \t])[ \t]+\n|\n{3,}", "\n\n", answer).strip()


def _claims(sentence: str, *, read_something: bool) -> bool:
    said = _QUOTED.sub("…", sentence.strip(" \t*_-•").casefold())
    if said.endswith("?") or "¿" in said or _EARLIER.search(said):
        return False
    patterns = (_DID,) if read_something else (_DID, _STANDS)
    negated, doubted = _NOT.search(said), _IF.search(said)
    first_not = negated.end() if negated else len(said) + 1
    first_if = doubted.end() if doubted else len(said) + 1
    found = (match for pattern in patterns for match in pattern.finditer(said))
    return any(one.end() < first_not and one.start() < first_if for one in found)
