"""A turn in progress: what its rows say, and the prompt as far as it has come."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import accumulate
from sqlite3 import Connection
from typing import NamedTuple

import orjson
import structlog

from app.llm.errors import RetryBudget
from app.llm.model import ModelAnswer
from app.messages import JSON, Channel, MediaFile
from app.people import Person
from app.routing.feedback import NOTHING_LEARNED, Fits, learned_about
from app.routing.snapshot import Catalog
from app.routing.tool_catalog import Instructions, ToolSet
from app.store import traces, turn_state
from app.store.database import Database
from app.store.inbox import in_own_words
from app.store.journal import Tokens, UncertainCall
from app.store.skill_data import Fact
from app.store.tool_statistics import day_of
from app.store.traces import ModelCall
from app.store.turn_state import TurnState
from app.text import visible
from app.turns.actions import Round, Routed, Transcript
from app.turns.offers import offers
from app.turns.profiles import Profiles
from app.turns.prompt import (
    SHORTER,
    history_messages,
    newest_message,
    round_messages,
    said_by,
    shortened,
    system_message,
)
from app.turns.receipts import receipts
from app.turns.taint import sources

log = structlog.get_logger(__name__)


class _Offers(NamedTuple):
    """Names of the tools of each model call of a transcript and of the next one, and of all up to each."""

    transcript: Transcript
    each: Sequence[tuple[str, ...]]
    by_then: Sequence[frozenset[str]]

    @classmethod
    def of(cls, transcript: Transcript, limit: int) -> "_Offers":
        chosen = transcript.routed.tools if transcript.routed is not None else ()
        each = offers(chosen, transcript.rounds, limit)
        return cls(transcript, each, list(accumulate(map(frozenset[str], each), frozenset[str].union)))


@dataclass(slots=True)
class TurnContext:
    """Everything one turn knows while it runs; after a crash it is made again from the rows."""

    opened: TurnState
    person: Person
    channel: Channel
    said: str
    transcript: Transcript
    tokens_today: int
    learned: Fits = field(default_factory=dict)
    """How tools fit by what the person asked for before."""
    facts: tuple[Fact, ...] = ()
    """What the person asked to be remembered, as far as the prompt shows it."""
    most_tools: int = 8
    """In one model call."""
    is_outside: Callable[[str], bool] = lambda tool: True
    """Whether a tool's results may hold what others wrote."""
    is_bundled: Callable[[str], bool] = lambda tool: False
    """Whether a tool is one of the release."""
    foreign: Callable[[Iterable[str], Iterable[str]], tuple[str, ...]] = lambda skills, tools: ()
    """Which of these skills, and of those with these tools, came from elsewhere."""
    view: Callable[[], object] = lambda: None
    """What there is now: another object once any tool or skill has changed."""
    is_learned: Callable[[str], bool] = lambda tool: False
    """Whether successful calls of a tool teach anything."""
    messages: list[dict[str, JSON]] = field(default_factory=list)
    """The prompt in full."""
    shorter: int = 0
    """How often it was shortened, because the model's window had no room for it."""
    offer: ToolSet = field(default_factory=ToolSet)
    """The tools that go with the next model call."""
    patience: RetryBudget = field(default_factory=RetryBudget)
    found: list[str] = field(default_factory=list)
    """Addresses that searches listed, in this turn and in those that the prompt shows."""
    files: dict[str, tuple[MediaFile, ...]] = field(default_factory=dict)
    """What calls of this turn made for the person, by "round:call id"."""
    files_taken: int = 0
    """How many these are, those that are still on their way to the disk among them."""
    outcomes: dict[UncertainCall, bool] = field(default_factory=dict)
    """Whether a call became uncertain in this run, or is not any more."""
    _sources: tuple[Transcript, object, tuple[str, ...]] | None = None
    _offered: "_Offers | None" = None
    """Both of a transcript, the sources of a view too: each call of a round asks for them several times."""
    _newest: int = 0
    """Where in the prompt stands what the person sent now."""
    _hashes: list[str] = field(default_factory=list)
    """Of the messages that an earlier call of this run had."""
    model_calls: list[ModelCall] = field(default_factory=list)
    """Of this run, in their order: those that the trace does not have yet."""
    recording: "asyncio.Future[int | None] | None" = None
    """The newest journal row, perhaps still on its way to the disk."""

    def keep_trace(self, store: Database) -> None:
        """Queues the trace of the model calls since the last time: as a rule once for all of a turn, for with
        each answer they were a fifth of the pages that it writes. Who ends it or lays it aside does so first:
        it goes with that commit. A crash costs the trace of the calls since the turn was taken up.
        """
        turn, calls, self.model_calls = self.opened.id, self.model_calls, []
        if calls:
            kept = store.submit(lambda conn: traces.keep(conn, turn, calls))
            kept.add_done_callback(partial(_not_traced, turn))

    async def recorded(self) -> None:
        """Waits until the newest journal row is on the disk. Raises what kept it from being written."""
        if self.recording is not None and (used := await self.recording) is not None:
            self.tokens_today = used

    @property
    def routed(self) -> Routed:
        """What was chosen for the turn. Raises where nothing is chosen yet."""
        if self.transcript.routed is None:
            raise ValueError("the turn is not routed yet")
        return self.transcript.routed

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the tools of the next model call; none before the turn is routed."""
        return self._offers.each[-1]

    def offered_by(self, number: int) -> frozenset[str]:
        """Names of all tools that the model calls up to that of round `number` were offered."""
        by_then = self._offers.by_then
        return by_then[min(number, len(by_then) - 1)]

    @property
    def _offers(self) -> "_Offers":
        if self._offered is None or self._offered.transcript is not self.transcript:
            self._offered = _Offers.of(self.transcript, self.most_tools)
        return self._offered

    @property
    def chosen_skills(self) -> frozenset[str]:
        """The skills that may be loaded and whose files may be read."""
        return frozenset((*self.routed.skills, *self.routed.shown))

    @property
    def kept_skills(self) -> tuple[str, ...]:
        """The skills whose texts the conversation goes on with, in the order in which they came."""
        return tuple(dict.fromkeys((*self.routed.shown, *self.transcript.loaded)))

    @property
    def in_group(self) -> bool:
        """Others read along: nothing of the person's own may be shown, and so no tool is offered."""
        return bool(self.opened.conversation.group)

    @property
    def asked(self) -> bool:
        """Whether the person was asked something in the conversation's last line."""
        return any(exchange.reply.rstrip().endswith("?") for exchange in self.opened.exchanges[-1:])

    @property
    def sources(self) -> tuple[str, ...]:
        """Where text of others in the prompt came from; none where all of it is the person's or ours."""
        view = self.view()
        if self._sources is None or self._sources[0] is not self.transcript or self._sources[1] is not view:
            self._sources = self.transcript, view, self._found_sources()
        return self._sources[2]

    def _found_sources(self) -> tuple[str, ...]:
        opened = self.opened
        found = sources(
            opened.members,
            opened.quoted,
            opened.exchanges,
            self.transcript.rounds,
            self._foreign_skills(),
            in_group=self.in_group,
            is_outside=self.is_outside,
            offered=self.offered_by,
        )
        recalled = ["memory"] if any(fact.outside for fact in self.facts) else []
        return tuple(dict.fromkeys((*opened.taint, *opened.asked_after, *recalled, *found)))

    def _foreign_skills(self) -> tuple[str, ...]:
        """The skills from elsewhere of which the prompt holds anything: a text, a file, a tool."""
        routed = self.transcript.routed
        if routed is None:
            return ()
        tools = self.offered_by(len(self.transcript.rounds))
        return self.foreign((*routed.skills, *self.kept_skills), sorted(tools))

    @property
    def own_words(self) -> list[str]:
        """What the person wrote in this turn and in those that the prompt shows."""
        members = (one.text for one in self.opened.members if in_own_words(one.kind, one.payload))
        return [*members, *(one.own for one in self.opened.exchanges)]

    @property
    def receipts(self) -> list[str]:
        """What the tools of this turn did, in their own words; a page may begin with such words too."""
        return receipts(
            self.transcript.rounds, lambda tool: self.is_bundled(tool) and not self.is_outside(tool)
        )

    @property
    def done(self) -> list[str]:
        """The tools of others that did something in this turn, by name: their receipts nobody believes."""
        names = (call.name for one in self.transcript.rounds for call in one.calls if one.has_done(call))
        return [
            visible(name)
            for name in dict.fromkeys(names)
            if self.is_learned(name) and not self.is_bundled(name)  # not those that only lead to others
        ]

    @property
    def returned(self) -> list[MediaFile]:
        """The files that go with the reply, each once, in the order in which the model asked for them."""
        rounds = enumerate(self.transcript.rounds)
        keys = (f"{number}:{call.id}" for number, one in rounds for call in one.calls)
        return list(dict.fromkeys(file for key in keys for file in self.files.get(key, ())))

    def is_uncertain(self, identify: Callable[[], UncertainCall]) -> bool:
        """Whether the same call may have happened or not, in this turn or before; mostly no call is such, and
        none need be identified."""
        if not (self.outcomes or self.opened.uncertain):
            return False
        call = identify()
        return self.outcomes.get(call, call in self.opened.uncertain)

    def build_prompt(self, instructions: Sequence[Instructions], offer: ToolSet) -> None:
        """The prompt up to the last finished round, and the tools that go with it."""
        opened = self.opened
        history = history_messages(opened.exchanges)
        self._newest = 1 + len(history)
        self.messages = [
            system_message(self.person, instructions),
            *history,
            newest_message(
                self.person,
                opened.members,
                opened.quoted,
                opened.created_at,
                first_contact=opened.first_contact,
                in_group=self.in_group,
                open_questions=opened.open_questions,
                facts=self.facts,
            ),
        ]
        self.offer = offer
        self._hashes = []
        for one in self.transcript.rounds:
            if not one.unfinished:
                self.add_round(one)

    def add_round(self, one: Round) -> None:
        """A finished round goes to the end of the prompt; what stands before it stays as it is."""
        self.messages += round_messages(one)

    def shorten(self) -> bool:
        """Makes the prompt shorter; False where that was done as far as it goes."""
        if self.shorter == len(SHORTER):
            return False
        self.shorter += 1
        self._hashes = []
        return True

    @property
    def prompt(self) -> list[dict[str, JSON]]:
        """The prompt as the model gets it."""
        return shortened(self.messages, self._newest, self.shorter) if self.shorter else self.messages

    def heard(self) -> list[str]:
        """Every text the model was given but for our own instructions."""
        return [str(message.get("content") or "") for message in self.messages[1:]]

    def prompt_tokens(self, tools: Sequence[JSON]) -> int:
        """A rough size of the prompt with these tools: four characters a token."""
        return len(orjson.dumps([self.prompt, tools])) // 4

    def traced_call(self, key: str, answer: ModelAnswer, seconds: float, *, with_tools: bool) -> ModelCall:
        """A call with the prompt as it stands, for the trace."""
        names = self.offer.names if with_tools else []
        shown = hashed([{"tools": names, "catalog": self.offer.catalog.hash}] if names else [])
        new = hashed(self.prompt[len(self._hashes) :])
        self._hashes += [part for part, _ in new]
        hashes = (*(part for part, _ in shown), *self._hashes)
        return model_call(key, answer, hashes, (*shown, *new), seconds, self.offer.catalog)


