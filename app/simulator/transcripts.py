"""A transcript: what people did on their phones, what came back, and the switches, one line an event."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from app.messages import JSON
from app.simulator.bodies import said
from app.simulator.expectations import Expectations, says_something
from app.simulator.faults import Faults
from app.simulator.graph import StandInGraph
from app.simulator.objections import Objection
from app.simulator.people import SimulatedPerson
from app.simulator.voice import canned_clip

VERSION: Final = 1
LARGEST_FILE: Final = 64 * 1024
MOST_EVENTS: Final = 2000
_COUNTED_DOWN = frozenset({"fail", "drop_after_accept"})
_REFERENCE = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True)
class Transcript:
    """People, and events in order; each has `after` (seconds since the first) and one of

    - `person`, `says`: as `StandInGraph.inbound` takes it, ids of messages as `#n`;
    - `person`, `gets`: what the phone showed (see `shown`), and `failed` (a code) where it never arrived;
    - `person`, `refused`: the code with which sends to this person were refused;
    - `switches`: the faults that were changed.

    A message that another event speaks of has the `id` `#n`.
    """

    people: tuple[SimulatedPerson, ...]
    events: tuple[dict[str, JSON], ...]


def record(graph: StandInGraph, person: str = "", since: float = 0.0) -> Transcript:
    """What happened since (Unix seconds) on one phone, or on all of them."""
    people = [one for one in graph.people.values() if person in ("", one.id)]
    ids = {one.id for one in people}
    messages = [m for m in graph.history.messages.values() if m["person"] in ids and m["at"] >= since]
    refused = [n for n in graph.history.notes if n.get("person") in ids and n["at"] >= since]
    spoken_of = _spoken_of(messages)
    named = (message["id"] for message in messages if message["id"] in spoken_of)
    names = {wamid: f"#{n}" for n, wamid in enumerate(named, 1)}
    start = min((one["at"] for one in (*messages, *refused)), default=since)
    expectations = Expectations()
    timed = [
        *((at, {"switches": changes}) for at, changes in _switches(graph, start)),
        *((m["at"], _message_event(m, names, graph, expectations)) for m in messages),
        *((note["at"], {"person": note["person"], "refused": note["code"]}) for note in refused),
    ]
    timed.sort(key=lambda one: one[0])
    events = [{"after": round(max(0.0, at - start), 1), **event} for at, event in timed]
    spoke = {event.get("person") for event in events}
    return Transcript(tuple(one for one in people if one.id in spoke), tuple(_without_repeats(events)))


def write(transcript: Transcript) -> bytes:
    """The file: JSON with one line for each person and each event."""
    lines = [
        f'{{"recado_transcript": {VERSION},',
        f'"recorded": "{datetime.now(UTC):%Y-%m-%dT%H:%MZ}",',
        f'"people": [\n{_lines(asdict(one) for one in transcript.people)}\n],',
        f'"events": [\n{_lines(transcript.events)}\n]}}',
    ]
    return "\n".join(lines).encode() + b"\n"


def read(value: JSON) -> Transcript:
    """A transcript from its JSON. Raises ValueError with what is wrong, also where it would prove nothing."""
    if not isinstance(value, dict) or value.get("recado_transcript") != VERSION:
        raise Objection("version", version=VERSION)
    try:
        people = tuple(SimulatedPerson(**one) for one in value["people"])
        events = tuple(dict(one) for one in value["events"])
    except (KeyError, TypeError, ValueError):
        raise Objection("form") from None
    if not all(isinstance(value, str) for one in people for value in astuple(one)):
        raise Objection("form")
    if len(events) > MOST_EVENTS:
        raise Objection("long", most=MOST_EVENTS)
    for number, event in enumerate(events, 1):
        _check(number, event, {one.id for one in people})
    if not any("says" in event for event in events) or not any("gets" in e or "refused" in e for e in events):
        raise Objection("proves_nothing")
    return Transcript(people, events)


def shown(message: Mapping[str, JSON]) -> JSON:
    """What a phone shows of a message of ours, without ids that are made anew each time."""
    kind, content = message["type"], message["content"]
    if kind == "text":
        return {"text": content["body"]}
    if kind == "interactive":
        action = content["action"]
        texts = {part: content[part]["text"] for part in ("header", "body", "footer") if content.get(part)}
        if "buttons" in action:
            return {**texts, "buttons": [button["reply"]["title"] for button in action["buttons"]]}
        rows = [row["title"] for section in action["sections"] for row in section["rows"]]
        return {**texts, "list": action["button"], "rows": rows}
    if kind == "reaction":
        return {"reaction": content.get("emoji", "")}
    if isinstance(content, dict):
        return {kind: {key: value for key, value in content.items() if key not in {"id", "link"}}}
    return {kind: content}


def _message_event(
    message: Mapping[str, JSON], names: Mapping[str, str], graph: StandInGraph, expectations: Expectations
) -> dict[str, JSON]:
    event: dict[str, JSON] = {"person": message["person"]}
    if message["by"] == "person":
        event["says"] = _renamed(said(message["type"], message["content"]), names)
        if message["quoted"] in names:
            event["says"]["quoted"] = names[message["quoted"]]
        event["says"] |= _file(message["content"], graph)
    else:
        event["gets"] = expectations.generalize(shown(message))
        if message.get("failed"):
            event["failed"] = message["failed"]
    if message["id"] in names:
        event["id"] = names[message["id"]]
    return event


def _file(content: JSON, graph: StandInGraph) -> dict[str, JSON]:
    """What a person's file held, where it is small; the canned voice note needs no copy."""
    stored = graph.media.get(str(content.get("id", ""))) if isinstance(content, dict) else None
    if stored is None or len(stored.data) > LARGEST_FILE or stored.data == canned_clip():
        return {}
    return {"data": base64.b64encode(stored.data).decode()}


