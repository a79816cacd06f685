"""A stand-in for Meta's Graph API, as far as the WhatsApp Cloud API goes."""

import asyncio
import hmac
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from app.messages import JSON
from app.phones import canonical
from app.simulator import limits
from app.simulator.announcements import Announcements
from app.simulator.bodies import MEDIA_KINDS, Account, inbound_content, new_message_id
from app.simulator.faults import Faults
from app.simulator.feed import Feed
from app.simulator.history import KEEP, History
from app.simulator.lookups import Lookups, read_json
from app.simulator.media import MB, MediaShelf
from app.simulator.people import SimulatedPerson, named
from app.simulator.rates import Rates
from app.simulator.refusals import Refusal
from app.simulator.webhooks import WebhookPoster

WINDOW_SECONDS = 24 * 3600
TYPING_SECONDS = 25.0
_VERSION = re.compile(r"v\d+\.\d+")

Guard = Callable[[Request], bool]
Handler = Callable[[Request], Awaitable[Response]]


class StandInGraph:
    """The Graph API of one business number, with the phones of `people` on its other side.

    What is sent is checked against Meta's true limits, accepted, and followed by signed status webhooks
    (sent, delivered, read), each posted to `webhook_url` until it is answered 200; so is what people say
    through `inbound()`. Webhooks of one person go out in order, messages and statuses apart.
    - `faults`: first values of the switches; see `Faults` for their names and meaning.
    - `test_list`: digits, in exactly this form, that may be written to, as with a test number of Meta's;
      others get 131030. Without it every person may be written to, in either national form.
    - `transcript`: a JSONL file that keeps the phones' history; what was not yet taken by the webhook is
      posted again after a restart. Files that were sent live in memory only.
    - `keep`: how many messages of each person are remembered.
    - `status_pause`: seconds before delivered and before read, so that an eye can follow.
    - `first_pause`, `longest_pause`, `retry_for`: seconds between attempts to post a webhook, and in all.
    - `log`: everything received, oldest first; each entry has `n`, `at`, `kind` (send, read, typing),
      `body`, and for a send `person`, `outbox_id`, `wamid` ("" when refused) and `error` (code or 0).
    """

    def __init__(
        self,
        phone_number_id: str,
        access_token: str,
        app_secret: str,
        webhook_url: str,
        *,
        people: Iterable[SimulatedPerson],
        transcript: Path | None = None,
        faults: Mapping[str, JSON] | None = None,
        test_list: frozenset[str] | None = None,
        status_pause: float = 0.0,
        first_pause: float = 0.2,
        longest_pause: float = 5.0,
        retry_for: float = 900.0,
        keep: int = KEEP,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.people = {person.id: person for person in people}
        self.account = Account(phone_number_id)
        self.faults = Faults()
        self.faults.update(faults or {})
        self.history = History(transcript, keep)
        self.media = MediaShelf()
        self.feed = Feed()
        self.log: deque[dict[str, JSON]] = deque(maxlen=20 * keep)
        self._typing: dict[str, float] = {}
        self._token = access_token
        self._app_secret = app_secret
        self._test_list = test_list
        self._clock = clock
        self._rates = Rates(time.monotonic)
        self._stopping = asyncio.Event()
        self._webhooks = WebhookPoster(
            webhook_url,
            app_secret,
            self.account,
            self.faults,
            first_pause=first_pause,
            longest_pause=longest_pause,
            retry_for=retry_for,
        )
        self._announcements = Announcements(
            self._webhooks, self.account, self.history, self._record, clock, status_pause
        )

    async def start(self) -> None:
        """Loads the transcript and begins to post."""
        self._stopping.clear()
        self.feed.open()
        self.history.load()
        self.people = {**self.people, **self.history.people}
        for guest in self.history.last_inbound.keys() - self.people.keys():
            self.history.forget(guest)
        await self._webhooks.start()
        for message in list(self.history.messages.values()):
            if person := self.people.get(message["person"]):
                self._announcements.queue(person, message)

    async def stop(self) -> None:
        """Ends what hangs, what posts and who follows; untaken webhooks stay in the transcript."""
        self._stopping.set()
        self.feed.close()
        await self._webhooks.stop()
        self.history.close()

    @property
    def pending(self) -> int:
        """How many webhooks were not yet answered 200."""
        return self._webhooks.waiting

    async def idle(self) -> None:
        """Returns when every webhook was taken (held statuses apart)."""
        await self._webhooks.idle()

    def add_person(self, person: SimulatedPerson, *, stays: bool = True) -> None:
        """Gives a person a phone; one who `stays` is there after a restart too."""
        self.people[person.id] = person
        event = {"event": "person", "person": asdict(person)}
        if stays:
            self._record(event)
        else:
            self.feed.publish(event)

    def remove_person(self, person: str) -> None:
        """Takes away a guest's phone and what it showed."""
        if self.people.pop(person, None) is not None:
            self.history.forget(person)
            self.feed.publish({"event": "gone", "person": person})

    def forget(self, names: Collection[str]) -> None:
        """Empties the phones of these numbers or user ids."""
        for person in named(self.people.values(), names):
            self.history.forget(person.id)
            self.feed.publish({"event": "gone", "person": person.id})
            self.feed.publish({"event": "person", "person": asdict(person)})

    def set_faults(self, changes: Mapping[str, JSON]) -> None:
        """Switches faults on and off. Raises ValueError for an unknown name or value."""
        before = self.faults.as_json()
        self.faults.update(changes)
        new = {name: value for name, value in self.faults.as_json().items() if value != before[name]}
        if new:
            self._record({"event": "switches", "at": self._clock(), "changes": new})
            self._publish_faults()
        self._webhooks.release()

    def typing_until(self, person: str) -> float:
        """Until when (Unix seconds) the person sees that an answer is being written; 0: not at all."""
        until = self._typing.get(person, 0.0)
        return until if until > self._clock() else 0.0

    async def inbound(self, person: str, message: Mapping[str, JSON]) -> str:
        """A person does something; returns the message's id as soon as its webhook is queued.

        `message` by `type`: text {`text`}; button and list {`reply`: {id, title}}; location {`location`};
        contacts {`contacts`}; reaction {`reaction`: {message_id, emoji}}; image, video, audio, document,
        sticker {`data` bytes, `mime_type`, `caption`, `filename`}; voice {} (a canned clip, or `data`);
        edit {`original` (a message id), `text`}; revoke {`original`}; unsupported {}.
        With each: `quoted` (a message id), `id` (else a new one). Raises ValueError.
        """
        if person not in self.people:
            raise ValueError(f"{person!r} is none of the simulator's people")
        stored = self.media.take(message)
        kind, content = inbound_content(message, stored.webhook_block if stored else None)
        record: dict[str, JSON] = {
            "id": message.get("id") or new_message_id(),
            "person": person,
            "by": "person",
            "type": kind,
            "content": content,
            "quoted": str(message.get("quoted") or ""),
            "at": self._clock(),
            "status": "sent",
            "told": [],
        }
        self._record({"event": "message", "message": record})
        self._announcements.queue(self.people[person], record)
        return str(record["id"])

    def routes(self, prefix: str = "", is_allowed: Guard | None = None) -> list[BaseRoute]:
        """The API's routes; where `is_allowed` says no they are not there (404)."""

        def route(path: str, handler: Handler, method: str) -> Route:
            return Route(prefix + path, self._answering(handler, is_allowed), methods=[method])

        lookups = Lookups(self.account, self._token, self.media)
        return [
            route("/media/{media_id}", lookups.download, "GET"),
            route("/{version}/{number}/messages", self._messages, "POST"),
            route("/{version}/{number}/media", lookups.upload, "POST"),
            route("/{version}/debug_token", lookups.debug_token, "GET"),
            route("/{version}/{business}/subscribed_apps", lookups.subscribed_apps, "GET"),
            route("/{version}/{object}", lookups.describe, "GET"),
            route("/{version}/{object}", lookups.delete, "DELETE"),
        ]

    def app(self) -> Starlette:
        """The API as an application of its own, for a process of its own."""
        return Starlette(routes=self.routes())

    def _answering(self, handler: Handler, is_allowed: Guard | None) -> Handler:
        async def answer(request: Request) -> Response:
            if is_allowed is not None and not is_allowed(request):
                return PlainTextResponse("Not Found", 404)
            try:
                self._admit(request)
                return await handler(request)
            except Refusal as refusal:
                return refusal.answer()

        return answer

    def _admit(self, request: Request) -> None:
        if self.faults.offline:
            raise Refusal(131016, "The service is away.", status=503)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        wanted = self._token.encode()
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), wanted):
            raise Refusal(190, "The access token is missing, wrong or expired.", status=401)
        version = request.path_params.get("version")
        if version is not None and not _VERSION.fullmatch(version):
            raise Refusal(100, "Invalid version format. Use a format like 'v25.0'.")
        number = request.path_params.get("number")
        if number is not None and number != self.account.phone_number_id:
            raise Refusal(100, f"Object with ID {number[:40]!r} does not exist or cannot be loaded.")

    async def _messages(self, request: Request) -> Response:
        body = await read_json(request, MB)
        if body.get("status") == "read":
            return self._mark_read(body)
        entry = self._log("send", body, outbox_id=body.get("biz_opaque_callback_data", ""), wamid="", error=0)
        is_scripted = bool(self.faults.fail)
        script = self.faults.next_script()
        if is_scripted:
            self._publish_faults()
        try:
            if script and not script.get("accept"):
                raise Refusal.scripted(script)
            kind = limits.check(body)
            person = self._recipient(body)
            entry["person"] = person.id
            self._check_sendable(person, kind, body[kind])
        except Refusal as refusal:
            entry["error"] = refusal.code
            self._note_refusal(body, refusal)
            raise
        message = self._accept(person, kind, body, failed=script.get("code", 0))
        entry["wamid"] = message["id"]
        if self.faults.next_drop():
            self._publish_faults()
            await self._until_gone(request)
        if self.faults.delay:
            await asyncio.sleep(self.faults.delay)
        contact = {"wa_id": person.phone} if body.get("to") else {"user_id": person.user_id}
        return JSONResponse(
            {
                "messaging_product": "whatsapp",
                "contacts": [{"input": body.get("to") or body["recipient"], **contact}],
                "messages": [{"id": message["id"]}],
            }
        )

    def _recipient(self, body: Mapping[str, JSON]) -> SimulatedPerson:
        if phone := body.get("to"):
            digits = re.sub(r"\D", "", phone)
            if self._test_list is None or digits in self._test_list:
                for person in self.people.values():
                    if person.phone and canonical(person.phone) == canonical(digits):
                        return person
            raise Refusal(131030, "Recipient phone number not in allowed list: add it and try again.")
        for person in self.people.values():
            if person.user_id == body["recipient"]:
                return person
        raise Refusal(131026, "Message undeliverable: no such user.")

    def _check_sendable(self, person: SimulatedPerson, kind: str, block: JSON) -> None:
        if self.faults.rates:
            self._rates.take(person.id)
        if kind != "template":
            silent_for = self._clock() - self.history.last_inbound.get(person.id, 0.0)
            if silent_for + self.faults.clock_ahead > WINDOW_SECONDS:
                raise Refusal(131047, "More than 24 hours have passed since the person last wrote.")
        if kind in MEDIA_KINDS and block.get("id") and self.media.get(block["id"]) is None:
            raise Refusal(100, f"There is no media with the id {block['id'][:40]!r}.")
        if kind == "reaction" and block["message_id"] not in self.history.messages:
            raise Refusal(131009, "reaction.message_id is not a message of this conversation.")

    def _accept(
        self, person: SimulatedPerson, kind: str, body: Mapping[str, JSON], *, failed: int
    ) -> dict[str, JSON]:
        content = body[kind]
        if kind in MEDIA_KINDS and (stored := self.media.get(content.get("id", ""))):
            content = {"filename": stored.filename, "mime_type": stored.mime_type, **content}
        message = {
            "id": new_message_id(),
            "person": person.id,
            "by": "business",
            "type": kind,
            "content": content,
            "quoted": (body.get("context") or {}).get("message_id", ""),
            "at": self._clock(),
            "status": "accepted",
            "told": [],
            "outbox_id": body.get("biz_opaque_callback_data", ""),
            "failed": failed,
        }
        self._typing.pop(person.id, None)
        self._record({"event": "message", "message": message})
        self._announcements.queue(person, message)
        return message

    def _mark_read(self, body: Mapping[str, JSON]) -> Response:
        typing = body.get("typing_indicator")
        self._log("typing" if typing else "read", body)
        message = self.history.messages.get(str(body.get("message_id")))
        if message is None or message["by"] != "person":
            raise Refusal(100, "Param message_id is not the id of a message that was received.")
        person = message["person"]
        for message_id in self.history.unread_until(message["id"]):
            self._record({"event": "status", "id": message_id, "status": "read"})
        if typing:
            self._typing[person] = self._clock() + TYPING_SECONDS
            self.feed.publish({"event": "typing", "person": person, "seconds": TYPING_SECONDS})
        return JSONResponse({"success": True})

    async def _until_gone(self, request: Request) -> None:
        """Returns when the caller gave up, or when the stand-in stops."""
        gone = asyncio.ensure_future(request.receive())
        stopping = asyncio.ensure_future(self._stopping.wait())
        _, rest = await asyncio.wait({gone, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()

    def _note_refusal(self, body: Mapping[str, JSON], refusal: Refusal) -> None:
        """Lets the person's page say what did not reach them."""
        try:
            person = self._recipient(body)
        except (Refusal, KeyError, TypeError):
            return  # written to nobody who has a phone here
        self._typing.pop(person.id, None)
        note = {"person": person.id, "code": refusal.code, "details": refusal.details}
        self._record({"event": "refused", "at": self._clock(), **note})

    def _publish_faults(self) -> None:
        self.feed.publish({"event": "faults", "faults": self.faults.as_json()})

    def _record(self, event: JSON) -> None:
        self.history.record(event)
        self.feed.publish(event)

    def _log(self, kind: str, body: JSON, **more: JSON) -> dict[str, JSON]:
        number = self.log[-1]["n"] + 1 if self.log else 1
        entry = {"n": number, "at": self._clock(), "kind": kind, "body": body, **more}
        self.log.append(entry)
        return entry
