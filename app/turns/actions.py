"""Decide a turn's next step from its journal. Pure: a restart decides the same."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

import orjson
from pydantic import TypeAdapter

from app.llm.model import ToolCall
from app.messages import JSON, RECEIPT_MARK, FollowUp, MediaFile, mapping
from app.routing.selector import changed
from app.routing.tool_catalog import SEARCH_TOOLS, Selection
from app.skills.model_tools import LOAD_SKILL, READ_SKILL_FILE, RUN_SKILL_SCRIPT
from app.text import shortened
from app.tools import ToolResult
from app.tools.plain import loads

LONGEST_RECEIPT = 300
MOST_LISTED = 100
_ABOUT = ("text", "fact", "task", "number", "project", "name", "path")  # that name what a call was about
MOST_PICTURES = 3


@dataclass(frozen=True, slots=True)
class CallResult:
    """The outcome of a finished call: the `text` that the model reads, and facts about it."""

    text: str
    ok: bool = False
    dry_run: bool = False
    outside: bool = False  # holds text of others
    receipt: str = ""  # the tool's own line about what it changed
    skill: str = ""  # whose instructions it holds
    tools: tuple[str, ...] = ()  # that a search found
    follow_up: FollowUp = field(default_factory=FollowUp)
    pictures: tuple[str, ...] = ()  # paths of the person's pictures that the model asked to see
    # a question that ends the turn: its text, and `options` or `location`
    asks: Mapping[str, JSON] = field(default_factory=dict)
    found: tuple[str, ...] = ()  # addresses that a search listed
    files: tuple[MediaFile, ...] = ()  # that go with the reply

    @classmethod
    def of(cls, tool: str, result: ToolResult, text: str, *, bundled: bool = False) -> "CallResult":
        """Return the facts about a result of `tool`, of which the model reads `text`."""
        # others may not show pictures, nor ask the person something
        shown = result.meta if bundled and result.ok else {}
        data = result.data if result.ok and isinstance(result.data, dict) else {}
        return cls(
            text,
            ok=result.ok,
            dry_run=result.meta.get("dry_run") is True,
            outside=result.meta.get("outside") is True,
            receipt=_receipt(data.get("summary")),
            skill=str(data.get("skill", "")) if tool == LOAD_SKILL else "",
            tools=tuple(one["name"] for one in data.get("tools", ())) if tool == SEARCH_TOOLS else (),
            follow_up=follow_up_of(result),
            pictures=tuple(map(str, shown.get("pictures", ())))[:MOST_PICTURES],
            asks=shown.get("asks", {}),
        )

    @property
    def changed_something(self) -> bool:
        return self.ok and not self.dry_run

    def row(self) -> JSON:
        """Return the payload of the journal row, from which `read_journal` makes the result again."""
        facts = asdict(self)
        return {"result": facts.pop("text"), "facts": facts}


_RESULT = TypeAdapter(CallResult)


@dataclass(frozen=True, slots=True)
class Round:
    """One answer of the model, and the results of the calls in it."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    results: Mapping[str, CallResult] = field(default_factory=dict)  # by call id
    intents: frozenset[str] = frozenset()  # ids of calls that were begun
    attached: Mapping[str, JSON] = field(default_factory=dict)  # what the model's server wants back

    @property
    def asks(self) -> Mapping[str, JSON]:
        """Return the question that the round's tools ask the person, {} for none."""
        return next((result.asks for result in self.results.values() if result.asks), {})

    @property
    def finished(self) -> list[tuple[ToolCall, CallResult]]:
        return [(call, self.results[call.id]) for call in self.calls if call.id in self.results]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A turn as its journal tells it."""

    routed: Selection | None = None
    rounds: tuple[Round, ...] = ()

    @property
    def finished(self) -> list[tuple[ToolCall, CallResult]]:
        """Return every call that has a result, in their order."""
        return [pair for one in self.rounds for pair in one.finished]

    def with_round(self, new: Round) -> "Transcript":
        return replace(self, rounds=(*self.rounds, new))

    def with_results(self, number: int, results: Mapping[str, CallResult]) -> "Transcript":
        rounds, one = list(self.rounds), self.rounds[number]
        rounds[number] = replace(one, results={**one.results, **results})
        return replace(self, rounds=tuple(rounds))


@dataclass(frozen=True, slots=True)
class Route:
    """Classify the intent and select the tools."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model for a round; without tools it must answer."""

    round: int
    with_tools: bool


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls of a round in parallel; a crash left the outcome of the `begun` ones unknown."""

    round: int
    calls: tuple[ToolCall, ...]
    begun: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reply:
    """Send this text and end the turn; "" when the model found nothing to say."""

    text: str


Action = Route | AskModel | RunTools | Reply


def next_action(transcript: Transcript, max_rounds: int) -> Action:
    """Return the next step of a turn.

    After `max_rounds` rounds of calls, or when it repeats itself, the model must answer; it is asked at most
    once more than that.
    """
    if transcript.routed is None:
        return Route()
    rounds = transcript.rounds
    if not rounds:
        return AskModel(0, with_tools=max_rounds > 0)
    for number, one in enumerate(rounds):
        if left := [call for call in one.calls if call.id not in one.results]:
            return RunTools(number, tuple(left), one.intents)
    last, before = rounds[-1], rounds[-2] if len(rounds) > 1 else None
    if asked := last.asks:
        return Reply(str(asked["question"]))
    if last.calls:
        signatures = [sorted(map(_signature, one.calls)) for one in rounds[-2:]]
        repeats = before is not None and signatures[0] == signatures[1]
        return AskModel(len(rounds), with_tools=len(rounds) < max_rounds and not repeats)
    said_nothing_before = before is not None and not before.calls and not before.text
    if last.text or len(rounds) > max_rounds or said_nothing_before:
        return Reply(last.text)
    return AskModel(len(rounds), with_tools=False)


def offered_tools(chosen: tuple[str, ...], rounds: Sequence[Round], limit: int) -> list[tuple[str, ...]]:
    """Return the names of the tools of each model call so far, and last those of the next one.

    Tools that a search found come at the end; the oldest leave for them, first those that were not called.
    """
    offered = [chosen]
    called: set[str] = set()
    for one in rounds:
        called |= {call.name for call in one.calls}
        last, found = offered[-1], [name for _, result in one.finished for name in result.tools]
        if found:
            reading = [name for name in (LOAD_SKILL, READ_SKILL_FILE, RUN_SKILL_SCRIPT) if name in last]
            idle = [name for name in last if name not in called]
            last = tuple(changed(last, [SEARCH_TOOLS, *reading, *found], limit, first=idle))
        offered.append(last)
    return offered


def answer_row(answer: Round) -> JSON:
    """Return the journal payload of the model's answer, from which `read_journal` makes the round again."""
    return {"text": answer.text, "calls": list(map(asdict, answer.calls)), "attached": answer.attached}


