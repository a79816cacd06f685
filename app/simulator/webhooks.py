"""Webhooks of the stand-in: bodies as Meta builds and signs them, posted until they are taken."""

import asyncio
import base64
import logging
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from app.channels.whatsapp.signature import sign
from app.http.endpoint import Endpoint, NoAnswer, NotSent
from app.messages import JSON
from app.people import SimulatedPerson
from app.simulator.faults import Faults, status_error
from app.simulator.media import MEDIA_KINDS

ANSWER_SECONDS = 20.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Account:
    """The business that the stand-in plays: its ids and number as webhooks name them."""

    phone_number_id: str
    business_id: str = "100000000000001"
    display_phone_number: str = "15550100100"


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: before the statuses delivered and read, and between attempts to post a webhook.

    Attempts begin at `first_pause`, double up to `longest_pause`, and end after `retry_for`.
    """

    status_pause: float = 0.0
    first_pause: float = 0.2
    longest_pause: float = 5.0
    retry_for: float = 900.0


@dataclass(frozen=True, slots=True)
class Notice:
    """An update for the webhook. Those of one lane go out one after the other.

    `pause` is waited before the first attempt, then `value` makes the body's part; `taken` is called
    after the answer 200; `at` is the time of the update (monotonic seconds).
    """

    lane: str
    value: Callable[[], JSON]
    taken: Callable[[], None]
    is_status: bool = False
    pause: float = 0.0
    at: float = field(default_factory=time.monotonic)


class WebhookPoster:
    """Posts signed updates until the answer is 200: an HTTP client, and a task for each lane."""

    def __init__(self, url: str, app_secret: str, account: Account, faults: Faults, pace: Pace) -> None:
        self._url = url
        self._secret = app_secret
        self._account = account
        self._faults = faults
        self._pace = pace
        self._endpoint: Endpoint | None = None
        self._lanes: dict[str, list[Notice]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._held: list[Notice] = []
        self._random = random.Random()  # noqa: S311 (it shuffles, it guards nothing)

    @property
    def waiting(self) -> int:
        """Return how many notices were not yet taken, held ones included."""
        return sum(map(len, self._lanes.values())) + len(self._held)

    async def start(self) -> None:
        self._endpoint = Endpoint(self._url, {"User-Agent": "facebookexternalua"})
        for lane in self._lanes:
            self._work(lane)

    async def stop(self) -> None:
        """End the tasks and drop what waits: the history knows what was not taken."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        self._lanes.clear()
        self._held.clear()
        if self._endpoint is not None:
            await self._endpoint.close()
            self._endpoint = None

    def post(self, notice: Notice) -> None:
        """Queue a notice; before `start()` it waits."""
        if notice.is_status and self._faults.hold_statuses:
            self._held.append(notice)
            return
        lane = "batch" if self._faults.batch > 1 else notice.lane
        self._lanes.setdefault(lane, []).append(notice)
        self._work(lane)

    def release(self) -> None:
        """Queue the statuses that were held, unless they still are to be."""
        held, self._held = self._held, []
        for notice in held:
            self.post(notice)

    async def idle(self) -> None:
        """Return when nothing is left to post."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _work(self, lane: str) -> None:
        if lane not in self._tasks and self._endpoint is not None:
            self._tasks[lane] = asyncio.create_task(self._run(lane, self._endpoint), name=f"webhooks {lane}")

    async def _run(self, lane: str, endpoint: Endpoint) -> None:
        queue = self._lanes[lane]
        try:
            while queue:
                due = queue[0].at + self._faults.webhook_delay
                await asyncio.sleep(max(queue[0].pause, due - time.monotonic()))
                if self._faults.reorder:
                    self._random.shuffle(queue)
                notices = queue[: self._faults.batch]
                await self._deliver(notices, endpoint)
                del queue[: len(notices)]
            del self._lanes[lane]
        finally:
            self._tasks.pop(lane, None)

    async def _deliver(self, notices: list[Notice], endpoint: Endpoint) -> None:
        body = orjson.dumps(envelope(self._account, [notice.value() for notice in notices]))
        copies, pause = self._faults.duplicate, self._pace.first_pause
        deadline = time.monotonic() + self._pace.retry_for
        while True:
            answers = await asyncio.gather(*(self._is_taken(body, endpoint) for _ in range(copies)))
            copies = answers.count(False)
            if not copies:
                break
            if time.monotonic() > deadline:
                log.warning("webhook %s never answered 200; %d updates dropped", self._url, len(notices))
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._pace.longest_pause)
        for notice in notices:
            notice.taken()

    async def _is_taken(self, body: bytes, endpoint: Endpoint) -> bool:
        signed = {"X-Hub-Signature-256": sign(body, self._secret)}
        try:
            answer = await endpoint.post("", body, ANSWER_SECONDS, headers=signed)
        except (NotSent, NoAnswer) as error:
            log.debug("webhook %s away: %s", self._url, error)
            return False
        return answer.status == 200


def new_message_id() -> str:
    """Return an id in Meta's form: `wamid.` and base64."""
    return "wamid." + base64.b64encode(b"\x1c\x18" + secrets.token_bytes(28)).decode()


