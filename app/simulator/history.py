"""What every phone has seen: a fold over events, kept in a file that is compacted as it grows."""

import logging
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from io import BufferedWriter
from pathlib import Path

import orjson

from app.messages import JSON
from app.simulator.people import PEOPLE, SimulatedPerson, named

TRANSCRIPT = "simulator.jsonl"
"""In the data folder."""
KEEP = 500
_NOTES = {"switches": ("changes",), "refused": ("person", "code", "details")}
_EVENTS_FOR_EACH = 4  # a message of ours has seven: itself, three statuses, three that were told

log = logging.getLogger(__name__)


class History:
    """Messages both ways, as the page shows them and as webhooks are made from them.

    A message is a dict: `id`, `person`, `by` ("person" or "business"), `type`, `content` (Meta's block),
    `quoted`, `at`, `status`, `told` (webhooks that were taken with 200); ours also `outbox_id` and, where
    it is to fail, `failed` (a code). Events: `{"event": "message", "message": …}`,
    `{"event": "status", "id", "status"}`, `{"event": "told", "id", "what"}`,
    `{"event": "person", "person": …}`; and notes: `{"event": "switches", "at", "changes"}`,
    `{"event": "refused", "at", "person", "code", "details"}`.
    The last `keep` messages of each person survive a restart when a path is given.
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
        self.notes: deque[JSON] = deque(maxlen=keep)

    def load(self) -> None:
        """Reads the file, drops what is too old, and opens it compacted for what comes."""
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
        """Applies an event and keeps it."""
        self._apply(event)
        if self._file is None:
            return
        try:
            self._file.write(_line(event))
            self._file.flush()
        except OSError as error:
            log.warning("the simulator's transcript cannot be written: %s", error)
        self._written += 1
        if self._written > _EVENTS_FOR_EACH * max(len(self.messages), self._keep):
            self._rewrite()

    def unread_until(self, message_id: str) -> list[str]:
        """The ids of a person's messages that we have not read, up to and with this one."""
        unread = self._unread.get(self.messages[message_id]["person"], [])
        return unread[: unread.index(message_id) + 1] if message_id in unread else []

    def forget(self, person: str) -> None:
        """Drops what a person said and was told, in the file too."""
        for message_id in self._of_person.pop(person, ()):
            self.messages.pop(message_id, None)
        self._unread.pop(person, None)
        self.last_inbound.pop(person, None)
        self.notes = deque((note for note in self.notes if note.get("person") != person), self._keep)
        self._rewrite()

    def _apply(self, event: JSON) -> None:
        if event["event"] == "message":
            self._add(event["message"] | {"told": list(event["message"].get("told", ()))})
            return
        if event["event"] == "person":
            person = SimulatedPerson(**event["person"])
            self.people[person.id] = person
            return
        if event["event"] in _NOTES:
            self.notes.append(event)
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
        """Leaves one event for each message, statuses and all; on a full disk the old file stays."""
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
            log.warning("the simulator's transcript cannot be kept: %s", error)
        self._written = len(self.messages)

    def _events(self) -> Iterator[JSON]:
        yield from ({"event": "person", "person": asdict(one)} for one in self.people.values())
        yield from ({"event": "message", "message": one} for one in self.messages.values())
        yield from self.notes


def forget(data_dir: Path, names: Collection[str]) -> None:
    """Empties the phones of these numbers or user ids, while the simulator does not run."""
    if not (data_dir / TRANSCRIPT).exists():
        return
    history = History(data_dir / TRANSCRIPT)
    history.load()
    for phone in named([*PEOPLE, *history.people.values()], names):
        history.forget(phone.id)
    history.close()


def _read(path: Path) -> Iterator[JSON]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                event = orjson.loads(line)
                _require_form(event)
            except (orjson.JSONDecodeError, KeyError, TypeError):
                continue  # a line torn by a crash, or of another version
            yield event


def _write(path: Path, events: Iterable[JSON]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(map(_line, events))


def _line(event: JSON) -> bytes:
    return orjson.dumps(event) + b"\n"


def _require_form(event: JSON) -> None:
    """Raises KeyError or TypeError unless the event has the parts that applying it needs."""
    if event["event"] == "message":
        message = event["message"]
        for key in ("id", "person", "by", "type", "content", "at", "status"):
            message[key]
        message["at"] + 0.0
    elif event["event"] == "person":
        SimulatedPerson(**event["person"])
    elif event["event"] in _NOTES:
        event["at"] + 0.0
        for key in _NOTES[event["event"]]:
            event[key]
    else:
        event["id"]
        event["status" if event["event"] == "status" else "what"]
