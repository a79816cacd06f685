"""One turn: from a burst of messages to a reply, each step written down before the next."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from sqlite3 import Connection

import structlog

from app.errors import StoreError
from app.llm.errors import ModelError
from app.llm.model import Model, ModelAnswer, ModelRequest, ToolCall
from app.llm.reading import calls_in_text, without_marked_calls
from app.memory.remembered import remembered
from app.messages import JSON, Channel
from app.routing import Classified, Intent, IntentRequest, classify_intent
from app.routing.snapshot import Catalog
from app.routing.tool_catalog import Selection, ToolCatalog, ToolSet
from app.routing.tool_search import SEARCH_TOOLS
from app.store import journal
from app.store.database import Database
from app.store.tool_statistics import day_of
from app.store.traces import ModelCall
from app.store.turns import MAX_ATTEMPTS
from app.tools.masking import mask_text
from app.tools.plain import dumps
from app.turns import commands
from app.turns.actions import (
    AskModel,
    Reply,
    Round,
    Route,
    Routed,
    RunTools,
    answer_key,
    answer_row,
    next_action,
    read_journal,
    unique_calls,
)
from app.turns.approvals import Authorizer
from app.turns.finalizer import TurnFinalizer, cut_short
from app.turns.profiles import Profiles
from app.turns.state import LoadedTurn, TurnContext, begin, hashed, model_call
from app.turns.tool_calls import ToolCalls
from app.turns.typing_indicator import Typing

log = structlog.get_logger(__name__)

RECENT = 4
"""Exchanges that a message is classified beside."""
CALLS_PER_ROUND = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a turn; `daily_tokens` 0 means no budget."""

    tools_per_call: int = 8
    rounds: int = 5
    daily_tokens: int = 0
    classifier_seconds: float = 20.0


class OverBudget(Exception):
    """The person's tokens of the day are used up."""


