"""Answers to open questions, taken out of the queue before a turn could claim them as messages."""

from collections.abc import Mapping
from sqlite3 import Connection

from app.language import say
from app.messages import Channel
from app.people import Conversation
from app.store import approvals
from app.store.approvals import Heard
from app.store.outbox import Draft, put_notice
from app.turns.answers import read_answer


class Hearing:
    """Hears what was said in a conversation; the transaction is its caller's."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    def hear(self, conn: Connection, conversation: str, now: float) -> str:
        """Takes every answer at the head of the queue; gives the person who is to get a notice, or ""."""
        told = ""
        while (heard := approvals.hear(conn, conversation, now, read_answer)) is not None:
            if heard.unclear or heard.closed:
                self._tell(conn, conversation, heard, now)
                told = heard.person
        return told

    def _tell(self, conn: Connection, conversation: str, heard: Heard, now: float) -> None:
        where = conn.execute(
            "SELECT c.person_id, c.channel, c.group_id, p.language FROM conversations c"
            " JOIN people p ON p.id = c.person_id WHERE c.id = ?",
            (conversation,),
        ).fetchone()
        channel = self._channels.get(where["channel"])
        if channel is None:  # of another realm: nobody there could read it
            return
        draft = _notice(channel, where["language"] or "en", heard)
        to = Conversation(conversation, where["person_id"], where["channel"], where["group_id"])
        put_notice(conn, to, f"heard:{heard.inbox}", draft, now)


def _notice(channel: Channel, language: str, heard: Heard) -> Draft:
    if heard.closed:
        text = say(language, "That question is over, so I did nothing. Write to me if you still want it.")
        return Draft(text, tuple(channel.render(text)))
    lines = [say(language, "I have asked you several things. Which one do you mean?"), ""]
    lines += [f"• {one.title}" for one in heard.unclear]
    how = say(language, "Press a button of that question, or answer it with a quote.")
    text = "\n".join(lines)
    return Draft(text, tuple(channel.ask(text, how, ())))