def read_journal(rows: Mapping[str, JSON]) -> Transcript:
    """Return the transcript that the rows of a journal tell, by their keys."""
    route, parts = rows.get("route"), ("categories", "tools", "skills", "shown")
    routed = None if route is None else Selection(*(tuple(route.get(part, ())) for part in parts))
    rounds = []
    for number in sorted(int(key.removeprefix("llm:")) for key in rows if key.startswith("llm:")):
        answer = rows[f"llm:{number}"]
        # an earlier version kept calls that repeat another one
        calls = unique_calls([ToolCall(**call) for call in answer["calls"]], ())
        results = {
            call.id: _RESULT.validate_python({"text": row["result"], **row.get("facts", {})})
            for call in calls
            if (row := rows.get(f"tool:{number}:{call.id}")) is not None
        }
        begun = frozenset(call.id for call in calls if f"intent:{number}:{call.id}" in rows)
        rounds.append(Round(answer["text"], calls, results, begun, answer.get("attached", {})))
    return Transcript(routed, tuple(rounds))


def unique_calls(calls: Sequence[ToolCall], taken: Iterable[str]) -> tuple[ToolCall, ...]:
    """Leave out calls that repeat another one, and give each an id of its own: models repeat both."""
    used = set(taken)
    unique: dict[bytes, ToolCall] = {}
    for position, call in enumerate(calls):
        if (signature := _signature(call)) in unique:
            continue
        id = call.id or f"call_{position}"
        while id in used:
            id += "_"
        used.add(id)
        unique[signature] = replace(call, id=id)
    return tuple(unique.values())


def _receipt(summary: JSON) -> str:
    """Return the first line of a summary that tells of a change, else ""."""
    if not isinstance(summary, str) or not summary.startswith(RECEIPT_MARK):
        return ""
    return shortened(summary.splitlines()[0], LONGEST_RECEIPT)


def follow_up_of(result: ToolResult) -> FollowUp:
    """Return what a result's data and meta say about the messages that may follow it."""
    data = result.data if isinstance(result.data, dict) else {}
    told = {**data, **result.meta}
    about = next((str(told[name]) for name in _ABOUT if told.get(name)), "")
    lists = (value for value in data.values() if isinstance(value, list) and value)
    listed = next((rows for rows in lists if all("number" in mapping(row) for row in rows)), [])
    return FollowUp(
        about[:LONGEST_RECEIPT],
        str(told.get("undo") or ""),
        _texts(told.get("numbers")) or _texts([row["number"] for row in listed]),
        _texts(told.get("choices")),
        _texts(told.get("hours")),
        within[:LONGEST_RECEIPT] if isinstance(within := data.get("list"), str) else "",
    )


def _texts(values: JSON) -> tuple[str, ...]:
    return tuple(map(str, values[:MOST_LISTED])) if isinstance(values, list | tuple) else ()


def _signature(call: ToolCall) -> bytes:
    """Spell a call in one way, however the model wrote its arguments."""
    arguments = call.arguments
    with suppress(ValueError, TypeError):  # no JSON, or integers of more than 64 bits
        read = loads(arguments) if isinstance(arguments, str) else arguments
        return orjson.dumps([call.name, read], option=orjson.OPT_SORT_KEYS)
    return f"{call.name} {arguments!r}".encode()