def envelope(account: Account, values: Sequence[JSON]) -> JSON:
    """Return a webhook body that holds all `values`, a change each."""
    return {
        "object": "whatsapp_business_account",
        "entry": [
            {
                "id": account.business_id,
                "changes": [{"value": value, "field": "messages"} for value in values],
            }
        ],
    }


def message_value(account: Account, person: SimulatedPerson, message: Mapping[str, JSON]) -> JSON:
    """Return the `value` of a person's message; `message` as the history keeps it."""
    kind = message["type"]
    item: dict[str, JSON] = {
        **({"from": person.phone} if person.phone else {}),
        "from_user_id": person.user_id,
        "id": message["id"],
        "timestamp": str(int(message["at"])),
        "type": kind,
    }
    if message.get("forwarded"):
        item["context"] = {"forwarded": True}
    if message.get("quoted"):
        item["context"] = {"from": account.display_phone_number, "id": message["quoted"]}
    if kind == "unsupported":
        item["errors"] = [{**status_error(131051), "title": "Message type unknown"}]
    else:
        item[kind] = message["content"]
    return _value(account, person) | {"messages": [item]}


def status_value(
    account: Account, person: SimulatedPerson, message: Mapping[str, JSON], status: str, at: float
) -> JSON:
    """Return the `value` of a status of a message that was sent to a person."""
    item: dict[str, JSON] = {
        "id": message["id"],
        "status": status,
        "timestamp": str(int(at)),
        **({"recipient_id": person.phone} if person.phone else {}),
        "recipient_user_id": person.user_id,
    }
    if message.get("outbox_id"):
        item["biz_opaque_callback_data"] = message["outbox_id"]
    if status == "failed":
        item["errors"] = [status_error(message["failed"])]
    else:
        item["pricing"] = {"billable": True, "pricing_model": "PMP", "type": "regular", "category": "service"}
    return _value(account, person) | {"statuses": [item]}


def inbound_content(message: Mapping[str, JSON], media: Mapping[str, JSON] | None) -> tuple[str, JSON]:
    """Return Meta's type and block for a person's message on the page, e.g. `{"type": "text", "text": "hi"}`.

    `media` is the id, mime_type and sha256 of the stored file, if the kind has one. Raise ValueError.
    """
    kind = message.get("type", "text")
    if not isinstance(kind, str):
        raise ValueError("a message's type is a word")
    if kind == "voice":
        return "audio", {**_known(media), "voice": True}
    if kind in MEDIA_KINDS:
        extras = {key: message[key] for key in ("caption", "filename") if message.get(key)}
        return kind, {**_known(media), **extras}
    if kind == "text":
        return "text", {"body": _string(message, "text")}
    if kind in {"button", "list"}:
        reply = _mapping(message, "reply")
        keys = ("id", "title") if kind == "button" else ("id", "title", "description")
        block = {key: _string(reply, key) for key in keys if key in reply or key != "description"}
        return "interactive", {"type": f"{kind}_reply", f"{kind}_reply": block}
    if kind == "reaction":
        reaction = _mapping(message, "reaction")
        return "reaction", {
            "message_id": _string(reaction, "message_id"),
            **({"emoji": reaction["emoji"]} if reaction.get("emoji") else {}),
        }
    if kind == "location":
        return "location", _mapping(message, "location")
    if kind == "contacts" and isinstance(message.get("contacts"), list):
        return "contacts", message["contacts"]
    if kind == "edit":
        new = {"type": "text", "text": {"body": _string(message, "text")}}
        original = _string(message, "original")
        return "edit", {"original_message_id": original, "message": {"context": {"id": original}, **new}}
    if kind == "revoke":
        return "revoke", {"original_message_id": _string(message, "original")}
    if kind == "unsupported":
        return "unsupported", {}
    raise ValueError(f"type {kind!r} is not one of the simulator's, or its part is missing")


def _value(account: Account, person: SimulatedPerson) -> dict[str, JSON]:
    profile = {"name": person.name} | ({"username": person.username} if person.username else {})
    contact: dict[str, JSON] = {"profile": profile, "user_id": person.user_id}
    if person.phone:
        contact["wa_id"] = person.phone
    return {
        "messaging_product": "whatsapp",
        "metadata": {
            "display_phone_number": account.display_phone_number,
            "phone_number_id": account.phone_number_id,
        },
        "contacts": [contact],
    }


def _known(media: Mapping[str, JSON] | None) -> dict[str, JSON]:
    if media is None:
        raise ValueError("this kind of message needs a file: `data` (base64) and `mime_type`")
    return dict(media)


def _mapping(message: Mapping[str, JSON], key: str) -> dict[str, JSON]:
    value = message.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"{key!r} must be an object")
    return value


def _string(message: Mapping[str, JSON], key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key!r} must be a text that is not empty")
    return value
