"""One turn: from a burst of messages to a reply, each step written down before the next."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from sqlite3 import Connection

import orjson
import structlog

from app.language import say
from app.llm.model import Model, ModelAnswer, ModelError, ModelRequest, ToolCall
from app.llm.patience import Patience
from app.llm.reading import calls_in_text
from app.messages import JSON, Channel
from app.people import Person
from app.routing import IntentRequest, classify_intent, select_tools
from app.routing.abilities import Abilities
from app.store import alerts, dead_letters, turns
from app.store.database import Database
from app.store.outbox import Draft
from app.store.skill_data import SkillStore
from app.store.turns import MAX_ATTEMPTS, Opened, Outcome, Spent
from app.tools import ExecutionEngine, Tool, ToolContext, ToolResult
from app.turns import commands
from app.turns.actions import (
    AskModel,
    Reply,
    Round,
    Route,
    Routed,
    RunTools,
    Transcript,
    next_action,
    read_journal,
    unique_calls,
)
from app.turns.context import (
    history_messages,
    newest_message,
    round_messages,
    said_by,
    system_message,
)
from app.turns.profile import Profiles

log = structlog.get_logger(__name__)

TYPING_SECONDS = 20.0
TYPING_LIMIT = 5.0
HISTORY_TURNS = 40
CALLS_PER_ROUND = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a turn."""

    tools_per_call: int = 8
    rounds: int = 5
    daily_tokens: int = 0
    classifier_seconds: float = 20.0


class OverBudget(Exception):
    """The person's tokens of the day are used up."""


@dataclass(slots=True)
class _Run:
    """A turn in progress."""

    opened: Opened
    person: Person
    channel: Channel
    said: str
    transcript: Transcript
    messages: list[dict[str, JSON]] = field(default_factory=list)
    hashed: list[tuple[str, str]] = field(default_factory=list)
    tokens_today: int = 0
    patience: Patience = field(default_factory=Patience)
    uncertain: set[bytes] = field(default_factory=set)
    """Calls with an unknown outcome: the same again needs the person's word first."""


