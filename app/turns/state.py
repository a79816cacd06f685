"""Hold what turns use and what one of them knows while it runs, and make the contexts of its tools."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.errors import RecadoError
from app.http.address import origins
from app.http.transport import THREAD_SECONDS, HttpClient, Transport
from app.llm.model import Model, RetryBudget
from app.messages import JSON, Channel, Outgoing, Wakeable, in_own_words
from app.people import Person
from app.routing.tool_catalog import Selection, ToolCatalog
from app.settings import Settings
from app.store import journal, limits, turn_state
from app.store.approvals import Approval
from app.store.database import Connection, Database
from app.store.journal import ModelCall, UncertainCall
from app.store.media import MediaFolder
from app.store.skill_data import READ_SECONDS, Fact, SkillStore
from app.store.statistics import day_of
from app.store.turn_state import TurnState
from app.text import visible
from app.tools import ExecutionEngine, Tool, ToolContext
from app.tools.files import Files
from app.tools.plain import dumps, loads
from app.tools.tool import InThread, Services
from app.turns.actions import Transcript, offered_tools, read_journal
from app.turns.cards import call_card, named_card, with_sources
from app.turns.limits import Limits
from app.turns.profiles import Profiles
from app.turns.prompt import Prompt, build_prompt, correction_message, remembered, round_messages, said_by
from app.turns.taint import message_sources

HISTORY_TURNS = 40


class OverBudget(RecadoError):
    """The person's tokens of the day are used up."""


@dataclass(frozen=True, slots=True)
class TurnServices:
    """The parts of the house that turns use; `sender` is told when there is something to send."""

    store: Database
    model: Model
    tools: ToolCatalog
    channels: Mapping[str, Channel]
    profiles: Profiles
    sender: Wakeable
    settings: Settings
    engine: ExecutionEngine
    contexts: "ToolContexts"
    media: MediaFolder
    files: Files
    limits: Limits
    look_again: asyncio.Event = field(default_factory=asyncio.Event)  # set, it makes the sweep look now

    @property
    def offline(self) -> bool:
        """Tell whether the built-in model answers."""
        return not self.settings.has_model


def load_turn(conn: Connection, turn: str, profiles: Profiles, now: float) -> tuple[TurnState, Person]:
    """Count an attempt at a turn and read its rows. Raises TurnGone when it has ended."""
    state = turn_state.load_turn(conn, turn, HISTORY_TURNS, day_of(now))
    is_scheduled = any(member.kind == "scheduled" for member in state.members)
    wrote = "" if is_scheduled else said_by(state.members)
    return state, profiles.known(conn, state.person, wrote)


