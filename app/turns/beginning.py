"""What a turn starts from: its rows, the person, what they taught; read where its attempt is counted."""

from dataclasses import dataclass
from sqlite3 import Connection

from app.people import Person
from app.search.learned import NOTHING_LEARNED, Fits, learned_about
from app.store import opening
from app.store.opening import TurnState
from app.store.tool_statistics import day_of
from app.turns.context import said_by
from app.turns.profile import Profiles

HISTORY_TURNS = 40


@dataclass(frozen=True, slots=True)
class LoadedTurn:
    """An attempt at a turn that is counted. `learned`: how tools fit by what the person asked for before."""

    opened: TurnState
    said: str
    person: Person
    learned: Fits


def begin(conn: Connection, turn: str, profiles: Profiles, now: float) -> LoadedTurn:
    """Counts an attempt, and reads. Raises TurnGone where the turn has ended."""
    opened = opening.begin(conn, turn, now, HISTORY_TURNS, day_of(now))
    said = said_by(opened.members)
    person = profiles.known(conn, opened.person, opened.aliases, said)
    in_group = bool(opened.conversation.group)
    return LoadedTurn(
        opened, said, person, NOTHING_LEARNED if in_group else learned_about(conn, person, said)
    )