class TurnRunner:
    """Runs turns. It holds nothing about any of them: what is known of a turn stands in its rows."""

    def __init__(
        self,
        store: Database,
        model: Model,
        abilities: ToolCatalog,
        tool_calls: ToolCalls,
        consent: Authorizer,
        endings: TurnFinalizer,
        channels: Mapping[str, Channel],
        profiles: Profiles,
        limits: Limits,
        *,
        offline: bool,
    ) -> None:
        self._store = store
        self._model = model
        self._abilities = abilities
        self._tool_calls = tool_calls
        self._consent = consent
        self._endings = endings
        self._channels = channels
        self._profiles = profiles
        self._limits = limits
        self._offline = offline
        self._typing = Typing()

    def begin(self, conn: Connection, turn: str, now: float) -> LoadedTurn:
        """Counts an attempt at a turn and reads what `run` needs. Raises TurnGone where it has ended."""
        return begin(conn, turn, self._profiles, now)

    async def run(self, turn: str, begun: LoadedTurn | None = None) -> None:
        """Runs a turn from wherever its journal stands to its end. Raises what no reply can mend."""
        if begun is None:
            now = time.time()
            begun = await self._store.tx(lambda conn: self.begin(conn, turn, now))
        run = self._taken_up(begun)
        last = run.opened.members[-1] if run.opened.members else None
        if run.opened.attempts > MAX_ATTEMPTS:
            return await self._endings.abandoned(run, "it failed three times")
        if last is not None and last.command:
            return await self._obey(run, last.command, last.text)
        with self._typing.shown(run.channel, last.wamid if last is not None else ""):
            try:
                await self.execute_tool_loop(run)
            except ModelError as error:
                await self._endings.model_failed(run, error)
            except OverBudget:
                await self._endings.over_budget(run)
            finally:
                with suppress(StoreError):  # the store closed first
                    run.keep_trace(self._store)

    async def close(self) -> None:
        await self._typing.close()

    async def execute_tool_loop(self, run: TurnContext) -> None:
        """Route, ask, run tools, ask again, reply: each step as the journal says it is due."""
        begins = run.transcript.routed is None
        # One that goes on after a restart waits too: its tools may be of a server that starts with us.
        await self._abilities.refresh_for_message()
        if not begins:
            self._build_prompt(run, run.routed)
        while True:
            match next_action(run.transcript, self._limits.rounds):
                case Route():
                    await self._route(run)
                case AskModel(number, with_tools):
                    await run.recorded()  # no model is asked on top of a step that may yet be lost
                    await self._ask(run, number, with_tools)
                case RunTools(number, calls, begun):
                    if not await self._run_tools(run, number, calls, begun):
                        return
                case Reply(text):
                    await self._endings.answered(run, text)
                    return

    async def _route(self, run: TurnContext) -> None:
        """Classifies the intent and chooses the tools; both are kept, so that a restart offers the same."""
        self._check_budget(run)
        started = time.monotonic()
        abilities, catalog = self._abilities, self._abilities.catalog
        request = self._intent_request(run)
        classified = await classify_intent(self._model, request, abilities.index, abilities.skill_index)
        if classified.problem:
            log.warning(
                "classifier failed",
                turn=run.opened.id,
                person=run.person.id,
                problem=mask_text(classified.problem),
            )
        intent = classified.intent
        choice = self._choose(run, intent)
        payload = {
            "categories": intent.categories,
            "tools": choice.tools,
            "skills": choice.skills,
            "shown": choice.shown,
            "phrases": intent.phrases,
            "source": intent.source,
            "reasons": [one.row for one in choice.reasons],
            "catalog": abilities.catalog.version,
        }
        self._record(run, "route", "route", payload, _classifier_call(classified, started, catalog))
        goes_on = intent.source == "continued"
        routed = Routed(intent.categories, choice.tools, choice.skills, choice.shown, goes_on)
        run.transcript = run.transcript.with_route(routed)
        self._build_prompt(run, routed)

    def _choose(self, run: TurnContext, intent: Intent) -> Selection:
        if run.in_group:
            return Selection()
        return self._abilities.choose(
            intent,
            run.said,
            run.person,
            sticky=run.opened.sticky_tools,
            active=run.opened.active_skills,
            always=(SEARCH_TOOLS,),
            learned=run.learned,
            limit=self._limits.tools_per_call,
        )

    async def _ask(self, run: TurnContext, number: int, with_tools: bool) -> None:
        """One model call, recorded before anything follows from it."""
        tools = run.offer.schemas if with_tools else []
        started = time.monotonic()
        answer = await self._answer(run, tools)
        text, calls = _read(run, answer, run.offered if with_tools else ())
        attached = answer.attached if calls else {}
        asked = Round(text, calls, attached=attached)
        key = answer_key(number)
        call = run.traced_call(key, answer, time.monotonic() - started, with_tools=with_tools)
        self._record(run, key, "llm", answer_row(asked), call)
        run.transcript = run.transcript.with_round(asked)
        if not calls:
            run.add_round(asked)

    async def _answer(self, run: TurnContext, tools: list[dict[str, JSON]]) -> ModelAnswer:
        """The model's answer to the prompt, or to a shorter one where its window has no room for that."""
        while True:
            request = ModelRequest(
                "answer",
                run.prompt,
                tools,
                said=run.said,
                person=run.person,
                max_tokens=self._tokens_left(run, tools),
                catalog=run.offer.catalog.hash,
                facts=tuple(fact.text for fact in run.facts if not fact.outside),
                waits=bool(run.opened.open_questions),
            )
            try:
                return await run.patience.complete(self._model, request)
            except ModelError as error:
                if not (error.is_too_long and run.shorten()):
                    raise
                log.warning("the prompt is too long for the model", turn=run.opened.id, shorter=run.shorter)

    async def _run_tools(
        self, run: TurnContext, number: int, calls: Sequence[ToolCall], begun: frozenset[str]
    ) -> bool:
        """Runs what may run; False where others wait for an answer, and the turn with them.

        A call whose tool was replaced meanwhile stays as it is, and is judged again.
        """
        verdicts = await self._consent.authorize(run, number, calls, begun)
        results = await self._tool_calls.run(run, number, calls, begun, verdicts)
        run.transcript = run.transcript.with_results(number, results)
        if verdicts.laid_aside:
            await self._consent.park(run, verdicts)
            return False
        if not run.transcript.rounds[number].unfinished:
            run.offer = self._offer(run)
            run.add_round(run.transcript.rounds[number])
        return True

    def _taken_up(self, begun: LoadedTurn) -> TurnContext:
        opened, transcript = begun.opened, read_journal(begun.opened.journal)
        return TurnContext(
            opened=opened,
            person=begun.person,
            channel=self._channels[opened.conversation.channel],
            said=begun.said,
            learned=begun.learned,
            transcript=transcript,
            found=[*(one for exchange in opened.exchanges for one in exchange.found), *transcript.found],
            files=dict(transcript.files),
            files_taken=sum(map(len, transcript.files.values())),
            tokens_today=opened.tokens_today,
            facts=remembered(opened.facts, begun.said),
            most_tools=self._limits.tools_per_call,
            is_outside=self._abilities.is_outside,
            is_bundled=self._abilities.is_bundled,
            foreign=self._abilities.foreign,
            view=lambda: self._abilities.catalog,
            is_learned=self._abilities.is_learned,
        )

    async def _obey(self, run: TurnContext, command: str, written: str) -> None:
        language = commands.language_of_command(written) or run.person.language
        if command == "help":
            await self._abilities.refresh()
            text = commands.help_text(
                language,
                self._abilities.summary(run.person, language, offline=self._offline),
                unknown=commands.unknown_command(written),
                offline=self._offline,
                is_owner=run.person.is_owner,
            )
        else:
            text = commands.new_text(language) if command == "new" else commands.stopped_text(language)
        await self._endings.command_answered(run, text, fresh=command == "new")

    def _build_prompt(self, run: TurnContext, routed: Routed) -> None:
        run.build_prompt(self._abilities.instructions(routed.shown), self._offer(run))

    def _offer(self, run: TurnContext) -> ToolSet:
        """The tools of the next model call, so far as the person may know of them."""
        last, offered = run.offer, run.offered
        if last.catalog is self._abilities.catalog and last.wanted == offered and last.person is run.person:
            return last
        routed = run.transcript.routed or Routed((), ())
        return self._abilities.offer(offered, run.person, routed.skills, routed.shown)

    def _intent_request(self, run: TurnContext) -> IntentRequest:
        return IntentRequest(
            said=run.said,
            person=run.person,
            categories=() if run.in_group else self._abilities.categories(run.person),
            recent=tuple(exchange.said for exchange in run.opened.exchanges[-RECENT:]),
            asked=run.asked,
            sticky=run.opened.sticky_categories,
            timeout=self._limits.classifier_seconds,
            catalog=self._abilities.catalog.hash,
            learned=run.learned,
        )

    def _check_budget(self, run: TurnContext) -> None:
        """Raises OverBudget where not even the bare conversation could be shown to the model."""
        if self._limits.daily_tokens:
            self._build_prompt(run, Routed((), ()))
            self._tokens_left(run)

    def _tokens_left(self, run: TurnContext, tools: Sequence[JSON] = ()) -> int:
        """How many tokens the next answer may have, 0 for no limit. Raises OverBudget where none are left.

        Who has used none yet is answered once, also where the prompt alone is larger than the whole budget.
        """
        budget = self._limits.daily_tokens
        if not budget:
            return 0
        left = budget - run.tokens_today - run.prompt_tokens(tools)
        if left > 0:
            return left
        if run.opened.tokens_today or run.transcript.rounds:
            raise OverBudget
        return budget

    def _record(self, run: TurnContext, key: str, kind: str, payload: JSON, call: ModelCall | None) -> None:
        """Queues a journal row, with what the call cost: what is written later is written after it."""
        now, turn, tried = time.time(), run.opened.id, run.opened.tried_before
        text = dumps(payload).decode()
        if call is not None:
            run.model_calls.append(call)
        tokens = call.tokens if call is not None else None
        run.recording = self._store.submit(
            lambda conn: journal.record(
                conn, turn, key, kind, text, now, tried_before=tried, tokens=tokens, day=day_of(now)
            )
        )


def _read(run: TurnContext, answer: ModelAnswer, offered: Sequence[str]) -> tuple[str, tuple[ToolCall, ...]]:
    """The answer's text and calls; calls written as text count where they may, else nobody reads them."""
    text, calls = answer.text, answer.calls if offered else ()
    if not calls:
        calls = calls_in_text(text, offered, run.heard())
        text = "" if calls else without_marked_calls(text)
        text = cut_short(text, run.person.language) if text and answer.cut else text
    taken = [call.id for one in run.transcript.rounds for call in one.calls]
    return text, unique_calls(calls[:CALLS_PER_ROUND], taken)


def _classifier_call(classified: Classified, started: float, catalog: Catalog) -> ModelCall | None:
    if classified.answer is None:
        return None
    parts = hashed(classified.prompt)
    hashes = tuple(part for part, _ in parts)
    return model_call("route", classified.answer, hashes, parts, time.monotonic() - started, catalog)
