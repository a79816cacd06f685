"""Learned phrases: the words in which a person asked for what a tool then did, as sets of stems."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from app.store import disk_space
from app.store.conditions import MAY_TALK
from app.store.database import placeholders

MOST_PHRASES = 20  # for a person and a tool; the one said longest ago goes
ENOUGH_PEOPLE = 3  # other people who must have a stem before it counts for everybody
_MOST_READ = 1_000  # stems of the person's own phrases, for one message
_MOST_SHARED = 20_000  # a stem of a tool and a person each, for one message


@dataclass(frozen=True, slots=True)
class OwnStem:
    """A stem of one of the person's phrases; `share` is 1 / the number of stems in the phrase."""

    tool: str
    phrase: int
    stem: str
    share: float


def learn(conn: Connection, person: str, tools: Collection[str], stems: Collection[str], now: float) -> None:
    """Keep that these tools did what a message with these stems asked for; a repetition counts once.

    Nothing is learned while the disk is low.
    """
    if not tools or not stems or not disk_space.is_kept(conn, "traces"):
        return
    phrase = " ".join(sorted(stems))
    for tool in tools:
        (row,) = conn.execute(
            "INSERT INTO learned_phrases (person_id, tool, stems, at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (person_id, tool, stems) DO UPDATE SET at = excluded.at RETURNING id",
            (person, tool, phrase, now),
        ).fetchall()
        conn.executemany(
            "INSERT INTO learned_stems (stem, tool, person_id, phrase_id, share) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            [(stem, tool, person, row["id"], 1 / len(stems)) for stem in stems],
        )
        conn.execute(
            "DELETE FROM learned_phrases WHERE id IN (SELECT id FROM learned_phrases"
            " WHERE person_id = ? AND tool = ? ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?)",
            (person, tool, MOST_PHRASES),
        )


def matching_stems(
    conn: Connection, person: str, realm: str, stems: Sequence[str]
) -> tuple[list[OwnStem], Mapping[str, int]]:
    """Return which of these stems the person's own phrases hold, and how many others share, by tool.

    A stem is shared if enough other people of the realm, none of them frozen or blocked, have it.
    """
    listed = placeholders(stems)
    own = conn.execute(
        f"SELECT tool, phrase_id, stem, share FROM learned_stems WHERE person_id = ? AND stem IN ({listed})"
        " LIMIT ?",
        (person, *stems, _MOST_READ),
    )
    shared = conn.execute(
        "SELECT tool, stem FROM (SELECT DISTINCT stem, tool, person_id FROM learned_stems"
        f" WHERE stem IN ({listed}) AND person_id <> ? LIMIT ?) AS said"
        f" JOIN people ON people.id = said.person_id WHERE people.realm = ? AND {MAY_TALK}"
        " GROUP BY tool, stem HAVING count(*) >= ?",
        (*stems, person, _MOST_SHARED, realm, ENOUGH_PEOPLE),
    )
    return [OwnStem(*row) for row in own], Counter(row["tool"] for row in shared)
