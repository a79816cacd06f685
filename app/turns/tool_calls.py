"""Run the tool calls of a round: all at once, each with an intent before it and a result after it."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
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
from app.store.media import LARGEST_PICTURE, NotKept, describe_file
from app.store.skill_data import NoRoom, SkillStore
from app.text import visible
from app.tools import Tool, ToolResult
from app.tools.documents import DocumentError, is_picture
from app.tools.engine import CallTerms, Recorder
from app.tools.plain import dumps
from app.tools.result import ReturnedFile
from app.turns.actions import CallResult
from app.turns.approvals import Agreed, Decisions, call_identity
from app.turns.state import TurnContext
from app.turns.taint import listed_addresses

T = TypeVar("T")

JPEG, PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
FILES_PER_TURN = 10  # a person does not ask for more, and WhatsApp takes many only slowly


async def run_calls(
    turn: TurnContext, number: int, calls: Sequence[ToolCall], begun: frozenset[str], decisions: Decisions
) -> dict[str, CallResult]:
    """Return the results of these calls of round `number`, by call id.

    The `begun` ones have an intent and no result: a crash left their outcome unknown. Calls that are laid
    aside for a question do not run and have no result yet; nor have those whose tool was replaced since
    it was agreed to: they are authorized again.
    """
    run = partial(_run_one, turn, number, begun, decisions)
    services = turn.services
    results: dict[str, CallResult | None] = {}
    due = [call for call in calls if call.id not in decisions.laid_aside]
    first = [call for call in due if (tool := services.tools.tool(call.name)) and tool.changes_person]
    together = [call for call in due if call not in first]
    for call in first:
        results[call.id] = await run(call)
        turn.person = await services.profiles.renewed(turn.person)
    ended = await asyncio.gather(*map(run, together), return_exceptions=True)
    for call, result in zip(together, ended, strict=True):
        if isinstance(result, BaseException):
            raise result  # once all have ended, each with its result
        results[call.id] = result
    return {id: result for id, result in results.items() if result is not None}


async def _run_one(
    turn: TurnContext, number: int, begun: frozenset[str], decisions: Decisions, call: ToolCall
) -> CallResult | None:
    """Return the recorded result, None when the yes was to another call.

    Nothing is awaited between the look at the tool and the engine's own.
    """
    services = turn.services
    recorder = _Recorder(turn, number, call, begun=call.id in begun)
    tool, receiver = recorder.tool, recorder.receiver
    agreed, refused = decisions.agreed.get(call.id), decisions.refused.get(call.id)
    if call.id in begun and not (tool is not None and tool.idempotent):
        said = f"{call.name} was interrupted: it may have happened or not"
        hint = "check whether it happened if a tool can tell; do not repeat it without the person's yes"
        refused = ToolResult.failure("OUTCOME_UNKNOWN", said, hint, outcome="unknown")
    if refused is None and agreed is not None and not _holds(agreed, tool, call, recorder.identity):
        return None
    context = services.contexts.of_turn(turn, receiver, recorder.store)
    context = replace(context, idempotency_key=f"{turn.id}:{recorder.key}")
    if agreed is not None:
        context = replace(context, subject=agreed.subject, choice=agreed.choice)
    terms = CallTerms(
        offered=turn.offered_by(number),
        approved=tool if agreed is not None else None,
        must_ask=call.id in decisions.must_ask or recorder.was_uncertain,
        recorder=recorder,
    )
    if refused is not None:
        await services.engine.refuse(call.name, refused, context, terms)
    else:
        await services.engine.execute_tool_call(call.name, call.arguments, context, terms)
    if recorder.error is not None:  # the engine goes on without its record; a turn must not
        raise recorder.error
    return recorder.recorded


class CallRecorder(Recorder, ABC):
    """Records one call of a person; where its rows stand is for turns and `/mcp` to say."""

    def __init__(self, database: Database, person: Person, store: SkillStore | None) -> None:
        self._database = database
        self._person = person
        self.store = store  # holds what the tool stores, None for a tool without a store

    async def result(self, result: ToolResult, tool: str, seconds: float | None) -> ToolResult:
        """Keep a result and return what was kept; it is marked `outside` if the store gave text of others."""
        if self.store is not None and self.store.read_outside:
            result = result.with_meta(outside=True)
        text = result.to_json()
        day = statistics.day_of(time.time())

        def write(conn: Connection) -> ToolResult:
            kept, said = result, text
            try:
                if result.ok and self.store is not None:
                    self.store.apply(conn)
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

    def __init__(self, turn: TurnContext, number: int, call: ToolCall, *, begun: bool) -> None:
        services = turn.services
        self.tool = tool = services.tools.tool(call.name)
        self.receiver = tool if tool is not None and tool.wants_context else None
        store = None
        if self.receiver is not None:
            store = services.contexts.store_for(self.receiver, turn.person.id, outside=bool(turn.sources))
        super().__init__(services.store, turn.person, store)
        self.key = f"{number}:{call.id}"
        self.identity = call_identity(tool, call)  # now: the tool may change its arguments
        self.was_uncertain = self.identity in turn.uncertain  # before it ran
        self.error: Exception | None = None  # why a row could not be written
        self.recorded: CallResult | None = None
        self._media, self._documents = services.media, services.files.documents
        self._turn, self._name = turn, call.name
        self._was_offered = call.name in turn.offered_by(number)
        self._begun = begun  # it has its intent already
        self._intended = False
        self._files: tuple[MediaFile, ...] = ()

    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        if not self._begun:
            row = {"tool": tool.name, "arguments": args}
            await self._write(lambda conn: self._record(conn, "intent", row))
        if not self._database.holds_lease:  # this process stood still: the turn is another worker's
            self.error = journal.TurnGone("this worker was silent for too long")
            raise self.error
        self._intended = True

    async def result(self, result: ToolResult, tool: str, seconds: float | None) -> ToolResult:
        if result.ok and result.attachments:
            result = await self._keep_files(result)
        written = await super().result(result, tool, seconds)
        if self._is_doubtful(written):
            if is_unknown(written):
                self._turn.uncertain.add(self.identity)
            else:
                self._turn.uncertain.discard(self.identity)
        return written

    def _write_result(self, conn: Connection, result: ToolResult, text: str) -> None:
        tools = self._turn.tools
        searches = self.tool is not None and self.tool.permits_addresses
        is_bundled = tools.is_bundled(self._name)
        facts = CallResult.of(self._name, result, text, bundled=is_bundled)
        # the answer to the name of a tool that was not offered is ours, as is why one of our own failed
        brings_others = self._was_offered and tools.is_outside(self._name) and (result.ok or not is_bundled)
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
        return (self._begun or self._intended) and (is_unknown(result) or self.was_uncertain)

    async def _keep_files(self, result: ToolResult) -> ToolResult:
        """Put the files of a success on the disk; the result then says what becomes of each."""
        said: list[str] = []
        for one in result.attachments:
            try:
                self._turn.files_taken += 1
                if self._turn.files_taken > FILES_PER_TURN:
                    raise NotKept(f"an answer has at most {FILES_PER_TURN} files")
                fit = await self._fit_for_whatsapp(one)
                file = await asyncio.to_thread(
                    self._media.keep, self._person.id, fit.data, fit.mime_type, fit.name
                )
            except NotKept as reason:
                said.append(f"not sent to the person: {visible(one.name[:80]) or 'a file'}: {reason}")
            else:
                self._files += (file,)
                said.append(f"sent to the person with your answer: {describe_file(file)}")
        return replace(result.with_meta(files=said), attachments=())

    async def _fit_for_whatsapp(self, file: ReturnedFile) -> ReturnedFile:
        """Return a picture that WhatsApp does not take as it is as a JPEG; other files as they are."""
        is_fit = file.data.startswith((JPEG, PNG)) and len(file.data) <= LARGEST_PICTURE
        if is_fit or not is_picture(file.data[:64]):
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
        journal.record(conn, self._turn.id, f"{kind}:{self.key}", kind, row, time.time())


def _holds(agreed: Agreed, tool: Tool | None, call: ToolCall, identity: UncertainCall) -> bool:
    """Tell whether a yes was for this tool with these arguments."""
    if tool is None or agreed.arguments_hash != identity[1]:
        return False
    return agreed.tool_hash == tool.consent_hash(tool.validate_args(call.arguments))


def is_unknown(result: ToolResult) -> bool:
    """Tell whether nobody knows if the call happened."""
    return result.meta.get("outcome") == "unknown"


def _why_not_kept(full: NoRoom, language: str) -> str:
    if full.code == "QUOTA_EXCEEDED":
        return say(language, "I could not save it: your data has reached its limit. Delete something first.")
    return say(language, "I could not save it: my disk is nearly full. The person who runs me was told.")
