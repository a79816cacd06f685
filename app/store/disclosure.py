"""The sentence that an automatic assistant answers, in the first message that is sent to a conversation.

The EU's AI Act asks for it at the first interaction (article 50, in force since 2026-08-02).
"""

from dataclasses import replace
from sqlite3 import Connection

from app.i18n import say
from app.messages import Outgoing
from app.store.database import meta

OWN_WORDS = "disclosure"  # key of the operator's own words for it
NO_MODEL = "no_model"  # key of a mark: nobody's language model reads along
LONGEST_TEXT, LONGEST_QUESTION = 4_096, 1_024  # characters of a message, and beside buttons (Meta's limits)


def take_sentence(conn: Connection, conversation: str, language: str) -> str:
    """Return the sentence for a message that is about to be sent, "" if an earlier one told it."""
    told_now = conn.execute(
        "UPDATE conversations SET disclosed = 1 WHERE id = ? AND disclosed = 0 AND channel <> 'terminal'",
        (conversation,),
    ).rowcount
    if not told_now:
        return ""
    return meta(conn, OWN_WORDS) or _built_in(language, reads=not meta(conn, NO_MODEL))


def in_front(sentence: str, message: Outgoing) -> Outgoing | None:
    """Return a message with the sentence in front of its text, None if it has no room for that."""
    together = f"{sentence}\n\n{message.text}"
    is_plain = message == Outgoing(message.text, quoted=message.quoted)  # without buttons, rows or a link
    fits = len(together) <= (LONGEST_TEXT if is_plain else LONGEST_QUESTION)
    return replace(message, text=together) if fits and message.text and message.file is None else None


def renew(conn: Connection, conversation: str) -> None:
    """Have the next message hold the sentence again if each that held it has failed."""
    held = "SELECT 1 FROM outbox WHERE conversation_id = conversations.id AND discloses = 1 AND state"
    conn.execute(
        f"UPDATE conversations SET disclosed = 0 WHERE id = ? AND EXISTS ({held} = 'failed')"
        f" AND NOT EXISTS ({held} <> 'failed')",
        (conversation,),
    )


def _built_in(language: str, *, reads: bool) -> str:
    if not reads:
        return say(
            language,
            "I am an automatic assistant (AI). What you write is kept on the server of whoever runs me.",
        )
    return say(
        language,
        "I am an automatic assistant (AI). What you write is kept on the server of whoever runs me, "
        "and their language model reads it.",
    )