def _renamed(saying: dict[str, JSON], names: Mapping[str, str]) -> dict[str, JSON]:
    """Ids as `#n`; the id of a button or row is left out, for its title tells which one it was."""
    if "reply" in saying:
        saying["reply"] = {key: value for key, value in saying["reply"].items() if key != "id"}
    if "reaction" in saying:
        known = saying["reaction"]["message_id"]
        saying["reaction"] = {**saying["reaction"], "message_id": names.get(known, "#0")}
    if "original" in saying:
        saying["original"] = names.get(saying["original"], "#0")
    return saying


def _spoken_of(messages: Iterable[Mapping[str, JSON]]) -> set[str]:
    """The ids that people quote, react to, correct or take back."""
    ids = set()
    for message in messages:
        content = message["content"] if isinstance(message["content"], dict) else {}
        if message["by"] == "person":
            ids |= {message["quoted"], content.get("message_id"), content.get("original_message_id")}
    return ids


def _switches(graph: StandInGraph, start: float) -> Iterator[tuple[float, JSON]]:
    """What was switched since `start`, and before it what was on already."""
    already = Faults().as_json()
    for note in graph.history.notes:
        if note["event"] == "switches" and note["at"] < start:
            already |= {name: value for name, value in note["changes"].items() if name not in _COUNTED_DOWN}
    usual = Faults().as_json()
    on = {name: value for name, value in already.items() if value != usual[name]}
    if on:
        yield start - 1, on
    for note in graph.history.notes:
        if note["event"] == "switches" and note["at"] >= start:
            yield note["at"], note["changes"]


def _without_repeats(events: Iterable[dict[str, JSON]]) -> Iterator[dict[str, JSON]]:
    """How often a send is tried again varies: the first refusal of a row stands for all."""
    last: dict[str, JSON] = {}
    for event in events:
        bare = {key: value for key, value in event.items() if key != "after"}
        if "refused" not in event or bare != last:
            yield event
        last = bare


def _check(number: int, event: Mapping[str, JSON], people: set[str]) -> None:
    """Raises ValueError for an event that cannot be played or would prove nothing."""
    part = ""
    if not isinstance(event.get("after", 0), int | float):
        part = "after"
    elif "switches" in event:
        Faults().update(event["switches"] if isinstance(event["switches"], dict) else {"switches": None})
    elif str(event.get("person")) not in people:
        raise Objection("event_person", event=number, person=str(event.get("person")))
    elif "gets" in event:
        if not says_something(event["gets"]) and "reaction" not in event["gets"]:
            raise Objection("event_answer", event=number)
    elif "says" in event:
        part = _unsayable(event["says"])
    elif not isinstance(event.get("refused"), int):
        raise Objection("event_kind", event=number)
    if "id" in event and not _REFERENCE.fullmatch(str(event["id"])):
        part = "id"
    if part:
        raise Objection("event_part", event=number, part=part)


def _unsayable(says: JSON) -> str:
    """Which part of something said has the wrong form; "" where none has."""
    if not isinstance(says, dict):
        return "says"
    if not isinstance(says.get("type"), str):
        return "type"
    for key in ("reply", "reaction"):
        if not isinstance(says.get(key, {}), dict):
            return key
    about = {"quoted": says.get("quoted", ""), "original": says.get("original", "")}
    about["message_id"] = says.get("reaction", {}).get("message_id", "")
    return next((key for key, value in about.items() if not isinstance(value, str)), "")


def _lines(values: Iterable[JSON]) -> str:
    return ",\n".join(orjson.dumps(value).decode() for value in values)