class TurnRunner:
    """Runs turns. It holds nothing about any of them: what is known of a turn stands in its rows."""

    def __init__(
        self,
        store: Database,
        model: Model,
        abilities: Abilities,
        engine: ExecutionEngine,
        channels: Mapping[str, Channel],
        profiles: Profiles,
        limits: Limits,
        *,
        on_reply: Callable[[str], None],
        offline: bool,
    ) -> None:
        self._store = store
        self._model = model
        self._abilities = abilities
        self._engine = engine
        self._channels = channels
        self._profiles = profiles
        self._limits = limits
        self._on_reply = on_reply
        self._offline = offline
        self._typing: set[asyncio.Task[None]] = set()

    async def run(self, turn: str) -> None:
        """Runs a turn from wherever its journal stands to its end. Raises what no reply can mend."""
        run = await self._open(turn)
        if run.opened.attempts > MAX_ATTEMPTS:
            return await self._give_up(run, "it failed three times")
        if run.opened.members and run.opened.members[-1].command:
            return await self._obey(run, run.opened.members[-1].command)
        typing = self._show_typing(run)
        try:
            await self._converse(run)
        except ModelError as error:
            await self._report_model(run, error)
        except OverBudget:
            await self._refuse(run)
        finally:
            typing.cancel()

    async def give_up(self, turn: str, reason: str) -> None:
        """Ends a turn that cannot be run with an honest reply, a dead letter and an alert."""
        await self._give_up(await self._open(turn), reason)

    async def close(self) -> None:
        """Ends what shows typing."""
        for task in self._typing:
            task.cancel()
        await asyncio.gather(*self._typing, return_exceptions=True)

    async def _open(self, turn: str) -> _Run:
        now, day = time.time(), today()
        opened = await self._store.tx(lambda conn: turns.begin(conn, turn, now, HISTORY_TURNS, day))
        return _Run(
            opened=opened,
            person=await self._profiles.person(opened),
            channel=self._channels[opened.conversation.channel],
            said=said_by(opened.members),
            transcript=read_journal(opened.journal),
            tokens_today=opened.tokens_today,
        )

    async def _converse(self, run: _Run) -> None:
        self._abilities.refresh()
        if run.transcript.routed is not None:
            self._prepare(run, run.transcript.routed)
        while True:
            match next_action(run.transcript, self._limits.rounds):
                case Route():
                    self._prepare(run, await self._route(run))
                case AskModel(number, with_tools):
                    await self._ask(run, number, with_tools)
                case RunTools(number, calls, begun):
                    await self._run_tools(run, number, calls, begun)
                case Reply(text):
                    return await self._reply(run, text)

    async def _route(self, run: _Run) -> Routed:
        """Classifies the intent and chooses the tools; both are kept, so that a restart offers the same."""
        if self._limits.daily_tokens:
            self._prepare(run, Routed((), ()))
            self._check_budget(run)
        started = time.monotonic()
        classified = await classify_intent(
            self._model,
            IntentRequest(
                said=run.said,
                person=run.person,
                categories=self._abilities.categories(run.person),
                recent=tuple(exchange.said for exchange in run.opened.exchanges[-2:]),
                sticky=run.opened.sticky_categories,
                timeout=self._limits.classifier_seconds,
            ),
            self._abilities.index,
        )
        if classified.problem:
            log.warning("classifier failed", turn=run.opened.id, problem=classified.problem)
        intent = classified.intent
        tools = select_tools(
            intent,
            run.said,
            self._abilities.index,
            self._abilities.tool_categories(run.person),
            sticky=run.opened.sticky_tools,
            limit=self._limits.tools_per_call,
        )
        routed = Routed(intent.categories, tools)
        payload = {
            "categories": routed.categories,
            "tools": routed.tools,
            "phrases": intent.phrases,
            "source": intent.source,
            "catalog": self._abilities.version,
        }
        spent = None
        if classified.answer is not None:
            parts = hashed([orjson.dumps(message) for message in classified.prompt])
            spent = _cost(classified.answer, parts, time.monotonic() - started)
        await self._record(run, "route", "route", payload, spent)
        run.transcript = Transcript(routed)
        return routed

    def _prepare(self, run: _Run, routed: Routed) -> None:
        """The prompt up to where the transcript stands."""
        opened = run.opened
        run.messages = [
            system_message(run.person, self._abilities.instructions(routed.categories, routed.tools)),
            *history_messages(opened.exchanges),
            newest_message(
                run.person,
                opened.members,
                opened.quoted,
                opened.created_at,
                first_contact=opened.first_contact,
            ),
        ]
        for one in run.transcript.rounds:
            run.messages += round_messages(one)

    async def _ask(self, run: _Run, number: int, with_tools: bool) -> None:
        """One model call, recorded before anything follows from it."""
        assert run.transcript.routed is not None
        offered = run.transcript.routed.tools if with_tools else ()
        tools = self._abilities.schemas(offered)
        request = ModelRequest(
            "answer",
            run.messages,
            tools,
            said=run.said,
            person=run.person,
            max_tokens=self._check_budget(run),
        )
        started = time.monotonic()
        answer = await run.patience.complete(self._model, request)
        seconds = time.monotonic() - started
        text, calls = self._read(run, answer, offered)
        spent = self._spent(run, tools, answer, seconds)
        payload = {
            "text": text,
            "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls],
        }
        await self._record(run, f"llm:{number}", "llm", payload, spent)
        one = Round(text, calls)
        run.transcript = run.transcript.with_round(one)
        if not calls:
            run.messages += round_messages(one)

    def _read(
        self, run: _Run, answer: ModelAnswer, offered: Sequence[str]
    ) -> tuple[str, tuple[ToolCall, ...]]:
        """The answer's text and calls; calls written as text count where they may."""
        if not offered:
            return answer.text, ()
        text, calls = answer.text, answer.calls
        if not calls:
            heard = [str(message.get("content") or "") for message in run.messages[1:]]
            calls = calls_in_text(text, offered, heard)
            text = "" if calls else text
        taken = [call.id for one in run.transcript.rounds for call in one.calls]
        return text, unique_calls(calls[:CALLS_PER_ROUND], taken)

    async def _run_tools(
        self, run: _Run, number: int, calls: Sequence[ToolCall], begun: frozenset[str]
    ) -> None:
        """All calls of a round at once; each one's intent and result are rows of their own."""
        results = await asyncio.gather(
            *(self._run_tool(run, number, call, call.id in begun) for call in calls)
        )
        done = {call.id: result.to_json() for call, result in zip(calls, results, strict=True)}
        run.transcript = run.transcript.with_results(done)
        run.messages += round_messages(run.transcript.rounds[-1])

    async def _run_tool(self, run: _Run, number: int, call: ToolCall, begun: bool) -> ToolResult:
        key = f"{number}:{call.id}"
        tool = self._abilities.tool(call.name)
        same = orjson.dumps([call.name, call.arguments])
        recorder = _Recorder(self._store, run.opened.id, key, begun)
        if begun and not (tool is not None and tool.idempotent):
            run.uncertain.add(same)
            result = _interrupted(call.name)
            await recorder.result(result)
            return result
        if same in run.uncertain:
            result = _ask_first(call.name)
            await recorder.result(result)
            return result
        recorder.skill_store = self._skill_store(run, tool)
        result = await self._engine.execute_tool_call(
            call.name, call.arguments, self._context(run, tool, key, recorder)
        )
        if result.meta.get("outcome") == "unknown":
            run.uncertain.add(same)
        return result

    def _skill_store(self, run: _Run, tool: Tool | None) -> SkillStore | None:
        return None if tool is None else SkillStore(self._store, run.person.id, tool.category)

    def _context(self, run: _Run, tool: Tool | None, key: str, recorder: "_Recorder") -> ToolContext:
        assert run.transcript.routed is not None
        store = recorder.skill_store
        return ToolContext(
            person=run.person,
            conversation=run.opened.conversation.id,
            store=store if store is None or (tool is not None and tool.is_async) else store.sync(),
            settings={} if tool is None else self._abilities.settings(tool.category),
            idempotency_key=f"{run.opened.id}:{key}",
            channel=run.opened.conversation.channel,
            offered=frozenset(run.transcript.routed.tools),
            recorder=recorder,
        )

    async def _reply(self, run: _Run, text: str) -> None:
        assert run.transcript.routed is not None
        text = text or say(
            run.person.language, "I found nothing to say to that. Could you put it another way?"
        )
        routed = run.transcript.routed
        await self._end(run, "answered", text, sticky=(routed.tools, routed.categories))

    async def _obey(self, run: _Run, command: str) -> None:
        """Answers a command."""
        language = run.person.language
        if command == "help":
            self._abilities.refresh()
            text = commands.help_text(language, self._abilities.summary(run.person), self._offline)
        elif command == "new":
            text = commands.new_text(language)
        else:
            text = commands.stopped_text(language)
        await self._end(run, "command", text, fresh=command == "new")

    async def _report_model(self, run: _Run, error: ModelError) -> None:
        """Tells the person honestly and shortly, the operator everything."""
        log.error("model failed", turn=run.opened.id, error=str(error))
        text = say(
            run.person.language,
            "I cannot reach my language model right now, so I cannot answer. Please try again in a while.",
        )
        await self._end(run, "failed", text, error=str(error), alert=("model", str(error)))

    async def _refuse(self, run: _Run) -> None:
        """Says once an hour that the day's tokens are used up."""
        text = say(
            run.person.language,
            "You have used up today's allowance of the assistant. I can answer again tomorrow.",
        )
        hour = datetime.now(UTC).strftime("%Y-%m-%dT%H")
        await self._end(run, "refused", text, source=f"budget:{run.person.id}:{hour}")

    async def _give_up(self, run: _Run, reason: str) -> None:
        log.error("turn given up", turn=run.opened.id, attempts=run.opened.attempts, reason=reason)
        text = say(
            run.person.language,
            "Something went wrong on my side and I could not finish this. The person who runs me was told.",
        )
        await self._end(run, "failed", text, error=reason, alert=("turn", f"a turn was given up: {reason}"))

    async def _end(
        self,
        run: _Run,
        outcome: Outcome,
        text: str,
        *,
        error: str = "",
        alert: tuple[str, str] | None = None,
        sticky: tuple[Sequence[str], Sequence[str]] | None = None,
        fresh: bool = False,
        source: str = "",
    ) -> None:
        """One transaction: the turn done, its members closed, the reply's rows, what the operator is told."""
        now = time.time()
        opened = run.opened
        draft = Draft(text, tuple(run.channel.render(text)))

        def write(conn: Connection) -> None:
            turns.end(
                conn,
                opened.id,
                opened.conversation,
                outcome,
                text,
                draft,
                now,
                error=error,
                sticky=sticky,
                source=source,
            )
            if fresh:
                turns.new_conversation(conn, opened.conversation.id, now)
            if alert is not None:
                alerts.raise_alert(conn, *alert, now)
            if outcome == "failed":
                letter = {"turn": opened.id, "attempts": opened.attempts}
                dead_letters.put(conn, "turn", error, letter, now, person=run.person.id)
            elif outcome == "answered":
                alerts.mend(conn, "model", now)

        await self._store.tx(write, then=lambda _: self._on_reply(run.person.id))

    def _check_budget(self, run: _Run) -> int:
        """How many tokens the next call may use, 0 for no limit. Raises OverBudget where none are left."""
        limit = self._limits.daily_tokens
        if not limit:
            return 0
        prompt = sum(len(message.get("content") or "") for message in run.messages) // 4
        left = limit - run.tokens_today - prompt
        if left <= 0:
            raise OverBudget
        return left

    def _spent(self, run: _Run, tools: Sequence[JSON], answer: ModelAnswer, seconds: float) -> Spent:
        bodies = [orjson.dumps(message) for message in run.messages[len(run.hashed) :]]
        run.hashed += hashed(bodies)
        offered = hashed([orjson.dumps({"tools": tools})]) if tools else []
        return _cost(answer, (*offered, *run.hashed), seconds)

    async def _record(self, run: _Run, key: str, kind: str, payload: JSON, spent: Spent | None) -> None:
        now, turn, day = time.time(), run.opened.id, today()
        text = orjson.dumps(payload).decode()
        used = await self._store.tx(
            lambda conn: turns.record(conn, turn, key, kind, text, now, spent=spent, day=day)
        )
        run.tokens_today = used or run.tokens_today

    def _show_typing(self, run: _Run) -> "asyncio.Task[None]":
        """Shows that an answer is being written, again every 20 s; it may fail, and holds up nothing."""
        shown = next((member.wamid for member in reversed(run.opened.members) if member.wamid), "")

        async def show() -> None:
            while shown:
                first = asyncio.ensure_future(_limited(run.channel.typing(shown)))
                self._keep(first)
                await asyncio.sleep(TYPING_SECONDS)

        task = asyncio.create_task(show(), name=f"typing {run.opened.id}")
        self._keep(task)
        return task

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._typing.add(task)
        task.add_done_callback(self._typing.discard)


