"""The stand-in for Meta's Graph API: a business number with people's phones on its other side."""

import asyncio
import base64
import hashlib
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.channels.whatsapp.credentials import Credentials
from app.errors import RecadoError
from app.messages import JSON
from app.people import SimulatedPerson
from app.phones import canonical, digits
from app.simulator.faults import LIMITS, Faults, Refusal, check_message, unknown_object
from app.simulator.history import KEEP, Feed, History, Message
from app.simulator.webhooks import (
    MEDIA_KINDS,
    RETRY_PAUSE,
    Notice,
    WebhookPoster,
    inbound_content,
    message_value,
    new_message_id,
    status_value,
)

WINDOW_SECONDS = 24 * 3600
TYPING_SECONDS = 25.0
MB = 1024 * 1024
_SHELF = 128 * MB

_LARGEST = 100 * MB  # of a document
_LIMITS = {kind: most * 1024 for kind, most in LIMITS["file_kilobytes"].items()}
_UPLOADED = {*_LIMITS, *LIMITS["uploads"]}
_DOCUMENTS = ("text/plain", "application/")


class StandInGraph:
    """Takes messages as the Graph API does and shows them on the phones of `people`.

    A send is checked against Meta's true limits, accepted, and followed by signed status webhooks
    (sent, delivered, read), each posted to `webhook_url` until it is answered 200; so is what people say
    through `inbound`. Webhooks of one person go out in order, messages and statuses apart.

    - `history_path`: a file that keeps what the phones show; what the webhook has not taken is posted again
      after a restart. Files that were sent live in memory only. `keep`: messages of each person.
    - `status_pause`: seconds before the statuses delivered and read, `retry_pause`: between attempts to post.
    """

    def __init__(
        self,
        credentials: Credentials,
        webhook_url: str,
        people: Iterable[SimulatedPerson],
        *,
        history_path: Path | None = None,
        keep: int = KEEP,
        status_pause: float = 0.0,
        retry_pause: float = RETRY_PAUSE,
    ) -> None:
        self.people = {person.id: person for person in people}
        self.number_id = credentials.phone_number_id
        self.access_token = credentials.access_token
        self.faults = Faults()
        self.history = History(history_path, keep)
        self.media = MediaShelf()
        self.feed = Feed()
        self.stopping = asyncio.Event()
        self._typing: dict[str, float] = {}
        self._status_pause = status_pause
        self._webhooks = WebhookPoster(webhook_url, credentials.app_secret, self.faults, retry_pause)

    async def start(self) -> None:
        """Load the history and begin to post."""
        self.history.load()
        for stranger in self.history.chats.keys() - self.people.keys():
            self.history.forget(stranger)
        for message in self.history.messages():
            self._announce(self.people[message["person"]], message)

    async def stop(self) -> None:
        """End hanging sends, streams and posting; webhooks that were not taken stay in the history."""
        self.stopping.set()
        self.feed.close()
        await self._webhooks.stop()
        self.history.close()

    @property
    def pending(self) -> int:
        """Return how many webhooks were not yet answered 200."""
        return self._webhooks.waiting

    def forget(self, names: Collection[str]) -> None:
        """Empty the phones of these canonical numbers or user ids."""
        for person in self.people.values():
            if not {canonical(person.phone), person.user_id}.isdisjoint(names):
                self.history.forget(person.id)
                self.feed.publish({"event": "forgotten", "person": person.id})

    def set_faults(self, changes: Mapping[str, JSON]) -> None:
        """Switch faults on and off. Raise RecadoError for an unknown name or value."""
        self.faults.update(changes)
        self.publish_faults()

    def publish_faults(self) -> None:
        self.feed.publish({"event": "faults", "faults": self.faults.model_dump()})

    def typing(self) -> dict[str, float]:
        """Return for how many seconds more each person sees that an answer is being written."""
        now = time.time()
        return {person: until - now for person, until in self._typing.items() if until > now}

    async def inbound(self, person: str, message: Mapping[str, JSON]) -> str:
        """Do what a person does on their phone; return the message's id once its webhook is queued.

        `message` by `type`: text {`text`}; button and list {`reply`: {id, title}}; location {`location`};
        contacts {`contacts`}; reaction {`reaction`: {message_id, emoji}}; image, video, audio, document,
        sticker {`data` bytes, `mime_type`, `caption`, `filename`}; voice {} (a canned clip, or `data`);
        edit {`original` (a message id), `text`}; revoke {`original`}; unsupported {}.
        With each: `quoted` (a message id), `forwarded`, `id` (else a new one). Raise RecadoError.
        """
        if person not in self.people:
            raise RecadoError(f"{person!r} is none of the simulator's people")
        kind, content = inbound_content(message, self._keep_file(message))
        quoted, forwarded = str(message.get("quoted") or ""), bool(message.get("forwarded"))
        id, there = message.get("id") or new_message_id(), self.people[person]
        self._keep(there, "person", kind, content, id=id, quoted=quoted, forwarded=forwarded, status="sent")
        return str(id)

    def send(self, body: dict[str, JSON]) -> JSON:
        """Accept a message to a person and return the answer's body. Raise Refusal."""
        person, script = self._recipient(body), None
        if self.faults.fail:
            script = self.faults.fail.pop(0)
            self.publish_faults()
        try:
            if script and not script.get("accept"):
                raise Refusal(
                    script["code"],
                    script.get("details", ""),
                    status=script.get("status"),
                    retry_after=script.get("retry_after"),
                )
            kind = check_message(body)
            self._check_sendable(person, kind, body[kind])
        except Refusal as refusal:
            what = {"person": person.id, "code": refusal.code, "details": refusal.details}
            self._typing.pop(person.id, None)
            self.feed.publish({"event": "refused", "at": time.time(), **what})  # an open page shows it
            raise
        content, id = body[kind], new_message_id()
        if kind in MEDIA_KINDS:
            stored = self.media.find(content["id"])
            content = {"filename": stored.filename, "mime_type": stored.mime_type, **content}
        self._typing.pop(person.id, None)
        self._keep(
            person,
            "business",
            kind,
            content,
            id=id,
            quoted=(body.get("context") or {}).get("message_id", ""),
            status="accepted",
            outbox_id=body.get("biz_opaque_callback_data", ""),
            failed=script["code"] if script else 0,
        )
        contact = {"wa_id": person.phone} if body.get("to") else {"user_id": person.user_id}
        return {
            "messaging_product": "whatsapp",
            "contacts": [{"input": body.get("to") or body["recipient"], **contact}],
            "messages": [{"id": id}],
        }

    def mark_read(self, body: Mapping[str, JSON]) -> None:
        """Mark a person's messages as read up to one, and show them that we type if asked. Raise Refusal."""
        message = self.history.find(str(body.get("message_id")))
        if message is None or message["by"] != "person":
            raise Refusal(100, "Param message_id is not the id of a message that was received.")
        for one in self.history.unread_until(message):
            self._set_status(one, "read")
        if body.get("typing_indicator"):
            self._typing[message["person"]] = time.time() + TYPING_SECONDS
            self.feed.publish({"event": "typing", "person": message["person"], "seconds": TYPING_SECONDS})

    def _keep_file(self, message: Mapping[str, JSON]) -> dict[str, JSON]:
        """Keep the file of a person's message; return its id, mime_type and sha256, {} if there is none."""
        data, mime_type = message.get("data"), str(message.get("mime_type", ""))
        if message.get("type") == "voice" and data is None:
            data, mime_type = canned_clip(), "audio/ogg; codecs=opus"
        if not isinstance(data, bytes):
            return {}
        try:
            return self.media.put(data, mime_type, str(message.get("filename", ""))).webhook_block
        except Refusal as refusal:
            raise RecadoError(refusal.details) from refusal

    def _recipient(self, body: Mapping[str, JSON]) -> SimulatedPerson:
        number = canonical(digits(str(body.get("to") or "")))
        for person in self.people.values():
            if canonical(person.phone) == number if number else person.user_id == body.get("recipient"):
                return person
        if number:
            raise Refusal(131030, "Recipient phone number not in allowed list: add it and try again.")
        raise Refusal(131026, "Message undeliverable: no such user.")

    def _check_sendable(self, person: SimulatedPerson, kind: str, block: JSON) -> None:
        if kind != "template":
            silent_for = time.time() - self.history.last_inbound.get(person.id, 0.0)
            if silent_for + self.faults.clock_ahead > WINDOW_SECONDS:
                raise Refusal(131047, "More than 24 hours have passed since the person last wrote.")
        if kind in MEDIA_KINDS:
            self.media.find(block["id"])
        if kind == "reaction" and self.history.find(block["message_id"]) is None:
            raise Refusal(131009, "reaction.message_id is not a message of this conversation.")

    def _keep(self, person: SimulatedPerson, by: str, kind: str, content: JSON, **more: JSON) -> None:
        """Show a message on the person's phone, and queue its webhooks."""
        message = {"person": person.id, "by": by, "type": kind, "content": content, "told": [], **more}
        message["at"] = time.time()
        self.history.put(message)
        self.feed.publish({"event": "message", "message": message})
        self._announce(person, message)

    def _announce(self, person: SimulatedPerson, message: Message) -> None:
        """Queue every webhook about a message that was not taken yet."""
        steps = ("failed",) if message.get("failed") else ("sent", "delivered", "read")
        for step in steps if message["by"] == "business" else ("received",):
            if step not in message["told"]:
                notice = Notice(
                    lane=f"{person.id}/{'messages' if step == 'received' else 'statuses'}",
                    value=partial(self._value, person, message, step),
                    taken=partial(self._on_taken, message, step),
                    is_status=step != "received",
                    pause=0.0 if step in ("received", "sent") else self._status_pause,
                )
                self._webhooks.post(notice)

    def _value(self, person: SimulatedPerson, message: Message, step: str) -> JSON:
        if step == "received":
            return message_value(self.number_id, person, message)
        self._set_status(message, step)
        return status_value(self.number_id, person, message, step, time.time())

    def _on_taken(self, message: Message, what: str) -> None:
        message["told"].append(what)
        if what == "received" and message["status"] == "sent":
            self._set_status(message, "delivered")
        else:
            self.history.put_change(message)

    def _set_status(self, message: Message, status: str) -> None:
        message["status"] = status
        self.history.put_change(message)
        self.feed.publish({"event": "status", "id": message["id"], "status": status})


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file; `sha256` is base64 in webhooks and hex in the answer about its address, as at Meta."""

    id: str
    mime_type: str
    data: bytes
    filename: str = ""

    @property
    def webhook_block(self) -> dict[str, JSON]:
        digest = hashlib.sha256(self.data).digest()
        return {"mime_type": self.mime_type, "sha256": base64.b64encode(digest).decode(), "id": self.id}


class MediaShelf:
    """Files of at most 128 MB in all; older ones are gone, as they are at Meta after 30 days."""

    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}

    def put(self, data: bytes, mime_type: str, filename: str = "") -> StoredFile:
        """Keep a file. Raise Refusal for a type or size that Meta does not take."""
        bare = _bare(mime_type)
        limit = _LIMITS.get(bare, _LARGEST)
        if bare not in _LIMITS and not bare.startswith(_DOCUMENTS):
            raise Refusal(100, f"Param file must be a file with one of the supported types; got {bare!r}.")
        if not data or len(data) > limit:
            raise Refusal(131053, f"A file of the type {bare} must have 1 to {limit} bytes.")
        stored = StoredFile(str(secrets.randbelow(9 * 10**15) + 10**15), mime_type, data, filename)
        self._files[stored.id] = stored
        while sum(len(file.data) for file in self._files.values()) > _SHELF:
            self.remove(next(iter(self._files)))
        return stored

    def upload(self, data: bytes, mime_type: str, filename: str) -> StoredFile:
        """Keep a file that a business uploads. Raise Refusal for a type or size that Meta does not take."""
        if _bare(mime_type) not in _UPLOADED:
            kinds = ", ".join(sorted(_UPLOADED))
            raise Refusal(100, f"Param file must be a file with one of the following types: {kinds}.")
        return self.put(data, mime_type, filename)

    def find(self, media_id: str) -> StoredFile:
        """Return a file. Raise Refusal where there is none."""
        if media_id not in self._files:
            raise unknown_object(media_id)
        return self._files[media_id]

    def remove(self, media_id: str) -> None:
        """Remove a file. Raise Refusal where there is none."""
        del self._files[self.find(media_id).id]


def canned_clip() -> bytes:
    """Return a voice note: three seconds of silence as Ogg Opus."""
    return (Path(__file__).parent / "static" / "sample.ogg").read_bytes()


def _bare(mime_type: str) -> str:
    return mime_type.partition(";")[0].strip().lower()
