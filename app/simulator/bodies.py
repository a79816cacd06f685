"""Webhook bodies as Meta builds and signs them in 2026: business-scoped ids beside or instead of phones."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.messages import JSON
from app.simulator.people import SimulatedPerson
from app.simulator.refusals import status_error

MEDIA_KINDS = frozenset({"image", "video", "audio", "document", "sticker"})


@dataclass(frozen=True, slots=True)
class Account:
    """The business that the stand-in plays: its ids and number as webhooks name them."""

    phone_number_id: str
    business_id: str = "100000000000001"
    display_phone_number: str = "15550100100"


def new_message_id() -> str:
    """An id of the form Meta gives: `wamid.` and base64."""
    return "wamid." + base64.b64encode(b"\x1c\x18" + secrets.token_bytes(28)).decode()


def signature(body: bytes, app_secret: str) -> str:
    """The value of `X-Hub-Signature-256`."""
    return "sha256=" + hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()


def envelope(account: Account, values: Sequence[JSON]) -> JSON:
    """One webhook body that holds all `values`, a change each."""
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
    """The `value` that brings one message of a person; `message` as the history keeps it."""
    kind = message["type"]
    item: dict[str, JSON] = {
        **({"from": person.phone} if person.phone else {}),
        "from_user_id": person.user_id,
        "id": message["id"],
        "timestamp": str(int(message["at"])),
        "type": kind,
    }
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
    """The `value` that tells what became of a message sent to a person."""
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
        item["pricing"] = {"billable": False, "pricing_model": "PMP", "category": "service"}
    return _value(account, person) | {"statuses": [item]}


def inbound_content(message: Mapping[str, JSON], media: Mapping[str, JSON] | None) -> tuple[str, JSON]:
    """Meta's type and block for what a person does on the page, e.g. `{"type": "text", "text": "hi"}`.

    `media` is the stored file's id, mime_type and sha256 where the kind has one. Raises ValueError.
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


def said(kind: str, content: JSON) -> dict[str, JSON]:
    """What a person did on the page, from Meta's type and block: `inbound_content` the other way round."""
    if kind == "text":
        return {"type": "text", "text": content["body"]}
    if kind == "interactive":
        form = content["type"].removesuffix("_reply")
        return {"type": form, "reply": content[content["type"]]}
    if kind in MEDIA_KINDS:
        extras = {key: content[key] for key in ("mime_type", "caption", "filename") if content.get(key)}
        return {"type": "voice" if content.get("voice") else kind, **extras}
    if kind == "edit":
        text = content["message"]["text"]["body"]
        return {"type": "edit", "text": text, "original": content["original_message_id"]}
    if kind == "revoke":
        return {"type": "revoke", "original": content["original_message_id"]}
    return {"type": kind} | ({kind: content} if content else {})


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
