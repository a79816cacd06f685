"""What skills keep for a person: JSON by key. Writes wait for the result's row and commit with it.

A person has a quota over all skills; it is counted in the transaction of the write.
"""

import asyncio
import time
from sqlite3 import Connection
from typing import Literal

import orjson

from app.errors import RecadoError
from app.messages import JSON
from app.store import space
from app.store.database import Database

READ_SECONDS = 5.0
KEY_CHARACTERS = 512
VALUE_BYTES = 256 * 1024
CALL_BYTES = 8 * 1024 * 1024
"""What one call may write in all: it waits in memory for the commit."""
ROW_BYTES = 256
"""What a row costs beside its words."""
LIST_LIMIT = 5000

_LISTED = (
    "SELECT key, value, outside FROM skill_data"
    " WHERE person_id = ? AND skill = ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT ?"
)
_SIZE = "length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))"


class NoRoom(RecadoError):
    """A call's writes were not kept: the person's quota is used up, or the disk is nearly full."""

    def __init__(self, code: Literal["QUOTA_EXCEEDED", "NO_SPACE"]) -> None:
        super().__init__(code)
        self.code = code


class SkillStore:
    """One call's view of one person's rows for one skill: its own writes over what is stored.

    This is the awaitable face (`async def` tools); `sync()` gives the one for `def` tools.
    `quota`: bytes that all skills together may keep for the person, 0 for no limit. `outside`: what the call
    writes may be made of text of others; `read_outside` says whether it read any that was.
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
        """The value of a key, `default` where there is none."""
        text = await self.text(key)
        return default if text is None else orjson.loads(text)

    async def text(self, key: str) -> str | None:
        """The value of a key as JSON text, None where there is none."""
        if key in self._writes:
            return self._writes[key]
        row = await self._database.one(
            "SELECT value, outside FROM skill_data WHERE person_id = ? AND skill = ? AND key = ?",
            self._person,
            self._skill,
            key,
        )
        if row is None:
            return None
        self.read_outside |= bool(row["outside"])
        return str(row["value"])

    async def put(self, key: str, value: JSON) -> None:
        """Keeps a JSON value. Raises ValueError where it, its key or the call's writes are too large."""
        self._put(key, value)

    async def list(self, prefix: str = "", limit: int = 1000) -> dict[str, JSON]:
        """Values by key, in the order of the keys that start with `prefix`."""
        return _read(await self.texts(prefix, limit))

    async def texts(self, prefix: str, limit: int, most: int | None = None) -> dict[str, str]:
        """The same as JSON texts. Raises ValueError for more than `most` bytes, before they are read."""
        limit = max(0, min(limit, LIST_LIMIT))
        asked = (self._person, self._skill, len(prefix), prefix, limit + len(self._writes))
        if most is not None:
            sizes = await self._database.one(f"SELECT sum({_SIZE}) AS bytes FROM ({_LISTED})", *asked)
            _check_size(sizes["bytes"] if sizes is not None else 0, most)
        rows = await self._database.all(_LISTED, *asked)
        self.read_outside |= any(row["outside"] for row in rows)
        found: dict[str, str | None] = {row["key"]: row["value"] for row in rows}
        found.update({key: text for key, text in self._writes.items() if key.startswith(prefix)})
        kept = [(key, text) for key, text in sorted(found.items()) if text is not None]
        if most is not None:
            _check_size(sum(len(key) + len(text) for key, text in kept[:limit]), most)
        return dict(kept[:limit])

    async def delete(self, key: str) -> bool:
        """Whether there was such a key."""
        existed = await self.get(key) is not None
        self._count(len(key))
        self._writes[key] = None
        return existed

    def sync(self) -> "SyncSkillStore":
        return SyncSkillStore(self, asyncio.get_running_loop())

    def _put(self, key: str, value: JSON) -> None:
        text = orjson.dumps(value)
        if not isinstance(key, str) or not _is_whole(key):  # a worker that speaks for itself may ask anything
            raise ValueError("a key is text, and holds no half characters")
        if len(key) > KEY_CHARACTERS:
            raise ValueError(f"a key has at most {KEY_CHARACTERS} characters, this has {len(key)}")
        if len(text) > VALUE_BYTES:
            raise ValueError(
                f"{key!r}: a value has at most {VALUE_BYTES // 1024} KiB, this has {len(text)} bytes"
            )
        self._count(len(key) + len(text))
        self._writes[key] = text.decode()

    def _count(self, size: int) -> None:
        """Bounds what waits in memory, and how long one call keeps the writer."""
        self._written += size + ROW_BYTES
        if self._written > CALL_BYTES:
            raise ValueError(f"one call writes at most {CALL_BYTES // 1024**2} MiB")

    def apply(self, conn: Connection) -> None:
        """Writes what the call changed; part of the transaction that records its result.

        Raises NoRoom, with nothing written, where it makes the person's data grow and may not. Less may
        always be kept.
        """
        if not self._writes:
            return
        before = self._bytes(conn)
        conn.execute("SAVEPOINT skill_data")
        self._write(conn)
        refusal = self._refusal(conn, before)
        if refusal is not None:
            conn.execute("ROLLBACK TO skill_data")
        conn.execute("RELEASE skill_data")
        if refusal is not None:
            raise NoRoom(refusal)

    def _refusal(self, conn: Connection, before: int) -> Literal["QUOTA_EXCEEDED", "NO_SPACE"] | None:
        """Why what was written may not stay, None where it may."""
        after = self._bytes(conn)
        if after <= before:
            return None
        if not space.keeps(conn, "data"):
            return "NO_SPACE"
        if not 0 < self._quota < after:
            return None
        self._forget_undos(conn)
        return "QUOTA_EXCEEDED" if self._bytes(conn) > self._quota else None

    def _forget_undos(self, conn: Connection) -> None:
        """What rows keep under `undo` is the first to go: so a deletion makes room at once."""
        conn.execute(
            "UPDATE skill_data SET value = json_remove(value, '$.undo')"
            " WHERE person_id = ? AND json_extract(value, '$.undo') NOT NULL",
            (self._person,),
        )

    def _bytes(self, conn: Connection) -> int:
        row = conn.execute("SELECT data_bytes FROM people WHERE id = ?", (self._person,)).fetchone()
        return int(row["data_bytes"])

    def _write(self, conn: Connection) -> None:
        now, outside = time.time(), self._outside or self.read_outside  # a number is nobody's text
        for key, text in self._writes.items():
            if text is None:
                conn.execute(
                    "DELETE FROM skill_data WHERE person_id = ? AND skill = ? AND key = ?",
                    (self._person, self._skill, key),
                )
            else:
                conn.execute(
                    "INSERT INTO skill_data (person_id, skill, key, value, updated_at, outside)"
                    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (person_id, skill, key) DO UPDATE SET"
                    " value = excluded.value, updated_at = excluded.updated_at, outside = excluded.outside",
                    (self._person, self._skill, key, text, now, outside and _holds_text(orjson.loads(text))),
                )


