"""Run the tool calls of a round: all at once, each with an intent before it and a result after it."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import TypeVar

from app.i18n import say
from app.llm.model import ToolCall
from app.messages import JSON, MediaFile
from app.people import Person
from app.store import journal, statistics
from app.store.database import Connection, Database
from app.store.journal import UncertainCall
from app.store.media import LARGEST_PICTURE, MediaFolder, NotKept, describe_file
from app.store.skill_data import NoRoom, SkillStore
from app.text import visible
from app.tools import ExecutionEngine, Tool, ToolResult
from app.tools.documents import DocumentError, Documents, is_picture
from app.tools.engine import CallTerms
from app.tools.plain import dumps
from app.tools.result import ReturnedFile
from app.turns.actions import CallResult
from app.turns.approvals import Agreed, Decisions, call_identity
from app.turns.cards import sources_sentence
from app.turns.contexts import ToolContexts
from app.turns.state import TurnContext, TurnServices
from app.turns.taint import listed_addresses

T = TypeVar("T")

JPEG, PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
FILES_PER_TURN = 10  # a person does not ask for more, and WhatsApp takes many only slowly


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of a round, as it is run."""

    turn: TurnContext
    round: int
    call: ToolCall
    tool: Tool | None
    begun: bool  # it has an intent: a crash left its outcome unknown
    store: SkillStore | None = None

    @property
    def key(self) -> str:
        return f"{self.round}:{self.call.id}"


class ToolCalls:
    """Runs calls through the engine, and knows which must not be run again; `media` keeps returned files."""

    def __init__(
        self,
        services: TurnServices,
        engine: ExecutionEngine,
        contexts: ToolContexts,
        media: MediaFolder | None = None,
        documents: Documents | None = None,
    ) -> None:
        self._services = services
        self._store = services.store
        self._engine = engine
        self._contexts = contexts
        self._media = media
        self._documents = documents

    async def run(
        self,
        turn: TurnContext,
        number: int,
        calls: Sequence[ToolCall],
        begun: frozenset[str],
        decisions: Decisions,
    ) -> dict[str, CallResult]:
        """Return the results of these calls of round `number`, by call id.

        The `begun` ones have an intent and no result: a crash left their outcome unknown. Calls that are laid
        aside for a question do not run and have no result yet; nor have those whose tool was replaced since
        it was agreed to: they are authorized again.
        """
        run = partial(self._run_one, turn, number, begun, decisions)
        due = [call for call in calls if call.id not in decisions.laid_aside]
        tools = self._services.tools
        first = [call for call in due if (tool := tools.tool(call.name)) and tool.changes_person]
        together = [call for call in due if call not in first]
        results: dict[str, CallResult | None] = {}
        for call in first:
            results[call.id] = await run(call)
            turn.person = await self._services.profiles.renewed(self._store, turn.person)
        ended = await asyncio.gather(*map(run, together), return_exceptions=True)
        for call, result in zip(together, ended, strict=True):
            if isinstance(result, BaseException):
                raise result  # once all have ended, each with its result
            results[call.id] = result
        return {id: result for id, result in results.items() if result is not None}

    async def _run_one(
        self, turn: TurnContext, number: int, begun: frozenset[str], decisions: Decisions, call: ToolCall
    ) -> CallResult | None:
        """Return the recorded result, None when the yes was to another call.

        Nothing is awaited between the look at the tool and the engine's own.
        """
        tool = self._services.tools.tool(call.name)
        receiver = tool if tool is not None and tool.wants_context else None
        store = None
        if receiver is not None:
            store = self._contexts.store_for(receiver, turn.person.id, outside=bool(turn.sources))
        one = _Call(turn, number, call, tool, call.id in begun, store)
        recorder = _Recorder(self._store, one, self._media, self._documents)
        agreed, refused = decisions.agreed.get(call.id), decisions.refused.get(call.id)
        if one.begun and not (tool is not None and tool.idempotent):
            refused = _interrupted(call.name)
        if refused is None and agreed is not None and not _holds(agreed, tool, call, recorder.identity):
            return None
        context = replace(
            self._contexts.of_turn(turn, receiver, store),
            idempotency_key=f"{turn.id}:{one.key}",
            subject=agreed.subject if agreed is not None else "",
            choice=agreed.choice if agreed is not None else "",
        )
        terms = CallTerms(
            offered=turn.offered_by(number),
            approved=tool if agreed is not None else None,
            must_ask=call.id in decisions.must_ask or recorder.was_uncertain,
            note=sources_sentence(turn.person.language, turn.sources, turn.tools),
            recorder=recorder,
        )
        if refused is not None:
            await self._engine.refuse(call.name, refused, context, terms)
        else:
            await self._engine.execute_tool_call(call.name, call.arguments, context, terms)
        if recorder.error is not None:  # the engine goes on without its record; a turn must not
            raise recorder.error
        return recorder.recorded


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
        text, day = result.to_json(), statistics.day_of(time.time())

        def write(conn: Connection) -> ToolResult:
            kept, said = result, text
            try:
                if result.ok and self._store is not None:
                    self._store.apply(conn)
            except NoRoom as full:
                kept = ToolResult.failure(full.code, _why_not_kept(full, self._person.language))
                said = kept.to_json()
            self._write_result(conn, kept, said)
            statistics.count_call(conn, tool, kept.code, seconds, day)
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


