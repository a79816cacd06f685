"""Messages that the phones show, kept in a file, and the feed that tells open pages of changes."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path

import orjson

from app.messages import JSON
from app.security import write_private

HISTORY_FILE = "simulator.jsonl"  # in the data folder
KEEP = 500
_WAITING = 1000  # events that a page may be behind

log = logging.getLogger(__name__)

Message = dict[str, JSON]


class History:
    """Messages both ways, as the page shows them and as webhooks are made from them.

    A message is a dict: `id`, `person`, `by` ("person" or "business"), `type`, `content` (Meta's block),
    `quoted`, `at`, `status`, `told` (webhooks that were answered 200); ours also `outbox_id` and, if it
    is to fail, `failed` (a code).
    The last `keep` messages of each person survive a restart if there is a path: the file has a line for
    each message and each change of one, of which the last counts; it is written anew at each start.
    """

    def __init__(self, path: Path | None, keep: int = KEEP) -> None:
        self._path = path
        self._keep = keep
        self._file: BufferedWriter | None = None
        self.chats: dict[str, dict[str, Message]] = defaultdict(dict)  # by person
        self.last_inbound: dict[str, float] = {}

    def load(self) -> None:
        """Read the file, without a line torn by a crash, and write it anew."""
        if self._path is None:
            return
        for line in self._path.read_bytes().splitlines() if self._path.exists() else ():
            with suppress(orjson.JSONDecodeError, KeyError):
                self._add(orjson.loads(line)["message"])
        self._rewrite()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def messages(self) -> list[Message]:
        return [message for chat in self.chats.values() for message in chat.values()]

    def find(self, message_id: str) -> Message | None:
        return next((chat[message_id] for chat in self.chats.values() if message_id in chat), None)

    def unread_until(self, last: Message) -> list[Message]:
        """Return a person's messages that we have not read, up to and with this one."""
        theirs = [one for one in self.chats[last["person"]].values() if one["by"] == "person"]
        return [one for one in theirs[: theirs.index(last) + 1] if one["status"] != "read"]

    def put(self, message: Message) -> None:
        self._add(message)
        if self._file is None:
            return
        try:
            self._file.write(_line(message))
            self._file.flush()
        except OSError as error:
            log.warning("the simulator's history cannot be written: %s", error)

    def put_change(self, message: Message) -> None:
        """Keep what became of a message, unless it is gone by now."""
        if self.find(message["id"]) is not None:
            self.put(message)

    def forget(self, person: str) -> None:
        """Remove what a person said and was told, in the file too."""
        self.chats.pop(person, None)
        self.last_inbound.pop(person, None)
        self._rewrite()

    def _add(self, message: Message) -> None:
        chat = self.chats[message["person"]]
        chat[message["id"]] = message
        if message["by"] == "person":
            self.last_inbound[message["person"]] = message["at"]
        if len(chat) > self._keep:
            del chat[next(iter(chat))]

    def _rewrite(self) -> None:
        """Write a line for each message; on a full disk the old file stays."""
        if self._path is None:
            return
        self.close()
        try:
            write_private(self._path, b"".join(map(_line, self.messages())))
            self._file = self._path.open("ab")
        except OSError as error:
            log.warning("the simulator's history cannot be kept: %s", error)


def _line(message: Message) -> bytes:
    return orjson.dumps({"message": message}) + b"\n"


class Feed:
    """Hands each event to every follower; one that does not keep up is let go and comes back by itself."""

    def __init__(self) -> None:
        self._followers: set[asyncio.Queue[JSON]] = set()

    def publish(self, event: JSON) -> None:
        for queue in list(self._followers):
            queue.put_nowait(event if queue.qsize() < _WAITING else None)

    @contextmanager
    def follow(self) -> Iterator[asyncio.Queue[JSON]]:
        """Give a queue of what is published from now on; None means that nothing more comes."""
        queue: asyncio.Queue[JSON] = asyncio.Queue()
        self._followers.add(queue)
        try:
            yield queue
        finally:
            self._followers.discard(queue)

    def close(self) -> None:
        """End every stream at once."""
        self.publish(None)