class _Recorder:
    """Writes one call's intent and result; what the tool stored commits with the result."""

    def __init__(self, store: Database, turn: str, key: str, begun: bool) -> None:
        self._store = store
        self._turn = turn
        self._key = key
        self._begun = begun
        self.skill_store: SkillStore | None = None

    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        if not self._begun:  # an idempotent call that a crash interrupted has its row already
            await self._add("intent", orjson.dumps({"tool": tool.name}).decode())

    async def result(self, result: ToolResult) -> None:
        payload = orjson.dumps({"result": result.to_json()}).decode()
        await self._add("tool", payload, self.skill_store if result.ok else None)

    async def _add(self, kind: str, payload: str, skill_store: SkillStore | None = None) -> None:
        now = time.time()

        def write(conn: Connection) -> None:
            turns.record(conn, self._turn, f"{kind}:{self._key}", kind, payload, now)
            if skill_store is not None:
                skill_store.apply(conn)

        await self._store.tx(write)


async def _limited(typing: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(TYPING_LIMIT):
            await typing
    except TimeoutError:
        log.debug("typing was not shown in time")


def _interrupted(name: str) -> ToolResult:
    return ToolResult.failure(
        "OUTCOME_UNKNOWN",
        f"{name} was interrupted: it may have happened or not",
        "check whether it happened if a tool can tell; do not repeat it without the person's yes",
        outcome="unknown",
    )


def _ask_first(name: str) -> ToolResult:
    return ToolResult.failure(
        "DENIED",
        f"{name} with the same arguments has an unknown outcome already",
        "tell the person that it may have happened, and ask whether to do it again",
    )


def _cost(answer: ModelAnswer, parts: tuple[tuple[str, str], ...], seconds: float) -> Spent:
    usage = answer.usage
    return Spent(answer.model, parts, usage.prompt, usage.completion, usage.cached, seconds)


def hashed(bodies: Sequence[bytes]) -> tuple[tuple[str, str], ...]:
    """(hash, body) of parts of a prompt."""
    return tuple((blake2b(body, digest_size=12).hexdigest(), body.decode()) for body in bodies)


def today() -> str:
    """The day that token budgets count by: UTC, YYYY-MM-DD."""
    return datetime.now(UTC).strftime("%Y-%m-%d")
