"""Learned phrases: in which words a person asked for what a tool then did, as bags of stems."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import orjson
import structlog

from app.store import space

log = structlog.get_logger(__name__)

MOST_PHRASES = 20
"""Of a tool and a person: the one that was said longest ago leaves."""
ENOUGH_PEOPLE = 3
"""Beside whoever asks: a stem that fewer of them have is theirs alone."""
_MOST_READ = 1_000
_MOST_PAIRS = 400
"""Of a stem and a tool that are looked at for one message."""
_MOST_PEOPLE = 64
"""Of a stem and a tool that are looked at: the blocked, the frozen and those of another realm count too."""

# First what is shared: from tool to tool of a stem, and from person to person of both until there are enough,
# which is a few steps however many people have learned it. Then what is the person's own.
_LEARNED = """
WITH RECURSIVE held (stem, tool) AS (
  SELECT value, (SELECT min(l.tool) FROM learned_stems l WHERE l.stem = value) FROM json_each(?1)
  UNION ALL
  SELECT stem, (SELECT min(l.tool) FROM learned_stems l WHERE l.stem = held.stem AND l.tool > held.tool)
  FROM held WHERE tool IS NOT NULL
  LIMIT ?4
)
SELECT tool, stem, NULL AS phrase, NULL AS share FROM held WHERE tool IS NOT NULL AND ?5 = (
  SELECT count(*) FROM (
    SELECT 1 FROM (
      SELECT DISTINCT l.person_id AS id FROM learned_stems l
      WHERE l.stem = held.stem AND l.tool = held.tool AND l.person_id <> ?2 LIMIT ?7
    ) AS one CROSS JOIN people p ON p.id = one.id
    WHERE p.realm = ?3 AND p.frozen = '' AND p.access <> 'blocked'
    LIMIT ?5))
UNION ALL
SELECT * FROM (
  SELECT tool, stem, phrase_id, share FROM learned_stems
  WHERE person_id = ?2 AND stem IN (SELECT value FROM json_each(?1)) LIMIT ?6)
"""


@dataclass(frozen=True, slots=True)
class OwnStem:
    """A stem of one of the person's phrases. `share`: of all that the phrase has."""

    tool: str
    phrase: int
    stem: str
    share: float


@dataclass(frozen=True, slots=True)
class SharedStem:
    """A stem by which enough other people have asked for a tool."""

    tool: str
    stem: str


def learn(conn: Connection, person: str, tools: Collection[str], stems: Collection[str], now: float) -> None:
    """Keeps that these tools did what a message with these stems asked for; the same again counts once.

    Nothing is learned while the disk is nearly full, nor where the rows cannot be written: what else the
    transaction holds is written all the same.
    """
    if not tools or not stems or not space.keeps(conn, "traces"):
        return
    conn.execute("SAVEPOINT learning")
    try:
        _write(conn, person, tools, stems, now)
    except sqlite3.Error:
        if not conn.in_transaction:
            raise
        conn.execute("ROLLBACK TO learning")
        log.exception("what a turn taught was not kept")
    conn.execute("RELEASE learning")


def held(
    conn: Connection, person: str, realm: str, stems: Sequence[str]
) -> tuple[list[OwnStem], list[SharedStem]]:
    """Where the person's own phrases hold any of these stems, and which of the stems enough other people of
    the same realm have for which tools. Who is frozen or blocked does not count."""
    listed = orjson.dumps(stems).decode()
    own: list[OwnStem] = []
    shared: list[SharedStem] = []
    for tool, stem, phrase, share in conn.execute(
        _LEARNED, (listed, person, realm, _MOST_PAIRS, ENOUGH_PEOPLE, _MOST_READ, _MOST_PEOPLE)
    ):
        if phrase is None:
            shared.append(SharedStem(tool, stem))
        else:
            own.append(OwnStem(tool, phrase, stem, share))
    return own, shared


def _write(conn: Connection, person: str, tools: Collection[str], stems: Collection[str], now: float) -> None:
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
