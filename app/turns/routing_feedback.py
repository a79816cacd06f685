"""What a turn teaches: the words in which a person asked for what tools then did."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.routing.feedback import stems_of
from app.search.words import spaced, words
from app.store.inbox import in_own_words
from app.tools.masking import mask_text
from app.turns.actions import Round
from app.turns.state import TurnContext
from app.turns.taint import sources

MOST_TOOLS = 3
"""Who needed more of them says little about any."""
MOST_STEMS = 24
LONGEST = 400
"""Characters. A longer message is material, and no way to ask for something."""
LEAST_IN_ANSWERS = 4
"""Stems: a shorter message after a question of ours may be its answer, and means nothing without it."""
_ADDRESS = re.compile(r"\S+://\S+")
_SECRETS = spaced(
    """
    password passwords passphrase passcode pin cvv cvc otp token secret credential credentials
    contrasena contrasenas clave claves secreto credencial credenciales senha senhas segredo
    """
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """These tools did what a message with these stems asked for; empty where nothing is learned."""

    tools: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()


def lesson_of(run: TurnContext) -> Lesson:
    """What a turn that was answered teaches.

    Nothing comes of words that are not all the person's own, that continue or answer, or that seem to hold
    a secret, and of calls that a model made once text of others had come into the turn.
    """
    tools = tuple(dict.fromkeys(_that_did(run)))
    if not tools or len(tools) > MOST_TOOLS:
        return Lesson()
    stems = _stems(run)
    return Lesson(tools, stems) if stems else Lesson()


def _that_did(run: TurnContext) -> Iterator[str]:
    """The tools whose calls succeeded."""
    for one in _own_rounds(run):
        for call in one.calls:
            if run.is_learned(call.name) and one.has_done(call):
                yield call.name


def _own_rounds(run: TurnContext) -> Iterator[Round]:
    """The rounds that were asked for before text of others came into the turn. What came with earlier turns
    counts for questions, and not here: it would be there for days."""
    opened, rounds = run.opened, run.transcript.rounds
    for number, one in enumerate(rounds):
        if sources(
            opened.members,
            opened.quoted,
            (),
            rounds[:number],
            (),
            in_group=run.in_group,
            is_outside=run.is_outside,
            offered=run.offered_by,
        ):
            return
        yield one


def _stems(run: TurnContext) -> tuple[str, ...]:
    members = run.opened.members
    said = "\n".join(one.text for one in members)
    if run.routed.goes_on or len(said) > LONGEST or _holds_secret(said):
        return ()
    if not all(in_own_words(one.kind, one.payload) for one in members):
        return ()
    stems = stems_of(_ADDRESS.sub(" ", said))
    if len(stems) > MOST_STEMS or (run.asked and len(stems) < LEAST_IN_ANSWERS):
        return ()
    return tuple(stems)


def _holds_secret(text: str) -> bool:
    return mask_text(text) != text or not _SECRETS.isdisjoint(words(text))
