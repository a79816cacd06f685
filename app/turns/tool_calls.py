"""The tool calls of a round: all at once, each with an intent before it and a result after it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from sqlite3 import Connection
from typing import TypeVar

import structlog

from app.errors import StoreError
from app.http.address import origins
from app.http.client import HttpClient, SyncHttpClient
from app.http.transport import Transport
from app.i18n import say
from app.llm.model import ToolCall
from app.messages import JSON, MediaFile
from app.people import Person
from app.routing.tool_catalog import ToolCatalog
from app.store import journal, tool_statistics
from app.store.database import Database
from app.store.journal import UncertainCall
from app.store.media import MediaFolder, NotKept, describe_file
from app.store.skill_data import NoRoom, SkillStore
from app.text import visible
from app.tools import ExecutionEngine, Tool, ToolContext, ToolResult
from app.tools.context import PersonStore, Services
from app.tools.plain import dumps, loads
from app.tools.result import MODEL_LIMIT
from app.turns.actions import answer_key
from app.turns.approvals import Agreed, Decisions, arguments_hash, call_identity
from app.turns.cards import sources_said
from app.turns.state import TurnContext
from app.turns.taint import listed_addresses

T = TypeVar("T")
Renew = Callable[[Person], Awaitable[Person]]
"""Gives a person as they are known after a call that changed that."""

log = structlog.get_logger(__name__)

FILES_PER_TURN = 10
"""A person does not ask for more, and WhatsApp takes many only slowly (one in 6 s, after a burst)."""
RECORD_SECONDS = 30.0
"""How long a result is held that cannot be written: a locked database is free again by then, as a rule."""
RECORD_PAUSE = 1.0


class ToolCalls:
    """Runs calls through the engine, and knows which must not be run again.

    `services`: what tools of shipped skills find in `context.services`, by name; `data_quota`: bytes that
    skills may keep for a person, 0 for no limit; `transport`: what `context.http` asks with; `media`: where
    the files that tools return are kept; `renews`: of tools that change what is known of a person, by name,
    how that is read again: the others of their round wait for them, and go by it.
    """

    def __init__(
        self,
        store: Database,
        engine: ExecutionEngine,
        abilities: ToolCatalog,
        *,
        services: Mapping[str, object] | None = None,
        data_quota: int = 0,
        transport: Transport | None = None,
        media: MediaFolder | None = None,
        renews: Mapping[str, Renew] | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._abilities = abilities
        self._services = Services(services or {})
        self._data_quota = data_quota
        self._transport = transport
        self._media = media
        self._renews = renews or {}

    async def run(
        self,
        run: TurnContext,
        number: int,
        calls: Sequence[ToolCall],
        begun: frozenset[str],
        verdicts: Decisions,
    ) -> dict[str, str]:
        """What the model reads of each of these calls of round `number`, by call id.

        `begun` are calls that have an intent and no result: a crash left their outcome unknown. Those that
        `verdicts` lays aside for a question are not run, and have no result yet; nor have those whose tool
        was replaced since it was agreed to: they are to be judged again. Those that repeat another one are
        told what came of that.
        """
        ready = [call for call in calls if call.id not in {*verdicts.laid_aside, *verdicts.repeats}]
        rounds = run.transcript.rounds
        done: dict[str, str] = dict(rounds[number].results) if number < len(rounds) else {}
        for call in ready:
            if renew := self._renews.get(call.name):  # one after the other: the last one counts
                done |= await self._run_beside(run, number, [call], begun, verdicts)
                run.person = await renew(run.person)
        others = [call for call in ready if call.name not in self._renews]
        done |= await self._run_beside(run, number, others, begun, verdicts)
        for call in calls:
            if (first := verdicts.repeats.get(call.id)) in done:
                done[call.id] = await self._echo(run, number, call, _repeated(done[first], first))
        return {call.id: done[call.id] for call in calls if call.id in done}

    async def _echo(self, run: TurnContext, number: int, call: ToolCall, text: str) -> str:
        """Records the result of a call that did not run."""
        turn, tried, now = run.opened.id, run.opened.tried_before, time.time()
        key, row, after = f"tool:{number}:{call.id}", _text({"result": text}), answer_key(number)
        await self._store.tx(
            lambda conn: journal.record(conn, turn, key, "tool", row, now, after=after, tried_before=tried)
        )
        return text

    async def _run_beside(
        self,
        run: TurnContext,
        number: int,
        calls: Sequence[ToolCall],
        begun: frozenset[str],
        verdicts: Decisions,
    ) -> dict[str, str]:
        texts = await asyncio.gather(
            *(self._run_one(run, number, call, call.id in begun, verdicts) for call in calls),
            return_exceptions=True,  # what went wrong goes on once all have ended, each with its result
        )
        for error in texts:
            if isinstance(error, BaseException):
                raise error
        return {call.id: text for call, text in zip(calls, texts, strict=True) if isinstance(text, str)}

    def store_for(self, tool: Tool, person: str, *, outside: bool) -> SkillStore:
        """What a tool keeps for a person, as one call sees it; `outside`: text of others may be in it."""
        is_outside = outside or tool.outside
        return SkillStore(self._store, person, tool.category, self._data_quota, outside=is_outside)

    def reach(self, tool: Tool | None, store: SkillStore | None) -> ToolContext:
        """What a call has at hand, whoever makes it: store, addresses, settings and services."""
        settings = self._settings(tool)
        return ToolContext(
            store=_handed(tool, store),
            http=self._http(tool, settings),
            settings=settings,
            services=self._services_of(tool),
        )

    async def _run_one(
        self, run: TurnContext, number: int, call: ToolCall, begun: bool, verdicts: Decisions
    ) -> str | None:
        """The text that was recorded, which is what the model reads; None where the yes was to another call.

        Nothing is awaited between the look at the tool and the engine's own.
        """
        tool = self._abilities.tool(call.name)
        handed = tool if tool is not None and tool.wants_context else None  # else none of it need be made
        store = self.store_for(handed, run.person.id, outside=bool(run.sources)) if handed else None
        recorder = _Recorder(self._store, run, number, call, tool, begun, store, self._media)
        agreed = verdicts.agreed.get(call.id)
        must_ask = call.id in verdicts.must_ask
        context = self._context(run, number, tool, handed, recorder, store, agreed, must_ask)
        refused = verdicts.refused.get(call.id)
        if begun and not (tool is not None and tool.idempotent):
            refused = _interrupted(call.name)
        if refused is None and agreed is not None and not _holds(agreed, tool, recorder.call):
            return None
        if refused is not None:
            await self._engine.refuse(call.name, refused, context)
        else:
            await self._engine.execute_tool_call(call.name, call.arguments, context)
        if recorder.error is not None:  # the engine goes on without its record; a turn must not
            raise recorder.error
        return recorder.text

    def _context(
        self,
        run: TurnContext,
        number: int,
        tool: Tool | None,
        handed: Tool | None,
        recorder: "_Recorder",
        store: SkillStore | None,
        agreed: Agreed | None,
        must_ask: bool,
    ) -> ToolContext:
        settings = self._settings(handed)
        return ToolContext(
            store=_handed(handed, store),
            http=self._http(handed, settings),
            settings=settings,
            services=self._services_of(handed),
            person=run.person,
            conversation=run.opened.conversation.id,
            idempotency_key=f"{run.opened.id}:{recorder.key}",
            channel=run.opened.conversation.channel,
            offered=run.offered_by(number),
            chosen=run.chosen_skills,
            approved=tool if agreed is not None else None,
            must_ask=must_ask or recorder.was_uncertain,
            note=lambda: sources_said(run.person.language, run.sources, run.is_bundled),
            sources=run.sources,
            subject=agreed.subject if agreed is not None else "",
            choice=agreed.choice if agreed is not None else "",
            recorder=recorder,
        )

    def _settings(self, tool: Tool | None) -> Mapping[str, str]:
        return self._abilities.settings(tool.category) if tool is not None else {}

    def _services_of(self, tool: Tool | None) -> Services:
        return self._services if tool is not None and self._abilities.is_bundled(tool.name) else Services()

    def _http(self, tool: Tool | None, settings: Mapping[str, str]) -> HttpClient | SyncHttpClient | None:
        if tool is None or self._transport is None:
            return None
        client = HttpClient(self._transport, self._abilities.hosts(tool), origins(settings.values()))
        return client if tool.is_async else client.sync()


class _Recorder:
    """Writes one call's intent and result; what the tool stored, the files it returned and its figures commit
    with the result."""

    def __init__(
        self,
        database: Database,
        run: TurnContext,
        number: int,
        call: ToolCall,
        tool: Tool | None,
        begun: bool,
        skill_store: SkillStore | None,
        media: MediaFolder | None,
    ) -> None:
        self._database = database
        self._run = run
        self._turn = run.opened.id
        self._language = run.person.language
        self.key = f"{number}:{call.id}"
        self._call = call
        self._tool = tool
        self._searches = tool is not None and tool.permits_addresses
        self._after = answer_key(number)
        self._begun = begun
        self._skill_store = skill_store
        self._media = media
        self._intent = ""
        self._intended = False
        self.was_uncertain = run.is_uncertain(lambda: self.call)
        """Before it ran: another one like it beside it may become so."""
        self.error: Exception | None = None
        """Why a row could not be written."""
        self.text = ""
        """The result as it was written."""

    @property
    def call(self) -> UncertainCall:
        """The call by what it does: one that ran by its intent, for a tool may have changed its arguments."""
        if not self._intent:
            return call_identity(self._tool, self._call)
        return self._call.name, arguments_hash(loads(self._intent)["arguments"])

    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        self._intent = _text({"tool": tool.name, "arguments": args})
        if not self._begun:  # an idempotent call that a crash cut off has its row already
            await self._write(lambda conn: self._record(conn, "intent", self._intent))
        self._after = ""  # the intent stands, and so does what it follows from
        self._intended = True

    async def result(self, result: ToolResult, tool: str, seconds: float | None) -> ToolResult:
        """Gives what was written: a failure where what the tool stored could not be kept, and marked where
        it read rows that were made of text of others."""
        if self._skill_store is not None and self._skill_store.read_outside:
            result = result.with_meta(outside=True)
        result, files = await self._keep_files(result)
        text = await result.text()
        found = listed_addresses(result.data) if self._searches and result.ok else []
        day = tool_statistics.day_of(time.time())
        doubtful = self.call if self._ran and (_is_unknown(result) or self.was_uncertain) else None

        def write(conn: Connection) -> tuple[ToolResult, str]:
            refused = self._keep_stored(conn) if result.ok else None
            kept, said = (result, text) if refused is None else (refused, refused.to_json())
            self._record(conn, "tool", _text({"result": said}))
            if found:
                self._record(conn, "found", _text(found))
            if files and refused is None:
                self._record(conn, "files", _text(files))
            if doubtful is not None:
                self._note_outcome(conn, doubtful, kept)
            tool_statistics.count(conn, tool, kept.code, seconds, day)
            return kept, said

        written, self.text = await self._write(write)
        self._run.found += found
        if files and written.ok:
            self._run.files[self.key] = files
        if doubtful is not None:
            self._run.outcomes[doubtful] = _is_unknown(written)
        return written

    @property
    def _ran(self) -> bool:
        return self._begun or self._intended

    async def _keep_files(self, result: ToolResult) -> tuple[ToolResult, tuple[MediaFile, ...]]:
        """Puts the files of a success on the disk; the result then says what becomes of each."""
        if not result.attachments or not result.ok or self._media is None:
            return result, ()
        room = FILES_PER_TURN - self._run.files_taken
        taken, left = result.attachments[:room], result.attachments[room:]
        self._run.files_taken += len(taken)
        kept: list[MediaFile] = []
        said: list[str] = []
        for one in taken:
            try:
                file = await asyncio.to_thread(
                    self._media.keep, self._run.person.id, one.data, one.mime_type, one.name
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

    def _note_outcome(self, conn: Connection, call: UncertainCall, result: ToolResult) -> None:
        """What is not known now must not be done again unasked, and what is known may be."""
        if _is_unknown(result):
            journal.mark_uncertain(conn, self._run.person.id, call, time.time())
        else:
            journal.clear_uncertain(conn, self._run.person.id, call)

    async def _write(self, write: Callable[[Connection], T]) -> T:
        """What a tool did is known here alone: in the trouble of a disk its result is written until it is."""
        until = time.monotonic() + (RECORD_SECONDS if self._intended else 0.0)
        while True:
            try:
                return await self._database.tx(write)
            except Exception as error:
                if not isinstance(error, StoreError) or time.monotonic() >= until:
                    self.error = error
                    raise
                log.warning("a result waits for the disk", turn=self._turn, call=self.key, error=str(error))
            await asyncio.sleep(RECORD_PAUSE)

    def _record(self, conn: Connection, kind: str, row: str) -> None:
        key = f"{kind}:{self.key}"
        tried, now = self._run.opened.tried_before, time.time()
        journal.record(conn, self._turn, key, kind, row, now, after=self._after, tried_before=tried)

    def _keep_stored(self, conn: Connection) -> ToolResult | None:
        """Writes what the tool stored; gives why it may not stay, None where it may."""
        try:
            if self._skill_store is not None:
                self._skill_store.apply(conn)
        except NoRoom as full:
            return not_kept(full, self._language)
        return None


def _handed(tool: Tool | None, store: SkillStore | None) -> PersonStore | None:
    """The store as a function awaits it or not."""
    return store if store is None or tool is None or tool.is_async else store.sync()


def _text(payload: JSON) -> str:
    return dumps(payload).decode()


def _repeated(result: str, first: str) -> str:
    """The result of call `first` for one that repeats it; what is meant twice is called again later."""
    told = loads(result)
    told["meta"] = {**told.get("meta", {}), "same_call_as": first, "ran_again": False}
    text = _text(told)
    return text if len(text.encode()) <= MODEL_LIMIT else result


def _holds(agreed: Agreed, tool: Tool | None, call: UncertainCall) -> bool:
    """Whether a yes was for this tool with these arguments."""
    return tool is not None and (agreed.tool_hash, agreed.arguments_hash) == (tool.definition_hash, call[1])


def _interrupted(name: str) -> ToolResult:
    return ToolResult.failure(
        "OUTCOME_UNKNOWN",
        f"{name} was interrupted: it may have happened or not",
        "check whether it happened if a tool can tell; do not repeat it without the person's yes",
        outcome="unknown",
    )


def not_kept(full: NoRoom, language: str) -> ToolResult:
    if full.code == "QUOTA_EXCEEDED":
        text = say(language, "I could not save it: your data has reached its limit. Delete something first.")
    else:
        text = say(language, "I could not save it: my disk is nearly full. The person who runs me was told.")
    return ToolResult.failure(full.code, text)


def _is_unknown(result: ToolResult) -> bool:
    return result.meta.get("outcome") == "unknown"
