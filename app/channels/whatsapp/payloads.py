"""Webhook bodies as plain data: messages and their contents, statuses, changes of ids, and senders."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from app.messages import (
    JSON,
    SAYS,
    AliasChange,
    Attachment,
    Echo,
    GraphError,
    Inbound,
    Pricing,
    Sender,
    Status,
    ThreadControl,
    Unreadable,
    Webhook,
    mapping,
)
from app.phones import digits

NOTICE_FIELDS = frozenset(  # that need no answer
    """
    account_alerts account_offboarded account_reconnected account_review_update account_settings_update
    account_update automatic_events business_capability_update business_status_update
    business_username_updates calls contacts flows group_lifecycle_update group_participants_update
    group_settings_update group_status_update history message_template_components_update
    message_template_quality_update message_template_status_update partner_solutions
    payment_configuration_update phone_number_name_update phone_number_quality_update security
    smb_app_state_sync template_category_update template_correct_category_detection tracking_events
    user_marketing_preferences user_preferences
    """.split()  # noqa: SIM905 - thirty lines otherwise
)

# What the business wrote from its phone; what another handler of the number sends and receives.
_ECHO_FIELDS = frozenset({"smb_message_echoes", "message_echoes", "standby"})
_BESIDE_MESSAGES = ("errors", "user_actions", "contacts", "groups")
_NOT_WRITTEN = frozenset({"reaction", "revoke", "system"})  # kinds of echoes that answer nobody
_CHANGE_TYPES = frozenset({"user_changed_number", "user_changed_user_id"})
_KIND_LIMIT = 64
_ERRORS_LIMIT = 20
_ERROR_TEXT_LIMIT = 1_000

TEXT_LIMIT = 100_000
NAME_LIMIT = 256
ID_LIMIT = 512
DEPTH_LIMIT = 24
ITEMS_LIMIT = 5_000

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_PHONE = re.compile(r"\+?[0-9][0-9 ().-]{0,38}", re.ASCII)
_USER_ID = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII)
_LATEST = 1e11  # seconds, in the year 5138: a larger timestamp counts milliseconds

Fields = dict[str, Any]  # of an `Inbound`


def parse_webhook(body: JSON) -> list[Inbound | Status]:
    """Return the messages of a body, then its statuses. Takes any JSON value, or JSON text; never raises."""
    if isinstance(body, bytes | bytearray | memoryview | str):
        try:
            body = decode(body if isinstance(body, str) else bytes(body))
        except ValueError:
            return []
    found = read_webhook(body)
    return [*found.messages, *found.statuses]


def read_webhook(body: JSON) -> Webhook:
    """Return everything in a body. Never raises: a part that cannot be understood is `unreadable`."""
    found = Webhook()
    for entry in _parts(mapping(body).get("entry"), body, "a body without entries", found):
        for change in _parts(entry.get("changes"), entry, "an entry without changes", found):
            _read_change(change, found)
    return found


def _parts(block: JSON, whole: JSON, fault: str, found: Webhook) -> Iterator[dict[str, JSON]]:
    """Yield the objects of a list; set anything else aside."""
    if not isinstance(block, list) or not block:
        _set_aside(found, fault, whole)
        return
    for part in block:
        if isinstance(part, dict):
            yield part
        else:
            _set_aside(found, f"{fault}: not an object", part)


def _listed(value: dict[str, JSON], name: str, found: Webhook) -> list[dict[str, JSON]]:
    """Return the objects of a list that may be missing or empty; set anything else aside."""
    block = value.get(name)
    return [] if block in (None, []) else list(_parts(block, value, f"{name} that are no list", found))


def _read_change(change: dict[str, JSON], found: Webhook) -> None:
    name, value = change.get("field", "messages"), change.get("value")
    if not isinstance(value, dict):
        _set_aside(found, "a change without a value", change)
        return
    name = name if isinstance(name, str) else ""
    if name == "user_id_update":
        _read_user_id_update(value, found)
        return
    if name == "messaging_handovers":
        _read_handover(value, found)
        return
    _read_statuses(value, found)
    if name == "messages":
        _read_messages(value, found)
        is_empty = value.get("messages") is None and value.get("statuses") is None
        if is_empty and not any(map(value.get, _BESIDE_MESSAGES)):
            _set_aside(found, "a value without messages or statuses", value)
    elif name in _ECHO_FIELDS:
        _read_echoes(value, found)
        _read_messages(value, found, standby=True)
    elif name not in NOTICE_FIELDS and ("messages" in value or not isinstance(value.get("statuses"), list)):
        _set_aside(found, f"an unknown webhook field: {text(name, _KIND_LIMIT)!r}", change)


def _read_messages(value: dict[str, JSON], found: Webhook, *, standby: bool = False) -> None:
    items = _listed(value, "messages", found)
    senders = _completed([_sender(item) for item in items], value.get("contacts"))
    for item, sender in zip(items, senders, strict=True):
        content, change, wamid = read_content(item), _system_change(item), identifier(item.get("id"))
        if change and not (sender.phone or sender.user_id):
            sender = change.previous
        if not wamid or not (sender.phone or sender.user_id):
            _set_aside(found, "a message without an id" if not wamid else "a message without a sender", item)
            continue
        at, group = seconds(item.get("timestamp")), identifier(item.get("group_id"))
        content = replace(
            content, id=wamid, sender=sender, at=at, group=group, change=change, standby=standby
        )
        found.messages.append(content)
        if change:
            found.changes.append(change)
        # A system message names the old and the new person together: nothing there is a pair.
        elif content.kind != "system" and sender.phone and sender.user_id and sender not in found.pairs[-64:]:
            found.pairs.append(sender)


def _system_change(item: dict[str, JSON]) -> AliasChange | None:
    """Return a number or user id that became another one, as system messages tell it (Meta, 2026-08)."""
    system, own = mapping(item.get("system")), _sender(item)
    if item.get("type") != "system" or text(system.get("type"), _KIND_LIMIT) not in _CHANGE_TYPES:
        return None
    current = Sender(phone(system.get("wa_id")), user_id(system.get("user_id")))
    former = user_id(system.get("previous_user_id"))
    if not former and own.user_id != current.user_id and current.user_id:
        former = own.user_id
    return _change(Sender(own.phone if own.phone != current.phone else "", former), current)


def _read_user_id_update(value: dict[str, JSON], found: Webhook) -> None:
    changes = []
    for item in [value, *objects(value.get("user_id_update"))]:
        ids, number = mapping(item.get("user_id")), phone(item.get("wa_id"))
        previous, current = (Sender(number, user_id(ids.get(name))) for name in ("previous", "current"))
        change = _change(previous, current)
        if change and previous != current:
            changes.append(change)
    if changes:
        found.changes.extend(changes)
    else:
        _set_aside(found, "a user id update without ids", value)


def _change(previous: Sender, current: Sender) -> AliasChange | None:
    if previous == Sender() or current == Sender():
        return None
    return AliasChange(previous, current)


def _read_echoes(value: dict[str, JSON], found: Webhook) -> None:
    own_number = phone(mapping(value.get("metadata")).get("display_phone_number"))
    items = _listed(value, "message_echoes", found)
    people = _completed([_addressee(item, own_number) for item in items], value.get("contacts"))
    for item, to in zip(items, people, strict=True):
        wamid = identifier(item.get("id"))
        if not wamid or not (to.phone or to.user_id):
            _set_aside(found, "an echo without an id or an addressee", item)
            continue
        content = read_content(item)
        if content.kind not in _NOT_WRITTEN:
            outbox_id = identifier(item.get("biz_opaque_callback_data"))
            at = seconds(item.get("timestamp"))
            found.echoes.append(Echo(wamid, to, content.kind, at, content.text, outbox_id))


def _read_handover(value: dict[str, JSON], found: Webhook) -> None:
    """Read who answers a person from now on; "control_passed" means us (Meta, Business Agent)."""
    sender = mapping(value.get("sender"))
    person = Sender(phone=phone(sender.get("phone_number")), user_id=user_id(sender.get("user_id")))
    ours, theirs = "control_passed" in value, "control_taken" in value
    if (person.phone or person.user_id) and (ours or theirs):
        found.controls.append(ThreadControl(person, ours))
    else:
        _set_aside(found, "a handover without a person or a new handler", value)


def _read_statuses(value: dict[str, JSON], found: Webhook) -> None:
    for item in _listed(value, "statuses", found):
        wamid, state = identifier(item.get("id")), item.get("status")
        if not wamid or not isinstance(state, str) or not state:
            _set_aside(found, "a status without an id or a state", item)
            continue
        found.statuses.append(
            Status(
                id=wamid,
                status=text(state, _KIND_LIMIT).lower(),
                at=seconds(item.get("timestamp")),
                outbox_id=identifier(item.get("biz_opaque_callback_data")),
                errors=tuple(_errors(item.get("errors"))),
                pricing=_pricing(mapping(item.get("pricing"))),
            )
        )


def _pricing(block: dict[str, JSON]) -> Pricing | None:
    """Read what the message is billed as."""
    category, kind = (text(block.get(name), _KIND_LIMIT).lower() for name in ("category", "type"))
    return Pricing(category, kind or "regular") if category else None


def _errors(block: JSON) -> Iterator[GraphError]:
    for error in list(objects(block))[:_ERRORS_LIMIT]:
        code, said = text(error.get("code"), 12), error.get("message")
        details = mapping(error.get("error_data")).get("details")
        yield GraphError(
            code=int(code) if code.isascii() and code.isdigit() else 0,
            title=text(error.get("title") or said, _ERROR_TEXT_LIMIT),
            detail=text(details or said, _ERROR_TEXT_LIMIT),
        )


def _set_aside(found: Webhook, reason: str, part: JSON) -> None:
    found.unreadable.append(Unreadable(reason, bounded(part)))


def _completed(senders: Sequence[Sender], block: JSON) -> list[Sender]:
    """Return the sender fields of messages, each completed by the contact of the same person.

    `block`: the contacts of the webhook value. A lone contact is a lone sender's.
    """
    contacts = [_contact(item) for item in objects(block)] if isinstance(block, list) else []
    is_lone = len(contacts) == 1 and len({(one.phone, one.user_id) for one in senders}) <= 1
    by_id: dict[str, list[Sender]] = {}
    for contact in contacts:
        for id in filter(None, (contact.phone, contact.user_id)):
            by_id.setdefault(id, []).append(contact)

    def completed(own: Sender) -> Sender:
        named = contacts if is_lone else [*by_id.get(own.phone, [])[:8], *by_id.get(own.user_id, [])[:8]]
        fitting = [contact for contact in named if not _contradict(own, contact)]
        if not fitting or any(_contradict(fitting[0], other) for other in fitting):
            return own
        contact = fitting[0]
        return Sender(own.phone or contact.phone, own.user_id or contact.user_id, own.name or contact.name)

    return [completed(own) for own in senders]


def _contradict(one: Sender, other: Sender) -> bool:
    pairs = ((one.phone, other.phone), (one.user_id, other.user_id))
    return any(mine and theirs and mine != theirs for mine, theirs in pairs)


def _sender(message: dict[str, JSON]) -> Sender:
    """Return the sender fields of a message itself. The parent id stands in if nothing else is known."""
    number, own = phone(message.get("from")), user_id(message.get("from_user_id"))
    return Sender(number, own or ("" if number else user_id(message.get("from_parent_user_id"))))


def _addressee(echo: dict[str, JSON], own_number: str) -> Sender:
    """Return the person to whom an echo was written; some echoes of edits have `from` and `to` swapped."""
    to = phone(echo.get("to"))
    return Sender(phone(echo.get("from")) if to and to == own_number else to, user_id(echo.get("to_user_id")))


def _contact(item: dict[str, JSON]) -> Sender:
    name = text(mapping(item.get("profile")).get("name"), NAME_LIMIT).strip()
    return Sender(phone(item.get("wa_id")), user_id(item.get("user_id")), name)


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
    if form == "nfm_reply":  # a completed form (a Flow), whose answers come as JSON inside a string
        details = {"type": form, "response": text(reply.get("response_json"))}
        return {"text": text(reply.get("body") or reply.get("name")), "details": details}
    if form not in {"button_reply", "list_reply"}:
        return {}
    button = identifier(reply.get("id"))
    said = button.removeprefix(SAYS) if button.startswith(SAYS) else reply.get("title")
    return {"text": text(said), "button": button}


def _edit(block: dict[str, JSON]) -> Fields:
    """Read the new words of an edited message; `details` has its new kind."""
    message = mapping(block.get("message"))
    inner = read_content({} if "edit" in message else message)  # an edit of an edit does not exist
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


def decode(body: bytes | str) -> JSON:
    """Parse JSON text. Raise ValueError if it is none; lone surrogates, which orjson refuses, are taken."""
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError("JSON is nested too deeply") from error


def objects(value: JSON) -> Iterator[dict[str, JSON]]:
    """Yield the objects of a list, or the one object itself."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield item