def _not_traced(turn: str, kept: "asyncio.Future[None]") -> None:
    """Says so: nobody waits for a trace."""
    if not kept.cancelled() and (error := kept.exception()) is not None:
        log.warning("not traced", turn=turn, error=f"{type(error).__name__}: {error}")


def hashed(parts: Sequence[JSON]) -> tuple[tuple[str, str], ...]:
    """(hash, JSON text) of parts of a prompt."""
    bodies = [orjson.dumps(part) for part in parts]
    return tuple((blake2b(body, digest_size=12).hexdigest(), body.decode()) for body in bodies)


def model_call(
    key: str,
    answer: ModelAnswer,
    hashes: tuple[str, ...],
    parts: tuple[tuple[str, str], ...],
    seconds: float,
    catalog: Catalog,
) -> ModelCall:
    """A model call as it is kept."""
    usage = answer.usage
    tokens = Tokens(usage.prompt, usage.completion, usage.cached)
    return ModelCall(
        key, answer.model, hashes, parts, tokens, seconds, time.time(), catalog.hash, catalog.body
    )


HISTORY_TURNS = 40


@dataclass(frozen=True, slots=True)
class LoadedTurn:
    """An attempt at a turn that is counted. `learned`: how tools fit by what the person asked for before."""

    opened: TurnState
    said: str
    person: Person
    learned: Fits


def begin(conn: Connection, turn: str, profiles: Profiles, now: float) -> LoadedTurn:
    """Counts an attempt, and reads. Raises TurnGone where the turn has ended."""
    opened = turn_state.load_turn(conn, turn, now, HISTORY_TURNS, day_of(now))
    said = said_by(opened.members)
    person = profiles.known(conn, opened.person, opened.aliases, said)
    in_group = bool(opened.conversation.group)
    return LoadedTurn(
        opened, said, person, NOTHING_LEARNED if in_group else learned_about(conn, person, said)
    )
