"""Record a tool call: an intent before it runs, its result in the commit that keeps what the tool stored."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from app.i18n import say
from app.messages import JSON
from app.people import Person
from app.store import journal, tool_statistics
from app.store.database import Connection, Database
from app.store.journal import UncertainCall
from app.store.skill_data import NoRoom, SkillStore
from app.tools import Tool, ToolResult

T = TypeVar("T")


class CallRecorder(ABC):
    """The `Recorder` of one call of a person; where its rows stand is for turns and `/mcp` to say.

    `store` holds what the tool stores, None for a tool without a store.
    """

    def __init__(self, database: Database, person: Person, store: SkillStore | None) -> None:
        self._database = database
        self._person = person
        self._store = store

    @abstractmethod
    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        """Commit that the call is about to run."""

    async def result(self, result: ToolResult, tool: str, seconds: float | None) -> ToolResult:
        """Record a result and return what was written: a failure when what the tool stored could not be kept.

        A result that was made of rows with text of others is marked.
        """
        if self._store is not None and self._store.read_outside:
            result = result.with_meta(outside=True)
        text, day = result.to_json(), tool_statistics.day_of(time.time())

        def write(conn: Connection) -> ToolResult:
            kept, said = result, text
            try:
                if result.ok and self._store is not None:
                    self._store.apply(conn)
            except NoRoom as full:
                kept = ToolResult.failure(full.code, _why_not_kept(full, self._person.language))
                said = kept.to_json()
            self._write_result(conn, kept, said)
            tool_statistics.count(conn, tool, kept.code, seconds, day)
            return kept

        return await self._write(write)

    @abstractmethod
    def _write_result(self, conn: Connection, result: ToolResult, text: str) -> None:
        """Write the rows of a result, of which the model reads `text`."""

    async def _write(self, write: Callable[[Connection], T]) -> T:
        return await self._database.tx(write)

    def _note_outcome(self, conn: Connection, call: UncertainCall, result: ToolResult) -> None:
        """Keep whether the outcome is unknown: then the call must not be done again unasked."""
        if is_unknown(result):
            journal.mark_uncertain(conn, self._person.id, call, time.time())
        else:
            journal.clear_uncertain(conn, self._person.id, call)


def is_unknown(result: ToolResult) -> bool:
    """Tell whether nobody knows if the call happened."""
    return result.meta.get("outcome") == "unknown"


def _why_not_kept(full: NoRoom, language: str) -> str:
    if full.code == "QUOTA_EXCEEDED":
        return say(language, "I could not save it: your data has reached its limit. Delete something first.")
    return say(language, "I could not save it: my disk is nearly full. The person who runs me was told.")
