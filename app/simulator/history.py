"""Messages and notes that the phones show, kept in a file, and the feed that tells open pages of changes."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from io import BufferedWriter
from pathlib import Path

import orjson

from app.messages import JSON
from app.people import SIMULATED_PEOPLE, SimulatedPerson
from app.simulator.people import find_people

HISTORY_FILE = "simulator.jsonl"  # in the data folder
KEEP = 500
_REQUIRED = {  # by event; lines of other events, as older versions wrote them, are left out
    "person": {"person"},
    "message": {"message"},
    "status": {"id", "status"},
    "told": {"id", "what"},
    "refused": {"at", "person", "code", "details"},
}
_MESSAGE = {"id", "person", "by", "type", "content", "at", "status"}
_EVENTS_FOR_EACH = 4  # a message of ours has seven: itself, three statuses, three that were told
_WAITING = 1000  # events that a page may be behind

log = logging.getLogger(__name__)


class History:
    """Messages both ways, as the page shows them and as webhooks are made from them.

    A message is a dict: `id`, `person`, `by` ("person" or "business"), `type`, `content` (Meta's block),
    `quoted`, `at`, `status`, `told` (webhooks that were answered 200); ours also `outbox_id` and, if it
    is to fail, `failed` (a code). Events: `{"event": "message", "message": …}`,
    `{"event": "status", "id", "status"}`, `{"event": "told", "id", "what"}`,
    `{"event": "person", "person": …}`, `{"event": "refused", "at", "person", "code", "details"}`.
    The last `keep` messages of each person survive a restart if there is a path.
    """

    def __init__(self, path: Path | None, keep: int = KEEP) -> None:
        self._path = path
        self._keep = keep
        self._written = 0
        self._file: BufferedWriter | None = None
        self.messages: dict[str, dict[str, JSON]] = {}
        self.last_inbound: dict[str, float] = {}
        self._unread: dict[str, list[str]] = {}
        self._of_person: dict[str, deque[str]] = {}
        self.people: dict[str, SimulatedPerson] = {}
        self.refused: deque[JSON] = deque(maxlen=keep)

    def load(self) -> None:
        """Read the file, drop what is too old, and open it compacted for further events."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        for event in _read(self._path):
            self._apply(event)
        self._rewrite()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def record(self, event: JSON) -> None:
        """Apply an event and keep it."""
        self._apply(event)
        if self._file is None:
            return
        try:
            self._file.write(_line(event))
            self._file.flush()
        except OSError as error:
            log.warning("the simulator's history cannot be written: %s", error)
        self._written += 1
        if self._written > _EVENTS_FOR_EACH * max(len(self.messages), self._keep):
            self._rewrite()

    def unread_until(self, message_id: str) -> list[str]:
        """Return the ids of a person's messages that we have not read, up to and with this one."""
        unread = self._unread.get(self.messages[message_id]["person"], [])
        return unread[: unread.index(message_id) + 1] if message_id in unread else []

    def forget(self, person: str) -> None:
        """Remove what a person said and was told, in the file too."""
        for message_id in self._of_person.pop(person, ()):
            self.messages.pop(message_id, None)
        self._unread.pop(person, None)
        self.last_inbound.pop(person, None)
        self.refused = deque((note for note in self.refused if note["person"] != person), self._keep)
        self._rewrite()

    def _apply(self, event: JSON) -> None:
        if event["event"] == "message":
            self._add(event["message"] | {"told": list(event["message"].get("told", ()))})
            return
        if event["event"] == "person":
            person = SimulatedPerson(**event["person"])
            self.people[person.id] = person
            return
        if event["event"] == "refused":
            self.refused.append(event)
            return
        known = self.messages.get(event["id"])
        if known is None:
            return
        if event["event"] == "status":
            known["status"] = event["status"]
            if event["status"] == "read":
                self._mark_read(known)
        elif event["event"] == "told":
            known["told"].append(event["what"])

    def _add(self, message: dict[str, JSON]) -> None:
        is_known = message["id"] in self.messages
        self.messages[message["id"]] = message
        if is_known:
            return
        theirs = self._of_person.setdefault(message["person"], deque())
        theirs.append(message["id"])
        if message["by"] == "person":
            self.last_inbound[message["person"]] = message["at"]
            if message["status"] != "read":
                self._unread.setdefault(message["person"], []).append(message["id"])
        if len(theirs) > self._keep:
            self._mark_read(self.messages.pop(theirs.popleft()))

    def _mark_read(self, message: dict[str, JSON]) -> None:
        unread = self._unread.get(message["person"], [])
        if message["id"] in unread:
            unread.remove(message["id"])

    def _rewrite(self) -> None:
        """Write one event for each message, its statuses included; on a full disk the old file stays."""
        if self._path is None:
            return
        self.close()
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            _write(fresh, self._events())
            os.replace(fresh, self._path)
            self._path.chmod(0o600)
            self._file = self._path.open("ab")
        except OSError as error:
            log.warning("the simulator's history cannot be kept: %s", error)
        self._written = len(self.messages)

    def _events(self) -> Iterator[JSON]:
        yield from ({"event": "person", "person": asdict(one)} for one in self.people.values())
        yield from ({"event": "message", "message": one} for one in self.messages.values())
        yield from self.refused


class Feed:
    """Hands each event to every follower; one that does not keep up is let go and comes back by itself."""

    def __init__(self) -> None:
        self._followers: set[asyncio.Queue[JSON]] = set()
        self._closed = False

    def publish(self, event: JSON) -> None:
        for queue in list(self._followers):
            if queue.qsize() < _WAITING:
                queue.put_nowait(event)
            else:
                self._followers.discard(queue)
                queue.put_nowait(None)

    def follow(self, heartbeat: float) -> AsyncGenerator[JSON]:
        """Follow from this call on: events, and None after `heartbeat` seconds without one.

        The generator ends when the feed closes.
        """
        queue: asyncio.Queue[JSON] = asyncio.Queue()
        self._followers.add(queue)
        return self._events(queue, heartbeat)

    async def _events(self, queue: asyncio.Queue[JSON], heartbeat: float) -> AsyncGenerator[JSON]:
        try:
            while not self._closed:
                try:
                    event = await asyncio.wait_for(queue.get(), heartbeat)
                except TimeoutError:
                    yield None
                    continue
                if event is None:
                    return
                yield event
        finally:
            self._followers.discard(queue)

    def open(self) -> None:
        self._closed = False

    def close(self) -> None:
        """End every stream at once."""
        self._closed = True
        for queue in self._followers:
            queue.put_nowait(None)
        self._followers.clear()


def forget(data_dir: Path, names: Collection[str]) -> None:
    """Empty the phones of these numbers or user ids, while the simulator does not run."""
    if not (data_dir / HISTORY_FILE).exists():
        return
    history = History(data_dir / HISTORY_FILE)
    history.load()
    for person in find_people([*SIMULATED_PEOPLE, *history.people.values()], names):
        history.forget(person.id)
    history.close()


def _read(path: Path) -> Iterator[JSON]:
    """Yield the events of a file, without a line torn by a crash or of another version."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            event = orjson.loads(line)
            is_whole = _REQUIRED[event["event"]] <= event.keys()
            if is_whole and (event["event"] != "message" or event["message"].keys() >= _MESSAGE):
                yield event


def _write(path: Path, events: Iterable[JSON]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(map(_line, events))


def _line(event: JSON) -> bytes:
    return orjson.dumps(event) + b"\n"
