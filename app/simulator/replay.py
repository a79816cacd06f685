"""Playing a transcript again: the same inputs through the stand-in, and what comes back compared."""

import asyncio
import base64
import binascii
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.messages import JSON
from app.simulator.expectations import Expectations
from app.simulator.faults import Faults
from app.simulator.graph import StandInGraph
from app.simulator.objections import Objection
from app.simulator.people import guest_for
from app.simulator.transcripts import Transcript, shown

ANSWER_SECONDS: Final = 45.0
SETTLE_SECONDS: Final = 1.5
LONGEST_PAUSE: Final = 5.0
_HEARTBEAT = 3600.0
_LEFT_OUT = b"This file was too large to be kept in the transcript.\n"


@dataclass(slots=True)
class _Phone:
    """What one player got since the replay began, and how much of it was compared."""

    got: list[dict[str, JSON]] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    compared: int = 0


class Replay:
    """Plays one transcript and compares.

    A person who has not written yet plays themselves; for another a guest with the same country and
    language does, so that nothing said before is in the way. All switches are off at the beginning and as
    before at the end. Between two sayings in a row the recorded time passes (at most 5 s: it decides what
    is answered together). Each answer is awaited for 45 s; the first that stays away ends the replay.
    """

    def __init__(self, graph: StandInGraph, transcript: Transcript) -> None:
        self._graph = graph
        self._transcript = transcript
        self._expectations = Expectations()
        self._players: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._phones: dict[str, _Phone] = defaultdict(_Phone)
        self._happenings: AsyncGenerator[JSON] = graph.feed.follow(_HEARTBEAT)

    async def run(self) -> JSON:
        """`{"ok", "people": {id: player}, "steps": [{"n", "event", "ok", "got"}], "extra": […]}`

        `got` is what came, null where nothing did; `extra` (`person`, `got`) what nobody had recorded.
        Raises ValueError for an event that cannot be played.
        """
        before = self._graph.faults.as_json()
        self._graph.set_faults(Faults().as_json())
        try:
            self._cast()
            steps = await self._steps()
            extra = await self._extra() if all(step["ok"] for step in steps) else []
        finally:
            await self._happenings.aclose()
            self._graph.set_faults(before)
        is_ok = all(step["ok"] for step in steps) and not extra
        return {"ok": is_ok, "people": self._players, "steps": steps, "extra": extra}

    def _cast(self) -> None:
        for person in self._transcript.people:
            if person.id in self._graph.people and person.id not in self._graph.history.last_inbound:
                self._players[person.id] = person.id
                continue
            guest = guest_for(person, self._graph.people.values())
            self._graph.remove_person(guest.id)
            self._graph.add_person(guest, stays=False)
            self._players[person.id] = guest.id

    async def _steps(self) -> list[JSON]:
        steps: list[JSON] = []
        before: Mapping[str, JSON] = {}
        for number, event in enumerate(self._transcript.events, 1):
            step = {"n": number, "event": event, **await self._step(event, before)}
            steps.append(step)
            self._graph.feed.publish({"event": "replay", "people": self._players, "step": step})
            if not step["ok"]:
                break
            before = event
        return steps

    async def _step(self, event: Mapping[str, JSON], before: Mapping[str, JSON]) -> dict[str, JSON]:
        if "switches" in event:
            self._graph.set_faults(event["switches"])
            return {"ok": True}
        player = self._players[event["person"]]
        if "says" in event:
            if "says" in before:
                gap = event.get("after", 0) - before.get("after", 0)
                await asyncio.sleep(min(LONGEST_PAUSE, max(0.0, gap)))
            self._remember(event, await self._graph.inbound(player, self._saying(event["says"])))
            return {"ok": True}
        if "refused" in event:
            return await self._refusal(self._phones[player], event["refused"])
        return await self._answer(self._phones[player], event)

    async def _refusal(self, phone: _Phone, code: int) -> dict[str, JSON]:
        if not await self._happens(lambda: code in phone.refused):
            return {"ok": False, "got": phone.refused or None}
        phone.refused.clear()
        return {"ok": True}

    async def _answer(self, phone: _Phone, event: Mapping[str, JSON]) -> dict[str, JSON]:
        if not await self._happens(lambda: len(phone.got) > phone.compared):
            return {"ok": False, "got": None}
        message = phone.got[phone.compared]
        phone.compared += 1
        self._remember(event, message["id"])
        got, failed = shown(message), message.get("failed", 0)
        is_met = self._expectations.are_met(event["gets"], got) and failed == event.get("failed", 0)
        return {"ok": is_met, "got": got | ({"failed": failed} if failed else {})}

    async def _extra(self) -> list[JSON]:
        """What came beyond the record, looked for a moment after the last event."""
        await self._happens(self._has_more, SETTLE_SECONDS)
        return [
            {"person": person, "got": shown(message)}
            for person, phone in self._playing()
            for message in phone.got[phone.compared :]
        ]

    def _has_more(self) -> bool:
        return any(len(phone.got) > phone.compared for _, phone in self._playing())

    def _playing(self) -> Iterator[tuple[str, _Phone]]:
        """The players' phones: what others get meanwhile is not looked at."""
        return ((player, self._phones[player]) for player in self._players.values())

    async def _happens(self, condition: Callable[[], bool], seconds: float = ANSWER_SECONDS) -> bool:
        """Whether it comes true in time; takes in what the stand-in tells until then."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._take_in(await anext(self._happenings))
        except (TimeoutError, StopAsyncIteration):
            # A time-out cancels `anext` and so ends `_happenings`; but so does the first failure the replay.
            return False
        return True

    def _take_in(self, event: Mapping[str, JSON]) -> None:
        if event["event"] == "message" and event["message"]["by"] == "business":
            self._phones[event["message"]["person"]].got.append(event["message"])
        elif event["event"] == "refused":
            self._phones[event["person"]].refused.append(event["code"])

    def _remember(self, event: Mapping[str, JSON], message_id: str) -> None:
        if "id" in event:
            self._ids[event["id"]] = message_id

    def _saying(self, recorded: Mapping[str, JSON]) -> dict[str, JSON]:
        """What the stand-in is to be told: today's ids for `#n`, bytes for base64."""
        saying = dict(recorded)
        for key in ("quoted", "original"):
            if key in saying:
                saying[key] = self._id(saying[key])
        if "reaction" in saying:
            target = self._id(saying["reaction"].get("message_id"))
            saying["reaction"] = {**saying["reaction"], "message_id": target}
        if "reply" in saying:
            saying["reply"] = {**saying["reply"], "id": self._choice(saying)}
        if "data" in saying:
            saying["data"] = _decoded(saying["data"])
        elif "mime_type" in saying and saying.get("type") != "voice":
            saying["data"] = _LEFT_OUT
        return saying

    def _id(self, reference: JSON) -> str:
        if reference not in self._ids:
            raise Objection("lost_message", reference=str(reference))
        return self._ids[reference]

    def _choice(self, saying: Mapping[str, JSON]) -> str:
        """The id that the button or row with this title has today."""
        asked = self._graph.history.messages.get(saying.get("quoted", ""), {})
        action = asked.get("content", {}).get("action", {})
        choices = [button["reply"] for button in action.get("buttons", ())]
        choices += [row for section in action.get("sections", ()) for row in section["rows"]]
        for choice in choices:
            if choice["title"] == saying["reply"].get("title"):
                return str(choice["id"])
        raise Objection("lost_choice", title=str(saying["reply"].get("title")))


def _decoded(data: JSON) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (TypeError, binascii.Error):
        raise ValueError("'data' must be base64") from None