def _read(texts: dict[str, str]) -> dict[str, JSON]:
    return {key: orjson.loads(text) for key, text in texts.items()}


def _check_size(size: int | None, most: int) -> None:
    if size is not None and size > most:
        raise ValueError(f"these rows have more than {most // 1024} KiB: list fewer, or by a longer prefix")


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _holds_text(value: JSON) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_text, value.values()))
    return any(map(_holds_text, value)) if isinstance(value, list) else isinstance(value, str)


class SyncSkillStore:
    """The same for a `def` tool in its own thread: reads go to the loop and are waited for."""

    def __init__(self, store: SkillStore, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop

    def get(self, key: str, default: JSON = None) -> JSON:
        return asyncio.run_coroutine_threadsafe(self._store.get(key, default), self._loop).result(
            READ_SECONDS
        )

    def put(self, key: str, value: JSON) -> None:
        self._store._put(key, value)

    def list(self, prefix: str = "", limit: int = 1000) -> dict[str, JSON]:
        texts = asyncio.run_coroutine_threadsafe(self._store.texts(prefix, limit), self._loop)
        return _read(texts.result(READ_SECONDS))

    def delete(self, key: str) -> bool:
        return asyncio.run_coroutine_threadsafe(self._store.delete(key), self._loop).result(READ_SECONDS)
