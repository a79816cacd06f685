"""What a person asked to be remembered, as a turn starts from it: rows of the skill `memory`, only read."""

from dataclasses import dataclass
from sqlite3 import Connection

MOST_READ = 200


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence; `outside`: it may have been made of text of others."""

    text: str
    outside: bool = False


def of_person(conn: Connection, person: str) -> tuple[Fact, ...]:
    """The newest first: the keys of these rows begin with their time."""
    rows = conn.execute(
        "SELECT json_extract(value, '$.text') AS text, outside FROM skill_data"
        " WHERE person_id = ? AND skill = 'memory' AND key >= 'fact:' AND key < 'fact;'"
        " AND json_type(value, '$.text') = 'text' ORDER BY key DESC LIMIT ?",
        (person, MOST_READ),
    )
    return tuple(Fact(row["text"], bool(row["outside"])) for row in rows)
