"""Hand-overs: conversations that a person of the business answers, in which the assistant is silent."""

from app.messages import Echo
from app.people import Conversation
from app.store import delivery, events, outbox, people, turns
from app.store.database import Connection, delete, exists, insert, new_id
from app.store.outbox import Draft

GIVES_BACK = "/bot"  # written by the business in a conversation, gives it back to the assistant
MOST_LINES = 6  # of a conversation that an owner is shown


def keep_echo(conn: Connection, where: Conversation, echo: Echo, until: float, now: float) -> None:
    """Keep an echo (what the business wrote by other means) until `settle`."""
    if exists(conn, "SELECT 1 FROM outbox WHERE id = ?", echo.outbox_id):  # it is ours
        delivery.mark_sent(conn, echo.outbox_id, echo.id, now)
        return
    insert(
        conn,
        "echoes",
        or_skip=True,
        wamid=echo.id,
        **where.columns,
        kind=echo.kind,
        text=echo.text,
        until=until,
        at=now,
    )


def settle(conn: Connection, person: str, now: float) -> None:
    """Take up a person's echoes, the oldest first, up to one that may be of a message on its way."""
    for echo in conn.execute("SELECT * FROM echoes WHERE person_id = ? ORDER BY seq", (person,)).fetchall():
        is_ours = delivery.is_echo(conn, person, echo["wamid"], echo["text"], now)
        if is_ours is None:
            break
        delete(conn, "echoes", "seq = ?", echo["seq"])
        where = people.conversation_by_id(conn, echo["conversation_id"])
        if is_ours:
            continue
        if echo["text"].strip().casefold() == GIVES_BACK:
            give_back(conn, where.id, now)
        else:
            is_silent = echo["until"] > echo["at"]  # the conversation was not given back since
            if is_silent:
                begin(conn, where, echo["until"], now)
            turn, said = new_id("turn"), echo["text"] or f"[{echo['kind']}]"
            turns.answered_by_business(conn, where, turn, said, now, takes_what_waits=is_silent)
            kind, text, wamid = echo["kind"], echo["text"], echo["wamid"]
            outbox.add_message(conn, where, "out", kind, text, now, wamid=wamid, turn_id=turn)


def answer(conn: Connection, where: Conversation, turn: str, draft: Draft, until: float, now: float) -> None:
    """Send what a person of the business writes, who answers until `until`; it becomes the turn `turn`."""
    begin(conn, where, until, now, told=True)
    turns.answered_by_business(conn, where, turn, draft.text, now)
    outbox.put_reply(conn, where, f"human:{turn}", draft, now, turn, origin="business")


def begin(conn: Connection, where: Conversation, until: float, now: float, *, told: bool = False) -> None:
    """Make the assistant silent in a conversation until `until`; `told`: the owners know of it.

    Turns that run end without a reply, replies that were not sent are dropped, reminders wait.
    """
    was_silent = outbox.is_silent(conn, where.id, now)
    conn.execute(
        "INSERT INTO handovers (conversation_id, person_id, state, since, until, told)"
        " VALUES (?, ?, 'human', ?, ?, ?) ON CONFLICT (conversation_id) DO UPDATE SET state = 'human',"
        " until = CASE WHEN handovers.state = 'human' AND handovers.until > excluded.until"
        " THEN handovers.until ELSE excluded.until END,"
        " told = CASE WHEN handovers.state = 'human' AND handovers.until > ? AND handovers.told = 1 THEN 1"
        " ELSE excluded.told END",
        (where.id, where.person_id, now, until, int(told), now),
    )
    if not was_silent:
        events.emit(
            conn, "conversation.handed_over", where.person_id, {"to": "business", "until": until}, now
        )
    turns.drop_unsent(conn, where.id, now)


def give_back(conn: Connection, conversation: str, now: float) -> bool:
    """Let the assistant answer again in a conversation; return False if it did already."""
    conn.execute("UPDATE echoes SET until = at WHERE conversation_id = ?", (conversation,))
    sql = "DELETE FROM handovers WHERE conversation_id = ? RETURNING person_id, state"
    ended = conn.execute(sql, (conversation,)).fetchone()
    if ended is not None and ended["state"] == "human":
        events.emit(conn, "conversation.handed_over", ended["person_id"], {"to": "assistant"}, now)
    return ended is not None


def ask(conn: Connection, where: Conversation, until: float, now: float) -> bool:
    """Note that the person asks for somebody of the business; return False if they wait for one already."""
    if outbox.is_silent(conn, where.id, now):
        return False
    asked = conn.execute(
        "INSERT INTO handovers (conversation_id, person_id, state, since, until, told)"
        " VALUES (?, ?, 'asked', ?, ?, 1) ON CONFLICT (conversation_id) DO UPDATE SET state = 'asked',"
        " since = excluded.since, until = excluded.until, told = 1"
        " WHERE handovers.until <= excluded.since",
        (where.id, where.person_id, now, until),
    )
    return asked.rowcount > 0


def take_untold(conn: Connection, now: float) -> list[Conversation]:
    """Return the conversations that a person answers and no owner was told of, each once."""
    return _changed(conn, "told = 1 WHERE state = 'human' AND told = 0 AND until > ?", now)


def take_unanswered(conn: Connection, now: float) -> list[Conversation]:
    """Return the conversations whose person waited in vain for somebody of the business, each once."""
    return _changed(conn, "until = 0 WHERE state = 'asked' AND until BETWEEN 1 AND ?", now)


def _changed(conn: Connection, change: str, now: float) -> list[Conversation]:
    rows = conn.execute(f"UPDATE handovers SET {change} RETURNING conversation_id", (now,)).fetchall()
    return [people.conversation_by_id(conn, row["conversation_id"]) for row in rows]


def last_lines(conn: Connection, conversation: str) -> list[tuple[bool, str]]:
    """Return the newest messages of a conversation, the oldest first, each with True for the person's."""
    said = "conversation_id = ? AND text <> '' AND kind <> 'scheduled'"
    sql = f"SELECT direction, text FROM messages WHERE {said} ORDER BY id DESC LIMIT ?"
    rows = conn.execute(sql, (conversation, MOST_LINES)).fetchall()
    return [(row["direction"] == "in", row["text"]) for row in reversed(rows)]