@dataclass(slots=True)
class TurnContext:
    """Everything that one turn knows while it runs; after a crash it is made again from its rows."""

    state: TurnState
    person: Person
    channel: Channel
    said: str
    transcript: Transcript
    services: TurnServices
    facts: tuple[Fact, ...] = ()  # that the person asked to be remembered, as far as the prompt shows them
    tokens_today: int = 0
    prompt: Prompt = field(default_factory=Prompt)
    corrections: dict[int, str] = field(default_factory=dict)  # of answers, by the number of their round
    patience: RetryBudget = field(default_factory=RetryBudget)
    files_taken: int = 0  # counts those still on their way to the disk too
    uncertain: set[UncertainCall] = field(default_factory=set)  # calls that may have happened or not
    is_replay: bool = False  # a dry run, of which only the tokens that it takes are recorded

    @classmethod
    def resume(cls, state: TurnState, person: Person, services: TurnServices) -> "TurnContext":
        """Take up a turn where its journal stands."""
        said, transcript = said_by(state.members), read_journal(state.journal)
        turn = cls(state, person, services.channels[state.conversation.channel], said, transcript, services)
        turn.facts, turn.tokens_today = remembered(state.facts, said), state.tokens_today
        turn.files_taken = sum(len(result.files) for _, result in transcript.finished)
        turn.uncertain = set(state.uncertain)
        return turn

    @property
    def id(self) -> str:
        return self.state.id

    @property
    def tools(self) -> ToolCatalog:
        return self.services.tools

    @property
    def settings(self) -> Settings:
        return self.services.settings

    @property
    def in_group(self) -> bool:
        """Tell whether others read along: then nothing private is shown, and no tool is offered."""
        return bool(self.state.conversation.group)

    @property
    def schedule(self) -> str:
        """Return "task" or "watch" for a turn that such a schedule began; "" where the person wrote."""
        last = self.state.members[-1:]
        return last[0].payload["details"]["schedule"] if last and last[0].kind == "scheduled" else ""

    @property
    def may_be_silent(self) -> bool:
        """Return True for a watch that did nothing and asked nothing: it looks again soon."""
        did = self.action_summaries or self.sent_along or self.done_by_others
        return self.schedule == "watch" and not did and not self.state.has_asked

    @property
    def routed(self) -> Selection:
        """Return what was chosen for the turn. Raises ValueError before it is routed."""
        if self.transcript.routed is None:
            raise ValueError("the turn is not routed yet")
        return self.transcript.routed

    @property
    def _offered(self) -> list[tuple[str, ...]]:
        chosen = self.transcript.routed or Selection()
        return offered_tools(chosen.tools, self.transcript.rounds, self.settings.max_tools_per_call)

    @property
    def offered(self) -> tuple[str, ...]:
        """Return the names of the tools of the next model call; none before the turn is routed."""
        return self._offered[-1]

    def offered_by(self, number: int) -> frozenset[str]:
        """Return the names of all tools that the model calls up to round `number` were offered."""
        return frozenset().union(*self._offered[: number + 1])

    @property
    def chosen_skills(self) -> frozenset[str]:
        """Return the skills that may be loaded and whose files may be read."""
        return frozenset((*self.routed.skills, *self.routed.shown))

    @property
    def kept_skills(self) -> tuple[str, ...]:
        """Return the skills whose texts the conversation keeps, in the order in which they came."""
        loaded = (result.skill for _, result in self.transcript.finished if result.skill)
        return tuple(dict.fromkeys((*self.routed.shown, *loaded)))

    @property
    def may_answer_again(self) -> bool:
        """Tell whether the model may be asked once more for an answer that is not kept."""
        rounds = self.transcript.rounds
        was_corrected = any(one.text and not one.calls for one in rounds[:-1])
        return not was_corrected and len(rounds) <= self.settings.max_tool_rounds

    @property
    def sources(self) -> tuple[str, ...]:
        """Return where text of others in the prompt came from; none when all is the person's or ours."""
        state = self.state
        found = [*state.taint, *state.asked_after]
        found += ["memory"] if any(fact.outside for fact in self.facts) else []
        found += [source for exchange in state.exchanges for source in exchange.sources]
        found += message_sources(state)
        if (routed := self.transcript.routed) is not None:  # texts, files, tools from elsewhere
            offered = sorted(self.offered_by(len(self.transcript.rounds)))
            foreign = self.tools.foreign((*routed.skills, *self.kept_skills), offered)
            found += [f"skill:{name}" for name in foreign]
        found += [f"tool:{call.name}" for call, result in self.transcript.finished if result.outside]
        return tuple(dict.fromkeys(found))

    @property
    def found(self) -> list[str]:
        """Return the addresses that searches listed in this turn and in those that the prompt shows."""
        now = [address for _, result in self.transcript.finished for address in result.found]
        return [*(one for exchange in self.state.exchanges for one in exchange.found), *now]

    @property
    def own_words(self) -> list[str]:
        """Return what the person wrote in this turn and in those that the prompt shows."""
        members = (one.text for one in self.state.members if in_own_words(one.kind, one.payload))
        return [*members, *(one.own for one in self.state.exchanges)]

    @property
    def action_summaries(self) -> list[str]:
        """Return the receipts of what our own tools did; text of others may begin like one, too."""
        told = (
            result.receipt
            for call, result in self.transcript.finished
            if self.tools.is_bundled(call.name) and not self.tools.is_outside(call.name)
        )
        return list(dict.fromkeys(filter(None, told)))

    @property
    def done_by_others(self) -> list[str]:
        """Return the names of foreign tools that did something; their own receipts are not believed."""
        finished, tools = self.transcript.finished, self.tools
        done = dict.fromkeys(call.name for call, result in finished if result.changed_something)
        return [visible(name) for name in done if tools.acts(name) and not tools.is_bundled(name)]

    @property
    def asks(self) -> Mapping[str, JSON]:
        """Return the question of a tool with which the turn ends, {} for none."""
        rounds = self.transcript.rounds
        return rounds[-1].asks if rounds else {}

    @property
    def sent_along(self) -> list[Outgoing]:
        """Return the files that go with the reply, each once, in the order of their calls."""
        files = dict.fromkeys(file for _, result in self.transcript.finished for file in result.files)
        return [Outgoing(file.name, file=file) for file in files]

    def build_prompt(self) -> None:
        """Build the prompt of the next model call, with the tools that the person may know of.

        What stands in it already stays as it is, for the provider's cache.
        """
        routed = self.transcript.routed or Selection()
        since: list[dict[str, JSON]] = []
        for number, one in enumerate(self.transcript.rounds):
            since += round_messages(one)
            since += [correction_message(self.corrections[number])] if number in self.corrections else []
        skills = self.tools.instructions(routed.shown)
        tools = self.tools.offer(self.offered, self.person, routed.skills, routed.shown)
        prompt = build_prompt(self.state, self.person, skills, self.facts, tools, since)
        self.prompt = replace(prompt, steps=self.prompt.steps)  # a window that was too small stays so

    def tokens_left(self, tools: Sequence[JSON] = ()) -> int:
        """Return how many tokens the next answer may have, 0 for no limit.

        Raises OverBudget when none are left; the first answer of a day is given whatever the prompt takes.
        """
        own = self.state.person.row["daily_tokens"]
        budget = self.settings.daily_token_budget if own is None else own
        if not budget:
            return 0
        left = budget - self.tokens_today - self.prompt.tokens(tools)
        if left > 0:
            return left
        if self.state.tokens_today or self.transcript.rounds:
            raise OverBudget("the person's tokens of the day are used up")
        return budget

    async def record(self, key: str, kind: str, payload: JSON, call: ModelCall | None) -> None:
        """Commit a journal row with what the call cost; the person is not charged for a replay."""
        now, text = time.time(), dumps(payload).decode()
        tokens = call.tokens if call is not None else None

        def write(conn: Connection) -> int | None:
            if self.is_replay:
                limits.add(conn, "tokens", tokens.total if tokens is not None else 0, now)
                return None
            used = journal.record(conn, self.id, key, kind, text, now, tokens=tokens, day=day_of(now))
            if call is not None:
                journal.keep_call(conn, self.id, call)
            return used

        used = await self.services.store.tx(write)
        if used is not None:
            self.tokens_today = used


