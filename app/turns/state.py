"""Hold what a turn knows while it runs, and load it from the rows."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from sqlite3 import Connection

import structlog

from app.errors import RecadoError
from app.llm.errors import RetryBudget
from app.llm.model import Model
from app.memory.remembered import remembered
from app.messages import JSON, Channel, MediaFile, Outgoing, Wakeable, in_own_words
from app.people import Person
from app.routing.feedback import NOTHING_LEARNED, Fits, learned_about
from app.routing.tool_catalog import ToolCatalog
from app.settings import Settings
from app.store import journal, traces, turn_state
from app.store.billing import RateTable
from app.store.database import Database
from app.store.journal import UncertainCall
from app.store.skill_data import Fact
from app.store.tool_statistics import day_of
from app.store.traces import ModelCall
from app.store.turn_state import TurnState
from app.text import visible
from app.tools.plain import dumps
from app.turns.actions import CallResult, Round, Routed, Transcript, offered_tools, read_journal, shown_block
from app.turns.profiles import Profiles
from app.turns.prompt import Prompt, build_prompt, said_by
from app.turns.taint import message_sources, result_sources

log = structlog.get_logger(__name__)

HISTORY_TURNS = 40
RECENT_EXCHANGES = 5  # that a message may go on with


class OverBudget(RecadoError):
    """The person's tokens of the day are used up."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The bounds of a turn; `daily_tokens` 0 means no budget."""

    tools_per_call: int = 8
    rounds: int = 5
    daily_tokens: int = 0
    classifier_seconds: float = 20.0
    burst_quiet_seconds: float = 0.0
    burst_longest_seconds: float = 0.0
    turns_at_once: int = 100
    silent_seconds: float = 12 * 3600  # after a person of the business takes over

    @classmethod
    def from_settings(cls, settings: Settings) -> "TurnLimits":
        return cls(
            tools_per_call=settings.max_tools_per_call,
            rounds=settings.max_tool_rounds,
            daily_tokens=settings.daily_token_budget,
            classifier_seconds=settings.classifier_timeout,
            burst_quiet_seconds=settings.burst_quiet_seconds,
            burst_longest_seconds=settings.burst_max_seconds,
            turns_at_once=settings.concurrent_turns,
            silent_seconds=settings.handover_hours * 3600,
        )


@dataclass(frozen=True, slots=True)
class TurnServices:
    """The parts of the house that turns use; `sender` is told when there is something to send."""

    store: Database
    model: Model
    tools: ToolCatalog
    channels: Mapping[str, Channel]
    profiles: Profiles
    sender: Wakeable
    limits: TurnLimits = field(default_factory=TurnLimits)
    offline: bool = False  # the built-in model answers
    rates: RateTable = field(default_factory=RateTable)  # what messages cost
    look_again: asyncio.Event = field(default_factory=asyncio.Event)  # set, it makes the sweep look now


@dataclass(frozen=True, slots=True)
class LoadedTurn:
    """The start of an attempt at a turn; the attempt is counted."""

    state: TurnState
    said: str  # the person's own words in its messages
    person: Person
    learned: Fits  # how tools fit by what the person asked for before


def load_turn(conn: Connection, turn: str, profiles: Profiles, now: float) -> LoadedTurn:
    """Count an attempt at a turn and read its rows. Raises TurnGone when it has ended."""
    state = turn_state.load_turn(conn, turn, now, HISTORY_TURNS, day_of(now))
    said = said_by(state.members)
    wrote = said if all(member.kind != "scheduled" for member in state.members) else ""
    person = profiles.known(conn, state.person, state.aliases, wrote)
    in_group = bool(state.conversation.group)
    learned = NOTHING_LEARNED if in_group else learned_about(conn, person, said)
    return LoadedTurn(state, said, person, learned)


