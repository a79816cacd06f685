"""Contents of messages, kind by kind: words, file, the quoted message, and the rest of the block."""

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from app.channels.whatsapp.values import NAME_LIMIT, TEXT_LIMIT, bounded, identifier, mapping, text
from app.messages import JSON, SAYS, Attachment

_KIND_LIMIT = 64


@dataclass(slots=True)
class Content:
    """A message without its sender and ids; the fields are those of `Inbound`."""

    kind: str
    text: str = ""
    quoted: str = ""
    button: str = ""
    forwarded: bool = False
    attachment: Attachment | None = None
    details: dict[str, JSON] = field(default_factory=dict)


def read_content(item: dict[str, JSON], errors_beside: JSON = None) -> Content:
    """Return the content of one message object.

    A kind of ours whose block is missing or broken becomes "unsupported", so that the person gets an
    honest answer; `errors_beside` are the errors of the webhook value, which then say why.
    """
    kind = _kind(item)
    block, reader = item.get(kind), _READERS.get(kind)
    if reader is None:
        content = Content(kind, details=_rest(mapping(block)))
    else:
        content = reader(kind, block) or Content("unsupported", details={"type": kind})
    errors = item.get("errors") or (errors_beside if content.kind == "unsupported" else None)
    for key, value in (
        ("errors", errors),
        ("referral", item.get("referral")),
        ("identity", item.get("identity")),
    ):
        if value:
            content.details[key] = bounded(value)
    context = mapping(item.get("context"))
    if context.get("referred_product"):
        content.details["referred_product"] = bounded(context["referred_product"])
    content.quoted = content.quoted or identifier(context.get("id"))
    content.forwarded |= context.get("forwarded") is True or context.get("frequently_forwarded") is True
    return content


def _kind(item: dict[str, JSON]) -> str:
    named = text(item.get("type"), _KIND_LIMIT).strip()
    return named or next((kind for kind in _READERS if kind in item), "unknown")


def _words(value: JSON, details: dict[str, JSON]) -> str:
    """Return a text, cut at the limit, which `details` then says."""
    if isinstance(value, str) and len(value) > TEXT_LIMIT:
        details["cut"] = True
    return text(value)


def _rest(block: dict[str, JSON], *taken: str) -> dict[str, JSON]:
    rest = bounded({key: value for key, value in block.items() if key not in taken})
    return rest if isinstance(rest, dict) else {}


def _text(kind: str, block: JSON) -> Content | None:
    body = mapping(block).get("body")
    if not isinstance(body, str):
        return None
    details = _rest(mapping(block), "body")
    return Content(kind, text=_words(body, details), details=details)


def _media(kind: str, block: JSON) -> Content | None:
    if not isinstance(block, dict):
        return None
    # Meta's `url` is worth five minutes and a token: the id is what lasts.
    details = _rest(block, "id", "mime_type", "sha256", "filename", "caption", "voice", "url")
    media_id = identifier(block.get("id"))
    attachment = Attachment(
        media_id=media_id,
        mime_type=text(block.get("mime_type"), NAME_LIMIT),
        filename=text(block.get("filename"), NAME_LIMIT),
        sha256=text(block.get("sha256"), NAME_LIMIT),
        voice=block.get("voice") is True or kind == "voice",
    )
    words = _words(block.get("caption"), details)
    return Content(kind, text=words, attachment=attachment if media_id else None, details=details)


def _reaction(kind: str, block: JSON) -> Content | None:
    """Read the emoji ("" if the reaction was taken back) and the message reacted to."""
    if not isinstance(block, dict):
        return None
    return Content(
        kind, text=text(block.get("emoji"), _KIND_LIMIT), quoted=identifier(block.get("message_id"))
    )


def _interactive(kind: str, block: JSON) -> Content | None:
    if not isinstance(block, dict):
        return None
    form = text(block.get("type"), _KIND_LIMIT) or next((key for key in block if key.endswith("_reply")), "")
    reply = mapping(block.get(form))
    if form == "nfm_reply":
        return _form_reply(kind, reply)
    if form not in {"button_reply", "list_reply"}:
        return Content(kind, details=_rest(block))
    details = {"type": form, **_rest(reply, "id", "title")}
    button = identifier(reply.get("id"))
    said = button.removeprefix(SAYS) if button.startswith(SAYS) else reply.get("title")
    return Content(kind, text=_words(said, details), button=button, details=details)


def _form_reply(kind: str, reply: dict[str, JSON]) -> Content:
    """Read a completed form (a Flow), whose answers come as JSON inside a string."""
    answers = reply.get("response_json")
    if isinstance(answers, str) and len(answers) <= TEXT_LIMIT:
        try:
            answers = orjson.loads(answers)
        except orjson.JSONDecodeError:
            answers = text(answers)
    details: dict[str, JSON] = {"type": "nfm_reply", "response": bounded(answers)}
    details |= _rest(reply, "response_json", "body")
    return Content(kind, text=_words(reply.get("body") or reply.get("name"), details), details=details)


def _button(kind: str, block: JSON) -> Content | None:
    if not isinstance(block, dict):
        return None
    details = _rest(block, "text", "payload")
    return Content(
        kind,
        text=_words(block.get("text"), details),
        button=identifier(block.get("payload")),
        details=details,
    )


def _object(kind: str, block: JSON) -> Content | None:
    return Content(kind, details=_rest(block)) if isinstance(block, dict) else None


def _order(kind: str, block: JSON) -> Content | None:
    if not isinstance(block, dict):
        return None
    details = _rest(block, "text")
    return Content(kind, text=_words(block.get("text"), details), details=details)


def _contacts(kind: str, block: JSON) -> Content | None:
    return Content(kind, details={"contacts": bounded(block)}) if isinstance(block, list) else None


def _edit(kind: str, block: JSON) -> Content | None:
    """Read the new words of an edited message; `details` has its new kind."""
    if not isinstance(block, dict):
        return None
    message = mapping(block.get("message"))
    inner = read_content(
        {key: value for key, value in message.items() if key not in {"edit", "type"}} | _typed(message)
    )
    details = {**inner.details, "type": inner.kind}
    return Content(
        kind,
        text=inner.text,
        quoted=identifier(block.get("original_message_id")),
        forwarded=inner.forwarded,
        attachment=inner.attachment,
        details=details,
    )


def _typed(message: dict[str, JSON]) -> dict[str, JSON]:
    """Return the type of an edited message; an edit of an edit does not exist."""
    named = message.get("type")
    return {} if named is None or named == "edit" else {"type": named}


def _revoke(kind: str, block: JSON) -> Content | None:
    if not isinstance(block, dict):
        return None
    return Content(kind, quoted=identifier(block.get("original_message_id")))


def _system(kind: str, block: JSON) -> Content:
    details = _rest(mapping(block), "body")
    return Content(kind, text=_words(mapping(block).get("body"), details), details=details)


_READERS: dict[str, Callable[[str, JSON], Content | None]] = {
    "text": _text,
    **dict.fromkeys(("image", "video", "audio", "voice", "document", "sticker"), _media),
    "location": _object,
    "contacts": _contacts,
    "reaction": _reaction,
    "interactive": _interactive,
    "button": _button,
    "order": _order,
    "edit": _edit,
    "revoke": _revoke,
    "system": _system,
}