def text(value: JSON, limit: int = TEXT_LIMIT) -> str:
    """Return a string that can be stored: a number as its digits, anything else as ""."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return ""
    return _UNSTORABLE.sub("", value)[:limit]


def identifier(value: JSON) -> str:
    """Return an id, "" if there is none or it is longer than any that Meta gives."""
    found = text(value, ID_LIMIT + 1).strip()
    return found if len(found) <= ID_LIMIT else ""


def phone(value: JSON) -> str:
    """Return the digits of a phone number as they came, "" for anything else."""
    found = text(value, 64).strip()
    return digits(found) if _PHONE.fullmatch(found) else ""


def user_id(value: JSON) -> str:
    """Return a business-scoped id, "" for anything that has not its form."""
    return value if isinstance(value, str) and _USER_ID.fullmatch(value) else ""


def seconds(value: JSON) -> float:
    """Return Unix seconds from a timestamp in seconds or milliseconds; 0 if it is neither."""
    try:
        found = float(text(value, 32))
    except ValueError:
        return 0.0
    found = found / 1000 if found > _LATEST else found
    return found if math.isfinite(found) and 0 < found < _LATEST else 0.0


def bounded(value: JSON, depth: int = DEPTH_LIMIT) -> JSON:
    """Return a copy that any JSON writer and any database takes: strings cleaned, depth and sizes cut."""
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth <= 0:
        return None
    if isinstance(value, dict):
        pairs = list(value.items())[:ITEMS_LIMIT]
        return {text(key, NAME_LIMIT): bounded(item, depth - 1) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [bounded(item, depth - 1) for item in value[:ITEMS_LIMIT]]
    return None
