"""Webhooks of the stand-in: bodies as Meta builds and signs them, posted until they are taken."""

import asyncio
import base64
import logging
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from app.channels.whatsapp.credentials import sign
from app.errors import RecadoError
from app.http.endpoint import Endpoint, NoAnswer, NotSent
from app.messages import JSON
from app.people import SimulatedPerson
from app.simulator.faults import Faults, status_error
from app.tasks import end_tasks

ANSWER_SECONDS = 20.0
RETRY_PAUSE = 1.0  # seconds between attempts
HOLD_PAUSE = 0.05  # seconds between two looks at whether statuses are still held
MEDIA_KINDS = frozenset({"image", "video", "audio", "document", "sticker"})
BUSINESS_ID, BUSINESS_NUMBER = "100000000000001", "15550100100"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """An update for the webhook. Those of one lane go out one after the other.

    `pause` is waited before the first attempt, then `value` makes the body's part; `taken` is called
    after the answer 200.
    """

    lane: str
    value: Callable[[], JSON]
    taken: Callable[[], None]
    is_status: bool = False
    pause: float = 0.0


class WebhookPoster:
    """Posts signed updates until the answer is 200: an HTTP client, and a task for each lane."""

    def __init__(self, url: str, app_secret: str, faults: Faults, retry_pause: float) -> None:
        self._url = url
        self._secret = app_secret
        self._faults = faults
        self._retry_pause = retry_pause
        self._endpoint = Endpoint(url, {"User-Agent": "facebookexternalua"})
        self._stopped = False
        self._lanes: dict[str, list[Notice]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def waiting(self) -> int:
        """Return how many notices were not yet taken."""
        return sum(map(len, self._lanes.values()))

    async def stop(self) -> None:
        """End the tasks and drop what waits: the history knows what was not taken."""
        self._stopped = True
        await end_tasks(*self._tasks.values())
        await self._endpoint.close()

    def post(self, notice: Notice) -> None:
        """Queue a notice, unless the end has come."""
        if self._stopped:
            return
        lane = "batch" if self._faults.batch > 1 else notice.lane
        self._lanes.setdefault(lane, []).append(notice)
        if lane not in self._tasks:
            self._tasks[lane] = asyncio.create_task(self._run(lane), name=f"webhooks {lane}")

    async def _run(self, lane: str) -> None:
        queue = self._lanes[lane]
        while queue:
            await asyncio.sleep(queue[0].pause)
            if queue[0].is_status and self._faults.hold_statuses:
                await asyncio.sleep(HOLD_PAUSE)
                continue
            if self._faults.shuffle:
                random.shuffle(queue)
            notices = queue[: self._faults.batch]
            await self._deliver(notices)
            del queue[: len(notices)]
        del self._lanes[lane], self._tasks[lane]

    async def _deliver(self, notices: list[Notice]) -> None:
        body = orjson.dumps(envelope([notice.value() for notice in notices]))
        copies = self._faults.duplicate
        while True:
            answers = await asyncio.gather(*(self._is_taken(body) for _ in range(copies)))
            copies = answers.count(False)
            if not copies:
                break
            await asyncio.sleep(self._retry_pause)
        for notice in notices:
            notice.taken()

    async def _is_taken(self, body: bytes) -> bool:
        signed = {"X-Hub-Signature-256": sign(body, self._secret)}
        try:
            answer = await self._endpoint.post("", body, ANSWER_SECONDS, headers=signed)
        except (NotSent, NoAnswer) as error:
            log.debug("webhook %s away: %s", self._url, error)
            return False
        return answer.status == 200


def new_message_id() -> str:
    """Return an id in Meta's form: `wamid.` and base64."""
    return "wamid." + base64.b64encode(b"\x1c\x18" + secrets.token_bytes(28)).decode()


def envelope(values: Sequence[JSON]) -> JSON:
    """Return a webhook body that holds all `values`, a change each."""
    changes = [{"value": value, "field": "messages"} for value in values]
    return {"object": "whatsapp_business_account", "entry": [{"id": BUSINESS_ID, "changes": changes}]}


def message_value(number_id: str, person: SimulatedPerson, message: Mapping[str, JSON]) -> JSON:
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
        item["context"] = {"from": BUSINESS_NUMBER, "id": message["quoted"]}
    if kind == "unsupported":
        item["errors"] = [status_error(131051)]
    else:
        item[kind] = message["content"]
    return _value(number_id, person) | {"messages": [item]}


def status_value(
    number_id: str, person: SimulatedPerson, message: Mapping[str, JSON], status: str, at: float
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
    return _value(number_id, person) | {"statuses": [item]}


def inbound_content(message: Mapping[str, JSON], media: Mapping[str, JSON]) -> tuple[str, JSON]:
    """Return Meta's type and block for a person's message on the page, e.g. `{"type": "text", "text": "hi"}`.

    `media` is the id, mime_type and sha256 of the stored file, if the kind has one. Raise RecadoError.
    """
    kind = message.get("type", "text")
    try:
        match kind:
            case "voice":
                return "audio", {**media, "voice": True}
            case "text":
                return "text", {"body": message["text"]}
            case "button" | "list":
                return "interactive", {"type": f"{kind}_reply", f"{kind}_reply": message["reply"]}
            case "reaction":
                emoji = {"emoji": message["reaction"]["emoji"]} if message["reaction"].get("emoji") else {}
                return "reaction", {"message_id": message["reaction"]["message_id"], **emoji}
            case "location" | "contacts":
                return kind, message[kind]
            case "edit":
                original = message["original"]
                new = {"context": {"id": original}, "type": "text", "text": {"body": message["text"]}}
                return "edit", {"original_message_id": original, "message": new}
            case "revoke":
                return "revoke", {"original_message_id": message["original"]}
            case "unsupported":
                return "unsupported", {}
            case str() if kind in MEDIA_KINDS and media:
                extras = {key: message[key] for key in ("caption", "filename") if message.get(key)}
                return kind, {**media, **extras}
        raise KeyError("data")
    except KeyError as part:
        raise RecadoError(f"the type {kind!r} is not one of the simulator's, or lacks {part}") from None


def _value(number_id: str, person: SimulatedPerson) -> dict[str, JSON]:
    profile = {"name": person.name} | ({"username": person.username} if person.username else {})
    contact: dict[str, JSON] = {"profile": profile, "user_id": person.user_id}
    if person.phone:
        contact["wa_id"] = person.phone
    return {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": BUSINESS_NUMBER, "phone_number_id": number_id},
        "contacts": [contact],
    }
