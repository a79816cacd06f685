"""Answers to open questions, taken out of the queue before a turn could claim them as messages."""

from collections.abc import Mapping
from sqlite3 import Connection

from app.i18n import say
from app.messages import Channel
from app.store import heard
from app.store.heard import Heard, NotYet
from app.store.outbox import Draft, put_notice
from app.turns.answers import read_answer


class Hearing:
    """Hears what was said in a conversation; the transaction is its caller's."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    def hear(
        self, conn: Connection, conversation: str, now: float, quiet: float, longest: float
    ) -> tuple[str, float]:
        """Takes every answer out of the queue; `quiet` and `longest` bound a burst (see `turns.claim`).

        Gives the person who is to get a notice, or "", and when to look again at words that may be one, or 0.
        """
        told = ""
        while (found := heard.hear(conn, conversation, now, read_answer, quiet, longest)) is not None:
            if isinstance(found, NotYet):
                return told, found.at
            if found.unclear or found.closed:
                self._tell(conn, conversation, found, now)
                told = found.person
        return told, 0.0

    def _tell(self, conn: Connection, conversation: str, found: Heard, now: float) -> None:
        to, language = heard.addressee(conn, conversation)
        channel = self._channels.get(to.channel)
        if channel is not None:  # else of another realm: nobody there could read it
            put_notice(conn, to, f"heard:{found.inbox}", _notice(channel, language or "en", found), now)


def _notice(channel: Channel, language: str, found: Heard) -> Draft:
    if found.closed:
        text = _over(language, found.answer)
        return Draft(text, tuple(channel.render(text)))
    lines = [say(language, "I have asked you several things. Which one do you mean?"), ""]
    lines += [f"• {one.title}" for one in found.unclear]
    how = say(language, "Press a button of that question, or answer it with a quote.")
    text = "\n".join(lines)
    return Draft(text, tuple(channel.ask(text, how, ())))


def _over(language: str, answer: str) -> str:
    """What came too late changes nothing; it may well have been done already."""
    if not answer:
        return say(language, "That question is over, so I did nothing. Write to me if you still want it.")
    given = say(language, "Yes") if answer == "yes" else say(language, "No")
    return say(
        language,
        "That question is over: the answer was “{answer}”. Write to me if you want something else.",
        answer=given,
    )
