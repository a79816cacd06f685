"""The index over what a person and the assistant said: postings by person and term."""

from collections.abc import Callable, Collection, Mapping, Sequence

from app.store.database import Connection, Row, placeholders, scalar

MOST_POSTINGS = 4_000  # that one question reads; the rarest words come first
FOREVER = 2.0**53  # Unix seconds after which nothing is said
Weigh = Callable[[Row], Mapping[str, float]]

# SQL for a person's messages of [since, until) in turns that have ended; `m` are the messages
_SAID = (
    "SELECT m.id, m.direction, m.kind, m.text, m.payload, m.at, m.turn_id, t.taint FROM messages m"
    " JOIN conversations c ON c.id = m.conversation_id LEFT JOIN turns t ON t.id = m.turn_id"
    " WHERE m.person_id = ? AND m.at >= ? AND m.at < ? AND m.text <> ''"
    " AND (t.id IS NULL OR t.state = 'done')"
)


def index(conn: Connection, weigh: Weigh, most: int, person: str = "") -> int:
    """Index so many new or changed messages, of one person or of all; return how many it were."""
    rows = conn.execute(
        "SELECT m.id, m.person_id, m.text, m.payload, c.group_id FROM messages m"
        " JOIN conversations c ON c.id = m.conversation_id"
        f" WHERE m.recalled = 0 {'AND m.person_id = ?' if person else ''} LIMIT ?",
        (person, most) if person else (most,),
    ).fetchall()
    ids = [row["id"] for row in rows]
    conn.execute(f"DELETE FROM postings WHERE message_id IN ({placeholders(ids)})", ids)
    conn.executemany(
        "INSERT INTO postings (person_id, term, message_id, weight) VALUES (?, ?, ?, ?)",
        (
            (row["person_id"], term, row["id"], weight)
            for row in rows
            if not row["group_id"]
            for term, weight in weigh(row).items()
        ),
    )
    conn.execute(f"UPDATE messages SET recalled = 1 WHERE id IN ({placeholders(ids)})", ids)
    return len(rows)


def holders(conn: Connection, person: str, terms: Collection[str]) -> dict[str, int]:
    """Return how many of a person's messages hold each of these terms."""
    theirs = f"person_id = ? AND term IN ({placeholders([*terms])})"
    sql = f"SELECT term, count(*) AS held FROM postings WHERE {theirs} GROUP BY term"
    rows = conn.execute(sql, (person, *terms))
    return {row["term"]: row["held"] for row in rows}


def postings(
    conn: Connection, person: str, held: Mapping[str, int], within: tuple[int, int]
) -> dict[str, list[tuple[int, float]]]:
    """Return the messages of each term with its weight there, of those whose ids are `within` two.

    Terms that too many hold are left out; of the rarest the newest are read.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    left = MOST_POSTINGS
    for term in sorted(held, key=held.__getitem__):
        if found and held[term] > left:
            break
        rows = conn.execute(
            "SELECT message_id, weight FROM postings WHERE person_id = ? AND term = ?"
            " AND message_id BETWEEN ? AND ? ORDER BY message_id DESC LIMIT ?",
            (person, term, *within, left),
        )
        found[term] = [(message, weight) for message, weight in rows]
        left -= held[term]
    return found


def between(conn: Connection, person: str, since: float, until: float) -> tuple[int, int]:
    """Return the ids of a person's first and last message of [since, until)."""
    if since <= 0 and until >= FOREVER:
        return 0, 2**63 - 1
    row = conn.execute(
        "SELECT coalesce(min(id), 0), coalesce(max(id), -1) FROM messages"
        " WHERE person_id = ? AND at >= ? AND at < ?",
        (person, since, until),
    ).fetchone()
    return row[0], row[1]


def count(conn: Connection, person: str) -> int:
    """Return how many messages a person has."""
    return int(scalar(conn, "SELECT count(*) FROM messages WHERE person_id = ?", person))


def neighbours(conn: Connection, messages: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return the messages just before and after each of these in its conversation; 0 for none."""
    rows = conn.execute(
        "SELECT m.id, (SELECT max(b.id) FROM messages b WHERE b.conversation_id = m.conversation_id"
        " AND b.id < m.id) AS before, (SELECT min(a.id) FROM messages a"
        " WHERE a.conversation_id = m.conversation_id AND a.id > m.id) AS after"
        f" FROM messages m WHERE m.id IN ({placeholders(messages)})",
        tuple(messages),
    )
    return {row["id"]: (row["before"] or 0, row["after"] or 0) for row in rows}


def said(conn: Connection, person: str, messages: Sequence[int], since: float, until: float) -> list[Row]:
    """Return those of a person's messages that were said in [since, until) in a turn that has ended."""
    sql = f"{_SAID} AND m.id IN ({placeholders(messages)})"
    return conn.execute(sql, (person, since, until, *messages)).fetchall()


def kept(conn: Connection, person: str, most: int) -> list[Row]:
    """Return `text`, `at` and `outside` of a person's newest notes and facts: what skills keep as a text."""
    return conn.execute(
        "SELECT json_extract(value, '$.text') AS text, updated_at AS at, outside FROM skill_data"
        " WHERE person_id = ? AND json_type(value, '$.text') = 'text' ORDER BY updated_at DESC LIMIT ?",
        (person, most),
    ).fetchall()


def newest(conn: Connection, person: str, since: float, until: float, most: int) -> list[Row]:
    """Return a person's newest private messages of [since, until)."""
    sql = f"{_SAID} AND c.group_id = '' ORDER BY m.id DESC LIMIT ?"
    return conn.execute(sql, (person, since, until, most)).fetchall()