@dataclass(frozen=True, slots=True)
class ToolContexts:
    """Knows what a call has at hand, whoever makes it: store, addresses, settings and services."""

    store: Database
    tools: ToolCatalog
    services: Services  # for tools of bundled skills
    transport: Transport
    data_quota: int  # bytes that skills may keep for a person, 0 for no limit

    def store_for(self, tool: Tool, person: str, *, outside: bool) -> SkillStore:
        """Return one call's view of what a tool keeps; `outside`: text of others may come into it."""
        is_outside = outside or tool.outside
        return SkillStore(self.store, person, tool.category, self.data_quota, outside=is_outside)

    def make(self, tool: Tool | None, store: SkillStore | None) -> ToolContext:
        if tool is None:
            return ToolContext()
        settings = self.tools.settings(tool.category)
        kept: Any = store if store is None or tool.is_async else InThread(store, READ_SECONDS)
        http = HttpClient(self.transport, self.tools.hosts(tool), origins(settings.values()))
        services = self.services if self.tools.is_bundled(tool.name) else Services()
        return ToolContext(
            store=kept,
            http=http if tool.is_async else InThread(http, THREAD_SECONDS),
            settings=settings,
            services=services,
        )

    def of_turn(self, turn: TurnContext, tool: Tool | None, store: SkillStore | None = None) -> ToolContext:
        return replace(
            self.make(tool, store),
            person=turn.person,
            conversation=turn.state.conversation.id,
            channel=turn.state.conversation.channel,
            chosen=turn.chosen_skills,
            sources=turn.sources,
            message=turn.said,
            own_words=turn.own_words,
        )

    def whole_card(self, question: Approval, language: str) -> str:
        """Write the card of an open question for the console, of any length. Blocks."""
        tool, arguments = self.tools.tool(question.tool), loads(question.arguments)
        if tool is None:
            text = named_card(language, question.tool, arguments).text
        elif tool.whole_card is not None:
            text = tool.whole_card(question, self.services, language)
        else:
            text = call_card(language, tool, arguments, self.tools.sentences(tool)).text
        return with_sources(language, text, question.sources, self.tools)
