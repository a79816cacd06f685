"""The data that skills keep for a person: JSON by key, within a quota for all skills together.

A call's writes wait for its result and commit with it.
"""

import time
from dataclasses import dataclass, field
from typing import Literal

import orjson

from app.errors import RecadoError
from app.messages import JSON
from app.store import disk_space
from app.store.database import Connection, Database, delete, scalar, update

READ_SECONDS = 5.0  # that the thread of a `def` tool waits
KEY_CHARACTERS = 512
VALUE_BYTES = 256 * 1024
CALL_BYTES = 8 * 1024 * 1024  # written by one call in all: it waits in memory for the commit
ROW_BYTES = 256  # cost of a row beside its text
LIST_LIMIT = 5000

_LISTED = (
    "SELECT key, value, outside FROM skill_data"
    " WHERE person_id = ? AND skill = ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT ?"
)
_SIZE = "length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))"


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that the person asked to be remembered."""

    text: str
    outside: bool = False  # it may be made of text of others
    number: int = field(default=0, compare=False)  # `recall` shows it too
    at: float = field(default=0.0, compare=False)
    key: tuple[str, str, str] = field(default=("", "", ""), compare=False)


def facts(conn: Connection, person: str) -> list[Fact]:
    """Return the person's facts in the order in which they came; a number is never given twice.

    Any skill offers facts by keeping `{"text": …}` under a key of "fact:" and a time that sorts as text.
    """
    rows = conn.execute(
        "SELECT *,"
        " CASE WHEN json_type(value, '$.text') = 'text' THEN json_extract(value, '$.text') END AS text"
        " FROM skill_data WHERE person_id = ? AND key >= 'fact:' AND key < 'fact;' ORDER BY key",
        (person,),
    )
    return [
        Fact(row["text"], bool(row["outside"]), number, row["updated_at"], (person, row["skill"], row["key"]))
        for number, row in enumerate(rows, 1)
        if row["text"] is not None
    ]


def forget_fact(conn: Connection, person: str, number: int) -> str | None:
    """Forget the fact of a number; return its text, None if there is none."""
    found = next((one for one in facts(conn, person) if one.number == number), None)
    if found is None:
        return None
    gone = {"value": '{"deleted":true}', "outside": 0}
    update(conn, "skill_data", "person_id = ? AND skill = ? AND key = ?", *found.key, **gone)
    return found.text


class NoRoom(RecadoError):
    """A call's writes were refused: the person's quota is used up, or the disk is nearly full."""

    def __init__(self, code: Literal["QUOTA_EXCEEDED", "NO_SPACE"]) -> None:
        super().__init__(code)
        self.code = code


class SkillStore:
    """One call's view of a person's rows for a skill: its own writes over what is stored.

    `quota`: bytes that all skills together may keep for the person, 0 for no limit. `outside`: what the call
    writes may be made of text of others; `read_outside`: it read a row that was.
    """

    def __init__(
        self, database: Database, person: str, skill: str, quota: int = 0, *, outside: bool = False
    ) -> None:
        self._database = database
        self._person = person
        self._skill = skill
        self._quota = quota
        self._outside = outside
        self.read_outside = False
        self._written = 0
        self._writes: dict[str, str | None] = {}

    async def get(self, key: str, default: JSON = None) -> JSON:
        """Return the value of a key, `default` if there is none."""
        if key in self._writes:
            text = self._writes[key]
            return default if text is None else orjson.loads(text)
        row = await self._database.one(
            "SELECT value, outside FROM skill_data WHERE person_id = ? AND skill = ? AND key = ?",
            *(self._person, self._skill, key),
        )
        if row is None:
            return default
        self.read_outside |= bool(row["outside"])
        return orjson.loads(row["value"])

    async def put(self, key: str, value: JSON) -> None:
        """Keep a JSON value. Raises ValueError if it, its key or the call's writes are too large."""
        text = orjson.dumps(value)
        try:
            key.encode()
        except (AttributeError, UnicodeEncodeError):  # a worker process may send anything
            raise ValueError("a key is text, and holds no half characters") from None
        if len(key) > KEY_CHARACTERS:
            raise ValueError(f"a key has at most {KEY_CHARACTERS} characters, this has {len(key)}")
        if len(text) > VALUE_BYTES:
            raise ValueError(
                f"{key!r}: a value has at most {VALUE_BYTES // 1024} KiB, this has {len(text)} bytes"
            )
        self._count(len(key) + len(text))
        self._writes[key] = text.decode()

    async def list(self, prefix: str = "", limit: int = 1000, most: int | None = None) -> dict[str, JSON]:
        """Return the values by key, in the order of the keys that start with `prefix`.

        Raises ValueError for more than `most` bytes, before reading what is stored.
        """
        limit = max(0, min(limit, LIST_LIMIT))
        asked = (self._person, self._skill, len(prefix), prefix, limit + len(self._writes))
        if most is not None:
            stored = await self._database.one(f"SELECT sum({_SIZE}) AS bytes FROM ({_LISTED})", *asked)
            if stored is not None and (stored["bytes"] or 0) + self._written > most:
                raise ValueError(
                    f"these rows have more than {most // 1024} KiB: list fewer, or by a longer prefix"
                )
        rows = await self._database.all(_LISTED, *asked)
        self.read_outside |= any(row["outside"] for row in rows)
        found: dict[str, str | None] = {row["key"]: row["value"] for row in rows}
        found.update({key: text for key, text in self._writes.items() if key.startswith(prefix)})
        kept = [(key, text) for key, text in sorted(found.items()) if text is not None]
        return {key: orjson.loads(text) for key, text in kept[:limit]}

    async def delete(self, key: str) -> bool:
        """Delete a key; return whether there was one."""
        existed = await self.get(key) is not None
        self._count(len(key))
        self._writes[key] = None
        return existed

    def _count(self, size: int) -> None:
        """Bound the memory a call takes, and how long it keeps the writer."""
        self._written += size + ROW_BYTES
        if self._written > CALL_BYTES:
            raise ValueError(f"one call writes at most {CALL_BYTES // 1024**2} MiB")

    def apply(self, conn: Connection) -> None:
        """Write what the call changed, in the transaction that records its result.

        Raises NoRoom, with nothing written, if the person's data would grow and may not.
        """
        if not self._writes:
            return
        before, now, outside = self._bytes(conn), time.time(), self._outside or self.read_outside
        conn.execute("SAVEPOINT skill_data")
        try:
            for key, text in self._writes.items():
                row = (self._person, self._skill, key)
                delete(conn, "skill_data", "person_id = ? AND skill = ? AND key = ?", *row)
                if text is not None:
                    marked = outside and _holds_text(orjson.loads(text))
                    conn.execute(
                        "INSERT INTO skill_data VALUES (?, ?, ?, ?, ?, ?)", (*row, text, now, marked)
                    )
            self._check_room(conn, before)
        except NoRoom:
            conn.execute("ROLLBACK TO skill_data")
            raise
        finally:
            conn.execute("RELEASE skill_data")

    def _check_room(self, conn: Connection, before: int) -> None:
        after = self._bytes(conn)
        if after <= before:
            return
        if not disk_space.is_kept(conn, "data"):
            raise NoRoom("NO_SPACE")
        if 0 < self._quota < after:
            conn.execute(  # what could undo a deletion goes, so that the deletion makes room at once
                "UPDATE skill_data SET value = json_remove(value, '$.undo')"
                " WHERE person_id = ? AND json_extract(value, '$.undo') IS NOT NULL",
                (self._person,),
            )
            if self._bytes(conn) > self._quota:
                raise NoRoom("QUOTA_EXCEEDED")

    def _bytes(self, conn: Connection) -> int:
        return int(scalar(conn, "SELECT data_bytes FROM people WHERE id = ?", self._person))


def _holds_text(value: JSON) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_text, value.values()))
    return any(map(_holds_text, value)) if isinstance(value, list) else isinstance(value, str)
