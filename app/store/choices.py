"""Choices: questions with options, and the messages that answer them.

An answer becomes the text of its message: the whole option, whether it was pressed, numbered or written. The
option is the model's text, so the message is marked as `chosen`: it is not in the person's own words, and it
never approves a call.
"""

from collections.abc import Callable, Sequence

import orjson

from app.messages import in_own_words
from app.people import Conversation
from app.store.conditions import UNCLAIMED
from app.store.database import Connection, Row, insert, update

PRESSED = "choice:"  # begins the id of each option: "choice:<id>:<number>"
OPEN_SECONDS = 23 * 3600.0


def option_id(choice: str, number: int) -> str:
    """Return the id under which an option is pressed; numbers count from 1."""
    return f"{PRESSED}{choice}:{number}"


def offer(conn: Connection, choice: str, where: Conversation, options: Sequence[str], now: float) -> None:
    """Keep a choice that is being asked; an earlier one of the conversation is over."""
    withdraw(conn, where.id)
    asked = {"options": orjson.dumps(list(options)).decode(), "state": "open", "created_at": now}
    insert(conn, "choices", or_skip=True, id=choice, **where.columns, **asked)


def withdraw(conn: Connection, conversation: str) -> None:
    """End what was asked in a conversation that starts anew."""
    update(conn, "choices", "conversation_id = ? AND state = 'open'", conversation, state="over")


def take_answers(
    conn: Connection, conversation: str, now: float, read: Callable[[str, Sequence[str]], int]
) -> list[int]:
    """Put the chosen option in place of each waiting message that answers a choice.

    Words and numbers answer only what was asked last; a press names its choice. `read` returns the number of
    the option that a whole message names, 0 for none. Presses on a choice that is over are taken out of the
    queue and returned, by their place in the inbox.
    """
    rows = conn.execute(
        "SELECT inbox.seq, inbox.received_at, m.id, m.kind, m.text, m.payload FROM inbox"
        " JOIN messages m ON m.id = inbox.message_id"
        f" WHERE inbox.conversation_id = ? AND inbox.kind = 'message' AND {UNCLAIMED} ORDER BY inbox.seq",
        (conversation,),
    ).fetchall()
    return [row["seq"] for row in rows if not _take(conn, conversation, row, now, read)]


def _take(
    conn: Connection, conversation: str, message: Row, now: float, read: Callable[[str, Sequence[str]], int]
) -> bool:
    """Read a message as an answer; return False for a press that comes too late."""
    payload = orjson.loads(message["payload"])
    button = str(payload.get("button") or "")
    if button.startswith(PRESSED):
        choice, _, place = button.removeprefix(PRESSED).rpartition(":")
        is_open = "id = ? AND conversation_id = ? AND state = 'open' AND created_at > ?"
        asked_of = (choice, conversation, now - OPEN_SECONDS)
        pressed = conn.execute(f"SELECT * FROM choices WHERE {is_open}", asked_of).fetchone()
        if pressed is not None and place.isdecimal() and _answer(conn, pressed, int(place), message):
            return True
        update(conn, "inbox", "seq = ?", message["seq"], done_at=now)
        return False
    if not in_own_words(message["kind"], payload):
        return True
    asked = conn.execute(
        "SELECT * FROM choices c WHERE c.conversation_id = ? AND c.state = 'open' AND c.created_at < ?"
        " AND c.created_at > ? AND NOT EXISTS (SELECT 1 FROM turns t"
        " WHERE t.conversation_id = c.conversation_id AND t.done_at > c.created_at)"
        " ORDER BY c.created_at DESC LIMIT 1",
        (conversation, message["received_at"], now - OPEN_SECONDS),
    ).fetchone()
    if asked is not None and (number := read(message["text"], orjson.loads(asked["options"]))):
        _answer(conn, asked, number, message)
    return True


def _answer(conn: Connection, asked: Row, number: int, message: Row) -> bool:
    """Close a choice and write the option into the message; return False if there is no such option."""
    options = orjson.loads(asked["options"])
    if not 1 <= number <= len(options):
        return False
    option = options[number - 1]
    update(conn, "choices", "id = ? AND state = 'open'", asked["id"], state="answered", answer=option)
    payload = {**orjson.loads(message["payload"]), "chosen": asked["id"], "written": message["text"]}
    told = {"text": option, "payload": orjson.dumps(payload).decode(), "recalled": 0}
    return bool(update(conn, "messages", "id = ?", message["id"], **told))