@dataclass(slots=True)
class TurnContext:
    """Everything that one turn knows while it runs; after a crash it is made again from its rows."""

    state: TurnState
    person: Person
    channel: Channel
    said: str
    transcript: Transcript
    tools: ToolCatalog
    limits: TurnLimits = field(default_factory=TurnLimits)
    learned: Fits = field(default_factory=dict)
    facts: tuple[Fact, ...] = ()  # that the person asked to be remembered, as far as the prompt shows them
    tokens_today: int = 0
    prompt: Prompt = field(default_factory=Prompt)
    patience: RetryBudget = field(default_factory=RetryBudget)
    found: list[str] = field(default_factory=list)  # addresses that searches listed, also in earlier turns
    files: dict[str, tuple[MediaFile, ...]] = field(default_factory=dict)  # made by calls: "round:call id"
    files_taken: int = 0  # counts those still on their way to the disk too
    outcomes: dict[UncertainCall, bool] = field(default_factory=dict)  # calls that became uncertain, or not

    @classmethod
    def resume(cls, loaded: LoadedTurn, services: TurnServices) -> "TurnContext":
        """Take up a turn where its journal stands."""
        state, transcript = loaded.state, read_journal(loaded.state.journal)
        return cls(
            state,
            loaded.person,
            services.channels[state.conversation.channel],
            loaded.said,
            transcript,
            services.tools,
            services.limits,
            loaded.learned,
            remembered(state.facts, loaded.said),
            state.tokens_today,
            found=[*(one for exchange in state.exchanges for one in exchange.found), *transcript.found],
            files=dict(transcript.files),
            files_taken=sum(map(len, transcript.files.values())),
        )

    @property
    def id(self) -> str:
        return self.state.id

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
    def was_asked(self) -> bool:
        """Tell whether the conversation's last line asked the person something."""
        return any(exchange.reply.rstrip().endswith("?") for exchange in self.state.exchanges[-1:])

    @property
    def routed(self) -> Routed:
        """Return what was chosen for the turn. Raises ValueError before it is routed."""
        if self.transcript.routed is None:
            raise ValueError("the turn is not routed yet")
        return self.transcript.routed

    @property
    def _offered(self) -> list[tuple[str, ...]]:
        routed = self.transcript.routed
        chosen = routed.tools if routed is not None else ()
        return offered_tools(chosen, self.transcript.rounds, self.limits.tools_per_call)

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
        return tuple(dict.fromkeys((*self.routed.shown, *self.transcript.loaded_skills)))

    @property
    def is_checked(self) -> bool:
        """Tell whether the answer may hold only what was given: a guest's, but for a question of a tool."""
        return self.person.is_guest and not self.asks

    @property
    def may_answer_again(self) -> bool:
        """Tell whether the model may be asked once more for an answer that is not kept."""
        rounds = self.transcript.rounds
        was_corrected = any(one.text and not one.calls for one in rounds[:-1])
        return not was_corrected and len(rounds) <= self.limits.rounds

    @property
    def sources(self) -> tuple[str, ...]:
        """Return where text of others in the prompt came from; none when all is the person's or ours."""
        state, rounds = self.state, self.transcript.rounds
        offered = list(accumulate(map(frozenset[str], self._offered), frozenset[str].union))
        found = [*state.taint, *state.asked_after]
        found += ["memory"] if any(fact.outside for fact in self.facts) else []
        found += [source for exchange in state.exchanges for source in exchange.sources]
        found += message_sources(state)
        found += [f"skill:{name}" for name in self._foreign_skills(offered[-1])]
        found += result_sources(rounds, offered, self.tools)
        return tuple(dict.fromkeys(found))

    def _foreign_skills(self, offered: frozenset[str]) -> tuple[str, ...]:
        """Return the skills from elsewhere of which the prompt holds anything: a text, a file, a tool."""
        routed = self.transcript.routed
        if routed is None:
            return ()
        return self.tools.foreign((*routed.skills, *self.kept_skills), sorted(offered))

    @property
    def own_words(self) -> list[str]:
        """Return what the person wrote in this turn and in those that the prompt shows."""
        members = (one.text for one in self.state.members if in_own_words(one.kind, one.payload))
        return [*members, *(one.own for one in self.state.exchanges)]

    @property
    def action_summaries(self) -> list[str]:
        """Return the receipts of what our own tools did; text of others may begin like one, too."""
        return list(dict.fromkeys(
            result.receipt
            for one in self.transcript.rounds
            for call, result in one.finished
            if result.receipt and self.tools.is_bundled(call.name) and not self.tools.is_outside(call.name)
        ))  # fmt: skip

    @property
    def done_by_others(self) -> list[str]:
        """Return the names of foreign tools that did something; their own receipts are not believed."""
        done = (
            call.name
            for one in self.transcript.rounds
            for call, result in one.finished
            if result.changed_something
        )
        return [
            visible(name)
            for name in dict.fromkeys(done)
            if self.tools.is_learned(name) and not self.tools.is_bundled(name)
        ]

    @property
    def asks(self) -> Mapping[str, JSON]:
        """Return the question of a tool with which the turn ends, {} for none."""
        rounds = self.transcript.rounds
        return rounds[-1].asks if rounds else {}

    @property
    def returned_files(self) -> list[MediaFile]:
        """Return the files that go with the reply, each once, in the order of their calls."""
        rounds = enumerate(self.transcript.rounds)
        keys = (f"{number}:{call.id}" for number, one in rounds for call in one.calls)
        return list(dict.fromkeys(file for key in keys for file in self.files.get(key, ())))

    @property
    def sent_along(self) -> list[Outgoing]:
        """Return the messages that go with the reply: files, then places and contacts."""
        files = [Outgoing(file.name, file=file) for file in self.returned_files]
        blocks = [
            Outgoing(text, block=block)
            for one in self.transcript.rounds
            for _, result in one.finished
            for text, block in map(shown_block, result.sends)
        ]
        return [*files, *blocks]

    def is_uncertain(self, identify: Callable[[], UncertainCall]) -> bool:
        """Tell whether the same call may have happened or not, in this turn or before."""
        if not (self.outcomes or self.state.uncertain):
            return False  # mostly: then no call need be identified
        call = identify()
        return self.outcomes.get(call, call in self.state.uncertain)

    def build_prompt(self) -> None:
        """Build the prompt up to the last finished round, and the tools that go with it."""
        shown = self.routed.shown if self.transcript.routed else ()
        instructions = self.tools.instructions(shown)
        self.prompt = build_prompt(self.state, self.person, instructions, self.facts, self.prompt.tools)
        self.offer_tools()
        for one in self.transcript.rounds:
            if not one.unfinished:
                self.prompt.add_round(one)

    def add_results(self, number: int, results: Mapping[str, CallResult]) -> None:
        """Take over results of a round; once all are there the prompt gets them."""
        self.transcript = self.transcript.with_results(number, results)
        if not self.transcript.rounds[number].unfinished:
            self.offer_tools()
            self.prompt.add_round(self.transcript.rounds[number])

    def add_round(self, answer: Round) -> None:
        """Take over an answer of the model; one with calls goes to the prompt with their results."""
        self.transcript = self.transcript.with_round(answer)
        if not answer.calls:
            self.prompt.add_round(answer)

    def offer_tools(self) -> None:
        """Look up the tools of the next model call, as far as the person may know of them."""
        routed = self.transcript.routed or Routed((), ())
        self.prompt.tools = self.tools.offer(self.offered, self.person, routed.skills, routed.shown)

    def tokens_left(self, tools: Sequence[JSON] = ()) -> int:
        """Return how many tokens the next answer may have, 0 for no limit.

        Raises OverBudget when none are left; the first answer of a day is given whatever the prompt takes.
        """
        budget = self.limits.daily_tokens
        if not budget:
            return 0
        left = budget - self.tokens_today - self.prompt.tokens(tools)
        if left > 0:
            return left
        if self.state.tokens_today or self.transcript.rounds:
            raise OverBudget("the person's tokens of the day are used up")
        return budget

    async def record(
        self, store: Database, key: str, kind: str, payload: JSON, call: ModelCall | None
    ) -> None:
        """Write a journal row with the trace and the cost of the model call behind it."""
        now, text = time.time(), dumps(payload).decode()
        tokens = call.tokens if call is not None else None

        def write(conn: Connection) -> int | None:
            if call is not None:
                traces.keep(conn, self.id, call)
            return journal.record(conn, self.id, key, kind, text, now, tokens=tokens, day=day_of(now))

        used = await store.tx(write)
        if used is not None:
            self.tokens_today = used
