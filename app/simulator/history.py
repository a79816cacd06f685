"""What every phone has seen: a fold over events, kept in a small append-only file."""

import logging
import os
from collections import deque
from collections.abc import Iterator
from io import BufferedWriter
from pathlib import Path

import orjson

from app.messages import JSON

KEEP = 2000

log = logging.getLogger(__name__)


class History:
    """Messages both ways, as the page shows them and as webhooks are made from them.

    A message is a dict: `id`, `person`, `by` ("person" or "business"), `type`, `content` (Meta's block),
    `quoted`, `at`, `status`, `told` (webhooks that were taken with 200); ours also `outbox_id` and, where
    it is to fail, `failed` (a code). Events: `{"event": "message", "message": …}`,
    `{"event": "status", "id", "status"}`, `{"event": "told", "id", "what"}`.
    The last 2,000 events survive a restart when a path is given.
    """

    def __init__(self, path: Path | None, keep: int = KEEP) -> None:
        self._path = path
        self._keep = keep
        self._lines: deque[bytes] = deque(maxlen=keep)
        self._written = 0
        self._file: BufferedWriter | None = None
        self.messages: dict[str, dict[str, JSON]] = {}
        self.last_inbound: dict[str, float] = {}
        self._unread: dict[str, list[str]] = {}

    def load(self) -> None:
        """Reads the file, drops what is too old, and opens it for what comes."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lines.clear()
        for event in self._read(self._path):
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
        line = orjson.dumps(event) + b"\n"
        self._lines.append(line)
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            log.warning("the simulator's transcript cannot be written: %s", error)
        self._written += 1
        if self._written > 2 * self._keep:
            self._rewrite()

    def unread_until(self, message_id: str) -> list[str]:
        """The ids of a person's messages that we have not read, up to and with this one."""
        unread = self._unread.get(self.messages[message_id]["person"], [])
        return unread[: unread.index(message_id) + 1] if message_id in unread else []

    def _apply(self, event: JSON) -> None:
        if event["event"] == "message":
            message = event["message"] | {"told": list(event["message"].get("told", ()))}
            self.messages[message["id"]] = message
            if message["by"] == "person":
                self.last_inbound[message["person"]] = message["at"]
                if message["status"] != "read":
                    self._unread.setdefault(message["person"], []).append(message["id"])
            while len(self.messages) > self._keep:
                self._forget_oldest()
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

    def _mark_read(self, message: dict[str, JSON]) -> None:
        unread = self._unread.get(message["person"], [])
        if message["id"] in unread:
            unread.remove(message["id"])

    def _forget_oldest(self) -> None:
        oldest = self.messages.pop(next(iter(self.messages)))
        self._mark_read(oldest)

    def _read(self, path: Path) -> Iterator[JSON]:
        if not path.exists():
            return
        with path.open("rb") as file:
            lines = deque(file, maxlen=self._keep)
        for line in lines:
            try:
                event = orjson.loads(line)
                _require_form(event)
            except (orjson.JSONDecodeError, KeyError, TypeError):
                continue  # a line torn by a crash, or of another version
            self._lines.append(line)
            yield event

    def _rewrite(self) -> None:
        """Leaves only the last events in the file; on a full disk the old file stays."""
        if self._path is None:
            return
        self.close()
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            fresh.write_bytes(b"".join(self._lines))
            os.replace(fresh, self._path)
            self._path.chmod(0o600)
            self._file = self._path.open("ab")
        except OSError as error:
            log.warning("the simulator's transcript cannot be kept: %s", error)
        self._written = len(self._lines)


def _require_form(event: JSON) -> None:
    """Raises KeyError or TypeError unless the event has the parts that applying it needs."""
    if event["event"] == "message":
        message = event["message"]
        for key in ("id", "person", "by", "type", "content", "at", "status"):
            message[key]
        message["at"] + 0.0
    else:
        event["id"]
        event["status" if event["event"] == "status" else "what"]
