"""Learned phrases: the words in which a person asked for what a tool then did, as sets of stems."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import orjson
import structlog

from app.store import disk_space

log = structlog.get_logger(__name__)

MOST_PHRASES = 20  # for a person and a tool; the one said longest ago goes
ENOUGH_PEOPLE = 3  # other people who must have a stem before it counts for everybody
_MOST_READ = 1_000
_MOST_PAIRS = 400  # of a stem and a tool, for one message
_MOST_PEOPLE = 64  # looked at for a stem and a tool

# First the shared stems: from tool to tool of a stem, and from person to person of both until there are
# enough, which is a few steps however many people have learned it. Then the person's own phrases.
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
    """A stem of one of the person's phrases; `share` is 1 / the number of stems in the phrase."""

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
    """Keep that these tools did what a message with these stems asked for; a repetition counts once.

    Nothing is learned while the disk is low. If these rows cannot be written, the rest of the transaction is.
    """
    if not tools or not stems or not disk_space.is_kept(conn, "traces"):
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


def matching_stems(
    conn: Connection, person: str, realm: str, stems: Sequence[str]
) -> tuple[list[OwnStem], list[SharedStem]]:
    """Return which of these stems the person's own phrases hold, and which enough others share for a tool.

    Only people of the same realm count, and none that are frozen or blocked.
    """
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
