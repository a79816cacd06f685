"""Contents of messages, kind by kind: words, file, the quoted message, and the rest of the block."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from app.channels.whatsapp.values import NAME_LIMIT, TEXT_LIMIT, bounded, identifier, mapping, text
from app.messages import JSON, SAYS, Attachment, Inbound, Sender

Fields = dict[str, Any]  # of an `Inbound`

_KIND_LIMIT = 64


def read_content(item: dict[str, JSON], errors_beside: JSON = None) -> Inbound:
    """Return one message object without its id and its sender.

    A kind of ours whose block is missing or broken becomes "unsupported", so that the person gets an
    honest answer; `errors_beside` are the errors of the webhook value, which then say why.
    """
    kind = text(item.get("type"), _KIND_LIMIT).strip() or next(
        (one for one in _READERS if one in item), "unknown"
    )
    fields = _fields(kind, item.get(kind))
    if fields is None:
        kind, fields = "unsupported", {"details": {"type": kind}}
    context = mapping(item.get("context"))
    beside = {
        "errors": item.get("errors") or (errors_beside if kind == "unsupported" else None),
        "referral": item.get("referral"),
        "identity": item.get("identity"),
        "referred_product": context.get("referred_product"),
    }
    details = fields.pop("details", {}) | {key: bounded(value) for key, value in beside.items() if value}
    quoted = fields.pop("quoted", "") or identifier(context.get("id"))
    forwarded = context.get("forwarded") is True or context.get("frequently_forwarded") is True
    content = Inbound("", Sender(), kind, quoted=quoted, forwarded=forwarded, details=details)
    return replace(content, **fields)


def _fields(kind: str, block: JSON) -> Fields | None:
    """Return what a kind's own block says; None if it is a kind of ours whose block is broken."""
    if kind == "contacts":
        return {"details": {"contacts": bounded(block)}} if isinstance(block, list) else None
    if kind == "system" or kind not in _READERS:
        block = mapping(block)
    reader = _READERS.get(kind, _details)
    return reader(block) if isinstance(block, dict) else None


def _words(value: JSON, rest: dict[str, JSON]) -> Fields:
    """Return a text, and as details the rest of its block, which also say if the text was cut."""
    is_cut = isinstance(value, str) and len(value) > TEXT_LIMIT
    return {"text": text(value), "details": rest | {"cut": True} if is_cut else rest}


def _rest(block: dict[str, JSON], *taken: str) -> dict[str, JSON]:
    rest = bounded({key: value for key, value in block.items() if key not in taken})
    return rest if isinstance(rest, dict) else {}


def _details(block: dict[str, JSON]) -> Fields:
    return {"details": _rest(block)}


def _text(block: dict[str, JSON]) -> Fields | None:
    return _body(block) if isinstance(block.get("body"), str) else None


def _body(block: dict[str, JSON]) -> Fields:
    return _words(block.get("body"), _rest(block, "body"))


def _media(block: dict[str, JSON]) -> Fields:
    # Meta's `url` is worth five minutes and a token: the id is what lasts.
    rest = _rest(block, "id", "mime_type", "sha256", "filename", "caption", "voice", "url")
    names = {name: text(block.get(name), NAME_LIMIT) for name in ("mime_type", "filename", "sha256")}
    media_id = identifier(block.get("id"))
    attachment = Attachment(media_id, **names, voice=block.get("voice") is True)
    return {**_words(block.get("caption"), rest), "attachment": attachment if media_id else None}


def _voice(block: dict[str, JSON]) -> Fields:
    return _media({**block, "voice": True})


def _reaction(block: dict[str, JSON]) -> Fields:
    """Read the emoji ("" if the reaction was taken back) and the message reacted to."""
    return {"text": text(block.get("emoji"), _KIND_LIMIT), "quoted": identifier(block.get("message_id"))}


def _interactive(block: dict[str, JSON]) -> Fields:
    form = text(block.get("type"), _KIND_LIMIT) or next((key for key in block if key.endswith("_reply")), "")
    reply = mapping(block.get(form))
    if form == "nfm_reply":
        return _form_reply(reply)
    if form not in {"button_reply", "list_reply"}:
        return _details(block)
    button = identifier(reply.get("id"))
    said = button.removeprefix(SAYS) if button.startswith(SAYS) else reply.get("title")
    return {**_words(said, {"type": form, **_rest(reply, "id", "title")}), "button": button}


def _form_reply(reply: dict[str, JSON]) -> Fields:
    """Read a completed form (a Flow), whose answers come as JSON inside a string."""
    answers = reply.get("response_json")
    if isinstance(answers, str) and len(answers) <= TEXT_LIMIT:
        try:
            answers = orjson.loads(answers)
        except orjson.JSONDecodeError:
            answers = text(answers)
    details = {"type": "nfm_reply", "response": bounded(answers), **_rest(reply, "response_json", "body")}
    return _words(reply.get("body") or reply.get("name"), details)


def _button(block: dict[str, JSON]) -> Fields:
    words = _words(block.get("text"), _rest(block, "text", "payload"))
    return {**words, "button": identifier(block.get("payload"))}


def _order(block: dict[str, JSON]) -> Fields:
    return _words(block.get("text"), _rest(block, "text"))


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


def _revoke(block: dict[str, JSON]) -> Fields:
    return {"quoted": identifier(block.get("original_message_id"))}


_READERS: dict[str, Callable[[dict[str, JSON]], Fields | None]] = {
    "text": _text,
    **dict.fromkeys(("image", "video", "audio", "document", "sticker"), _media),
    "voice": _voice,
    "location": _details,
    "contacts": _details,
    "reaction": _reaction,
    "interactive": _interactive,
    "button": _button,
    "order": _order,
    "edit": _edit,
    "revoke": _revoke,
    "system": _body,
}
