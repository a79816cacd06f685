"""The sentence that an automatic assistant answers, in the first message to a person on a channel.

The EU's AI Act asks for it at the first interaction (article 50, in force since 2026-08-02).
"""

from collections.abc import Sequence
from dataclasses import replace
from sqlite3 import Connection

from app.i18n import say
from app.messages import Outgoing
from app.people import Conversation
from app.store.database import meta

OWN_WORDS = "disclosure"  # key of the operator's own words for it
NO_MODEL = "no_model"  # key of a mark: nobody's language model reads along
LONGEST_TEXT, LONGEST_QUESTION = 4_096, 1_024  # characters of a message, and beside buttons (Meta's limits)


def with_disclosure(
    conn: Connection, conversation: Conversation, parts: Sequence[Outgoing], language: str
) -> Sequence[Outgoing]:
    """Return messages to a person, the sentence in front of the first if nobody has told them yet."""
    if not parts or parts[0].template is not None:  # a template has words of its own
        return parts
    told_now = conn.execute(
        "UPDATE conversations SET disclosed = 1 WHERE id = ? AND disclosed = 0 AND channel <> 'terminal'",
        (conversation.id,),
    ).rowcount
    if not told_now:
        return parts
    sentence = meta(conn, OWN_WORDS) or _built_in(language, reads=not meta(conn, NO_MODEL))
    first = parts[0]
    together = f"{sentence}\n\n{first.text}"
    is_plain = first == Outgoing(first.text, quoted=first.quoted)  # without buttons, rows or a link
    limit = LONGEST_TEXT if is_plain else LONGEST_QUESTION
    if first.file is None and first.text and len(together) <= limit:
        return (replace(first, text=together), *parts[1:])
    return (Outgoing(sentence), *parts)


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
