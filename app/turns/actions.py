"""What a turn does next, from what is written down: pure, so that a restart decides the same."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import orjson

from app.llm.model import ToolCall
from app.messages import JSON, MediaFile
from app.skills.disclosure import LOAD_SKILL
from app.store.turn_state import JournalRow
from app.tools.plain import loads


@dataclass(frozen=True, slots=True)
class Routed:
    """What the classifier and the index chose for this turn."""

    categories: tuple[str, ...]
    tools: tuple[str, ...]
    skills: tuple[str, ...] = ()
    """What the message is about."""
    shown: tuple[str, ...] = ()
    """Skills whose texts the prompt holds, in the order in which they came."""
    goes_on: bool = False
    """The message clearly belongs to what the conversation was about."""


@dataclass(frozen=True, slots=True)
class Round:
    """One answer of the model, and what became of the calls in it."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)
    """What the model reads of each finished call, by call id."""
    intents: frozenset[str] = frozenset()
    """Calls that were begun."""
    attached: Mapping[str, JSON] = field(default_factory=dict)
    """What the model's server wants back with the calls."""

    def has_done(self, call: ToolCall) -> bool:
        """Whether a call succeeded, and not in a dry run alone."""
        result = self.results.get(call.id, "")
        return result.startswith('{"ok":true') and '"dry_run":true' not in result

    @property
    def unfinished(self) -> tuple[ToolCall, ...]:
        return tuple([call for call in self.calls if call.id not in self.results])


@dataclass(frozen=True, slots=True)
class Transcript:
    """A turn as its journal tells it."""

    routed: Routed | None = None
    rounds: tuple[Round, ...] = ()
    found: tuple[str, ...] = ()
    """Addresses that searches listed before it was read."""
    files: Mapping[str, tuple[MediaFile, ...]] = field(default_factory=dict)
    """Those that calls returned before it was read, by "round:call id"."""

    @property
    def loaded(self) -> tuple[str, ...]:
        """Skills whose texts the model has read as results."""
        names = (
            _loaded(one.results.get(call.id, ""))
            for one in self.rounds
            for call in one.calls
            if call.name == LOAD_SKILL
        )
        return tuple(name for name in names if name)

    def with_route(self, routed: Routed) -> "Transcript":
        return replace(self, routed=routed)

    def with_round(self, new: Round) -> "Transcript":
        return replace(self, rounds=(*self.rounds, new))

    def with_results(self, number: int, results: Mapping[str, str]) -> "Transcript":
        rounds, one = list(self.rounds), self.rounds[number]
        rounds[number] = replace(one, results={**one.results, **results})
        return replace(self, rounds=tuple(rounds))


@dataclass(frozen=True, slots=True)
class Route:
    """Classify the intent and select the tools."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model for `round`; without tools it must answer."""

    round: int
    with_tools: bool


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls of `round` in parallel; `begun` are those whose outcome a crash left unknown."""

    round: int
    calls: tuple[ToolCall, ...]
    begun: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reply:
    """Send this and be done; "" where the model found nothing to say."""

    text: str


Action = Route | AskModel | RunTools | Reply


def next_action(transcript: Transcript, max_rounds: int) -> Action:
    """The next step. After `max_rounds` rounds of calls, or when the model repeats itself, it must answer;
    it is never asked more than once more than that."""
    if transcript.routed is None:
        return Route()
    rounds = transcript.rounds
    if not rounds:
        return AskModel(0, with_tools=max_rounds > 0)
    for number, one in enumerate(rounds):
        if left := one.unfinished:
            return RunTools(number, left, one.intents)
    last = rounds[-1]
    if last.calls:
        return AskModel(len(rounds), with_tools=len(rounds) < max_rounds and not _repeats(rounds))
    if last.text or len(rounds) > max_rounds or _answered_nothing_twice(rounds):
        return Reply(last.text)
    return AskModel(len(rounds), with_tools=False)


def answer_key(number: int) -> str:
    """The journal's key of the model's answer in a round."""
    return f"llm:{number}"


def answer_row(answer: Round) -> JSON:
    """What the journal holds of the model's answer, from which `read_journal` makes the round again."""
    calls = [
        {"id": call.id, "name": call.name, "arguments": call.arguments, "attached": call.attached}
        for call in answer.calls
    ]
    return {"text": answer.text, "calls": calls, "attached": answer.attached}


def read_journal(entries: Iterable[JournalRow]) -> Transcript:
    """The transcript that journal rows tell."""
    routed: Routed | None = None
    answers: dict[int, JSON] = {}
    results: dict[int, dict[str, str]] = {}
    intents: dict[int, set[str]] = {}
    found: list[str] = []
    files: dict[str, tuple[MediaFile, ...]] = {}
    for entry in entries:
        kind, _, rest = entry.key.partition(":")
        if kind == "route":
            lists = (entry.payload.get(key, ()) for key in ("categories", "tools", "skills", "shown"))
            categories, tools, skills, shown = map(tuple, lists)
            goes_on = entry.payload.get("source") == "continued"
            routed = Routed(categories, tools, skills, shown, goes_on)
            continue
        number, _, call = rest.partition(":")
        if kind == "llm":
            answers[int(number)] = entry.payload
        elif kind == "tool":
            results.setdefault(int(number), {})[call] = entry.payload["result"]
        elif kind == "intent":
            intents.setdefault(int(number), set()).add(call)
        elif kind == "found":
            found += entry.payload
        elif kind == "files":
            files[rest] = tuple(MediaFile(**file) for file in entry.payload)
    rounds = tuple(
        Round(
            answers[number]["text"],
            tuple(ToolCall(**call) for call in answers[number]["calls"]),
            results.get(number, {}),
            frozenset(intents.get(number, ())),
            answers[number].get("attached", {}),
        )
        for number in sorted(answers)
    )
    return Transcript(routed, rounds, tuple(found), files)


def unique_calls(calls: Iterable[ToolCall], taken: Iterable[str]) -> tuple[ToolCall, ...]:
    """The calls with an id each that no other has: models leave them out, and repeat them."""
    used = set(taken)
    unique = []
    for position, call in enumerate(calls):
        name = call.id or f"call_{position}"
        suffix = 1
        while name in used:
            suffix += 1
            name = f"{call.id or f'call_{position}'}_{suffix}"
        used.add(name)
        unique.append(call if name == call.id else replace(call, id=name))
    return tuple(unique)


def _repeats(rounds: tuple[Round, ...]) -> bool:
    """Whether the last two rounds asked for exactly the same."""
    if len(rounds) < 2:
        return False
    last, before = rounds[-1].calls, rounds[-2].calls
    if sorted(call.name for call in last) != sorted(call.name for call in before):
        return False
    return sorted(map(_call_signature, last)) == sorted(map(_call_signature, before))


def _loaded(result: str) -> str:
    """The skill that a result of `load_skill` holds, "" where it failed."""
    data = orjson.loads(result).get("data") if result else None
    return str(data.get("skill", "")) if isinstance(data, dict) else ""


def _call_signature(call: ToolCall) -> bytes:
    """The call in one spelling, however the model wrote its arguments."""
    arguments = call.arguments
    with suppress(ValueError, TypeError):  # no JSON, or integers of more than 64 bits
        read = loads(arguments) if isinstance(arguments, str) else arguments
        return orjson.dumps([call.name, read], option=orjson.OPT_SORT_KEYS)
    return f"{call.name} {arguments!r}".encode()


def _answered_nothing_twice(rounds: tuple[Round, ...]) -> bool:
    return len(rounds) > 1 and not rounds[-2].calls and not rounds[-2].text