class _Recorder(CallRecorder):
    """Writes the rows of a turn's call: with the result go the files it returned and what searches found."""

    def __init__(
        self, database: Database, one: _Call, media: MediaFolder | None, documents: Documents | None
    ) -> None:
        super().__init__(database, one.turn.person, one.store)
        self._one = one
        self._turn = one.turn
        self._media = media
        self._documents = documents
        self._intended = False
        self.identity = call_identity(one.tool, one.call)  # now: the tool may change its arguments
        self._files: tuple[MediaFile, ...] = ()
        self.was_uncertain = self.identity in one.turn.uncertain  # before it ran
        self.error: Exception | None = None  # why a row could not be written
        self.recorded: CallResult | None = None

    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        row = {"tool": tool.name, "arguments": args}
        if not self._one.begun:  # an idempotent call that a crash cut off has its row already
            await self._write(lambda conn: self._record(conn, "intent", row))
        if not self._database.holds_lease:  # this process stood still: the turn is another worker's
            self.error = journal.TurnGone("this worker was silent for too long")
            raise self.error
        self._intended = True

    async def result(self, result: ToolResult, tool: str, seconds: float | None) -> ToolResult:
        result, self._files = await self._keep_files(result)
        written = await super().result(result, tool, seconds)
        if self._is_doubtful(written):
            change = self._turn.uncertain.add if is_unknown(written) else self._turn.uncertain.discard
            change(self.identity)
        return written

    def _write_result(self, conn: Connection, result: ToolResult, text: str) -> None:
        one, name, tools = self._one, self._one.call.name, self._turn.tools
        facts = CallResult.of(name, result, text, bundled=tools.is_bundled(name))
        searches = one.tool is not None and one.tool.permits_addresses
        # the answer to the name of a tool that was not offered is ours, as is why one of our own failed
        brings_others = (
            name in self._turn.offered_by(one.round)
            and tools.is_outside(name)
            and (result.ok or not tools.is_bundled(name))
        )
        self.recorded = replace(
            facts,
            outside=facts.outside or brings_others,
            found=tuple(listed_addresses(result.data)) if searches and result.ok else (),
            files=self._files if result.ok else (),
        )
        self._record(conn, "tool", self.recorded.row())
        if self._is_doubtful(result):
            self._note_outcome(conn, self.identity, result)

    def _is_doubtful(self, result: ToolResult) -> bool:
        """Tell whether the call ran and its outcome is unknown, or was before it ran."""
        ran = self._one.begun or self._intended
        return ran and (is_unknown(result) or self.was_uncertain)

    async def _keep_files(self, result: ToolResult) -> tuple[ToolResult, tuple[MediaFile, ...]]:
        """Put the files of a success on the disk; the result then says what becomes of each."""
        if not result.attachments or not result.ok or self._media is None:
            return result, ()
        room = FILES_PER_TURN - self._turn.files_taken
        taken, left = result.attachments[:room], result.attachments[room:]
        self._turn.files_taken += len(taken)
        kept: list[MediaFile] = []
        said: list[str] = []
        for one in taken:
            try:
                fit = await self._fit_for_whatsapp(one)
                file = await asyncio.to_thread(
                    self._media.keep, self._turn.person.id, fit.data, fit.mime_type, fit.name
                )
            except NotKept as reason:
                said.append(f"not sent to the person: {visible(one.name[:80]) or 'a file'}: {reason}")
            else:
                kept.append(file)
                said.append(f"sent to the person with your answer: {describe_file(file)}")
        if left:
            said.append(
                f"not sent to the person: {len(left)} more; an answer has at most {FILES_PER_TURN} files"
            )
        return replace(result.with_meta(files=said), attachments=()), tuple(kept)

    async def _fit_for_whatsapp(self, file: ReturnedFile) -> ReturnedFile:
        """Return a picture that WhatsApp does not take as it is as a JPEG; other files as they are."""
        is_fit = file.data.startswith((JPEG, PNG)) and len(file.data) <= LARGEST_PICTURE
        if self._documents is None or is_fit or not is_picture(file.data[:64]):
            return file
        try:
            data = await asyncio.to_thread(self._documents.convert, file.data)
        except DocumentError:
            return file
        return ReturnedFile(data, "image/jpeg", f"{PurePath(file.name or 'picture').stem}.jpg")

    async def _write(self, write: Callable[[Connection], T]) -> T:
        try:
            return await super()._write(write)
        except Exception as error:
            self.error = error
            raise

    def _record(self, conn: Connection, kind: str, payload: JSON) -> None:
        row = dumps(payload).decode()
        journal.record(conn, self._turn.id, f"{kind}:{self._one.key}", kind, row, time.time())


def _holds(agreed: Agreed, tool: Tool | None, call: ToolCall, identity: UncertainCall) -> bool:
    """Tell whether a yes was for this tool with these arguments."""
    if tool is None or agreed.arguments_hash != identity[1]:
        return False
    return agreed.tool_hash == tool.consent_hash(tool.validate_args(call.arguments))


def _interrupted(name: str) -> ToolResult:
    return ToolResult.failure(
        "OUTCOME_UNKNOWN",
        f"{name} was interrupted: it may have happened or not",
        "check whether it happened if a tool can tell; do not repeat it without the person's yes",
        outcome="unknown",
    )


def is_unknown(result: ToolResult) -> bool:
    """Tell whether nobody knows if the call happened."""
    return result.meta.get("outcome") == "unknown"


def _why_not_kept(full: NoRoom, language: str) -> str:
    if full.code == "QUOTA_EXCEEDED":
        return say(language, "I could not save it: your data has reached its limit. Delete something first.")
    return say(language, "I could not save it: my disk is nearly full. The person who runs me was told.")
