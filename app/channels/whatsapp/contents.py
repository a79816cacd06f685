"""Contents of messages, kind by kind: words, file, the quoted message, and what a kind says beyond these."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from app.channels.whatsapp.values import NAME_LIMIT, TEXT_LIMIT, bounded, identifier, text
from app.messages import JSON, SAYS, Attachment, Inbound, Sender, mapping

Fields = dict[str, Any]  # of an `Inbound`

_KIND_LIMIT = 64


def read_content(item: dict[str, JSON]) -> Inbound:
    """Return one message object without its id and its sender.

    A kind of ours whose block is missing or broken becomes "unsupported", so that the person gets an
    honest answer.
    """
    kind = text(item.get("type"), _KIND_LIMIT).strip() or next(
        (one for one in _READERS if one in item), "unknown"
    )
    fields = _fields(kind, item.get(kind))
    if fields is None:
        kind, fields = "unsupported", {}
    if item.get("referral"):
        fields["details"] = {**fields.get("details", {}), "referral": bounded(item["referral"])}
    context = mapping(item.get("context"))
    forwarded = context.get("forwarded") is True or context.get("frequently_forwarded") is True
    content = Inbound("", Sender(), kind, quoted=identifier(context.get("id")), forwarded=forwarded)
    return replace(content, **fields)


def _fields(kind: str, block: JSON) -> Fields | None:
    """Return what a kind's own block says; None if it is a kind of ours whose block is broken."""
    if kind == "contacts":
        return {"details": {"contacts": bounded(block)}} if isinstance(block, list) else None
    reader = _READERS.get(kind)
    if reader is None or (kind == "system" and block is None):
        return {}
    return reader(block) if isinstance(block, dict) else None


def _media(block: dict[str, JSON]) -> Fields:
    names = {name: text(block.get(name), NAME_LIMIT) for name in ("mime_type", "filename", "sha256")}
    media_id = identifier(block.get("id"))  # Meta's `url` is worth five minutes and a token: the id lasts
    attachment = Attachment(media_id, **names, voice=block.get("voice") is True)
    return {"text": text(block.get("caption")), "attachment": attachment if media_id else None}


def _interactive(block: dict[str, JSON]) -> Fields:
    form = text(block.get("type"), _KIND_LIMIT) or next((key for key in block if key.endswith("_reply")), "")
    reply = mapping(block.get(form))
    if form == "nfm_reply":
        return _form_reply(reply)
    if form not in {"button_reply", "list_reply"}:
        return {}
    button = identifier(reply.get("id"))
    said = button.removeprefix(SAYS) if button.startswith(SAYS) else reply.get("title")
    return {"text": text(said), "button": button}


def _form_reply(reply: dict[str, JSON]) -> Fields:
    """Read a completed form (a Flow), whose answers come as JSON inside a string."""
    answers = reply.get("response_json")
    if isinstance(answers, str) and len(answers) <= TEXT_LIMIT:
        try:
            answers = orjson.loads(answers)
        except orjson.JSONDecodeError:
            answers = text(answers)
    details = {"type": "nfm_reply", "response": bounded(answers)}
    return {"text": text(reply.get("body") or reply.get("name")), "details": details}


def _edit(block: dict[str, JSON]) -> Fields:
    """Read the new words of an edited message; `details` has its new kind."""
    message = {key: value for key, value in mapping(block.get("message")).items() if key != "edit"}
    if message.get("type") == "edit":  # an edit of an edit does not exist
        del message["type"]
    inner = read_content(message)
    return {
        "text": inner.text,
        "quoted": identifier(block.get("original_message_id")),
        "forwarded": inner.forwarded,
        "attachment": inner.attachment,
        "details": {**inner.details, "type": inner.kind},
    }


_READERS: dict[str, Callable[[dict[str, JSON]], Fields | None]] = {
    "text": lambda block: {"text": text(block["body"])} if isinstance(block.get("body"), str) else None,
    **dict.fromkeys(("image", "video", "audio", "document", "sticker"), _media),
    "voice": lambda block: _media({**block, "voice": True}),
    **dict.fromkeys(("location", "contacts", "referral"), lambda block: {"details": bounded(block)}),
    # without an emoji the reaction was taken back
    "reaction": lambda block: {
        "text": text(block.get("emoji"), _KIND_LIMIT),
        "quoted": identifier(block.get("message_id")),
    },
    "interactive": _interactive,
    "button": lambda block: {"text": text(block.get("text")), "button": identifier(block.get("payload"))},
    "order": lambda block: {"text": text(block.get("text")), "details": bounded(block)},
    "edit": _edit,
    "revoke": lambda block: {"quoted": identifier(block.get("original_message_id"))},
    "system": lambda block: {"text": text(block.get("body"))},
}
