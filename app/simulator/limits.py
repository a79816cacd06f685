"""What the Graph API accepts as a message: required parts and the true limits of each."""

from collections.abc import Callable
from typing import Final, TypeGuard

from app.messages import JSON
from app.simulator.refusals import Refusal

TEXT: Final = 4096
CAPTION: Final = 1024
INTERACTIVE_BODY: Final = 1024
HEADER: Final = 60
FOOTER: Final = 60
BUTTONS: Final = 3
BUTTON_TITLE: Final = 20
BUTTON_ID: Final = 256
LIST_BUTTON: Final = 20
LIST_ROWS: Final = 10
ROW_ID: Final = 200
ROW_TITLE: Final = 24
ROW_DESCRIPTION: Final = 72
SECTION_TITLE: Final = 24
CALLBACK_DATA: Final = 512

_INVALID = 100
_MISSING = 131008
_BAD_VALUE = 131009


def check(body: JSON) -> str:
    """The type of a message that would be accepted as far as its form goes; raises Refusal otherwise.

    Whether the recipient exists, the window is open and a media id is known is not asked here.
    """
    if not isinstance(body, dict):
        raise Refusal(_INVALID, "The request body must be a JSON object.")
    if body.get("messaging_product") != "whatsapp":
        raise Refusal(_INVALID, "The parameter messaging_product is required and must be 'whatsapp'.")
    if not _is_text(body.get("to")) and not _is_text(body.get("recipient")):
        raise Refusal(_INVALID, "The parameter to is required.")
    if body.get("recipient_type", "individual") != "individual":
        raise Refusal(_INVALID, "Param recipient_type must be 'individual'.")
    _check_callback_data(body.get("biz_opaque_callback_data", ""))
    _check_context(body.get("context"))
    kind = body.get("type", "text")
    if kind not in _CHECKS:
        raise Refusal(_INVALID, f"Param type must be one of {{{', '.join(sorted(_CHECKS)).upper()}}}.")
    block = body.get(kind)
    if block is None:
        raise Refusal(_MISSING, f"Required parameter is missing: {kind}")
    _CHECKS[kind](block)
    return str(kind)


def _check_callback_data(data: JSON) -> None:
    if not isinstance(data, str) or len(data) > CALLBACK_DATA:
        raise Refusal(_INVALID, f"Param biz_opaque_callback_data must be at most {CALLBACK_DATA} characters.")


def _check_context(context: JSON) -> None:
    if context is not None and not _is_text(_part(context, "context").get("message_id")):
        raise Refusal(_BAD_VALUE, "context.message_id must be the id of a message.")


def _check_text(block: JSON) -> None:
    text = _part(block, "text").get("body")
    if not _is_text(text):
        raise Refusal(_INVALID, "The parameter text['body'] is required.")
    if len(text) > TEXT:
        raise Refusal(_INVALID, f"Param text['body'] must be at most {TEXT} characters long.")


def _check_media(block: JSON) -> None:
    media = _part(block, "media")
    link = media.get("link")
    if _is_text(media.get("id")) == _is_text(link):
        raise Refusal(_INVALID, "Exactly one of id and link is required.")
    if _is_text(link) and not link.startswith(("https://", "http://")):
        raise Refusal(_INVALID, "Param link must be an http or https address.")
    _bounded(media, "caption", CAPTION, "Caption", required=False)


def _check_audio(block: JSON) -> None:
    if _part(block, "audio").get("caption") is not None:
        raise Refusal(_INVALID, "Unexpected key 'caption' on param 'audio'.")
    _check_media(block)


def _check_interactive(block: JSON) -> None:
    interactive = _part(block, "interactive")
    kind = interactive.get("type")
    if kind not in {"button", "list"}:
        raise Refusal(_BAD_VALUE, "interactive.type must be one of button, list here.")
    _bounded(_part(interactive.get("body"), "interactive.body"), "text", INTERACTIVE_BODY, "Body text")
    if interactive.get("footer") is not None:
        _bounded(_part(interactive["footer"], "interactive.footer"), "text", FOOTER, "Footer text")
    if interactive.get("header") is not None:
        header = _part(interactive["header"], "interactive.header")
        if header.get("type") == "text":
            _bounded(header, "text", HEADER, "Header text")
    action = _part(interactive.get("action"), "interactive.action")
    if kind == "button":
        _check_buttons(action)
    else:
        _check_list(action)


def _check_buttons(action: dict[str, JSON]) -> None:
    buttons = _items(action.get("buttons"), "buttons", 1, BUTTONS)
    replies = []
    for button in buttons:
        if button.get("type") != "reply":
            raise Refusal(_BAD_VALUE, "Button type must be 'reply'.")
        reply = _part(button.get("reply"), "reply")
        _bounded(reply, "title", BUTTON_TITLE, "Button title")
        _bounded(reply, "id", BUTTON_ID, "Button id")
        replies.append(reply)
    _distinct(replies, "id", "Button id")
    _distinct(replies, "title", "Button title")


def _check_list(action: dict[str, JSON]) -> None:
    _bounded(action, "button", LIST_BUTTON, "List button")
    sections = _items(action.get("sections"), "sections", 1, LIST_ROWS)
    rows = []
    for section in sections:
        _bounded(section, "title", SECTION_TITLE, "Section title", required=len(sections) > 1)
        rows += _items(section.get("rows"), "rows", 1, LIST_ROWS)
    if len(rows) > LIST_ROWS:
        raise Refusal(_BAD_VALUE, f"Total row count exceeds max allowed count: {LIST_ROWS}")
    for row in rows:
        _bounded(row, "id", ROW_ID, "Row id")
        _bounded(row, "title", ROW_TITLE, "Row title")
        _bounded(row, "description", ROW_DESCRIPTION, "Row description", required=False)
    _distinct(rows, "id", "Row id")


def _check_location(block: JSON) -> None:
    location = _part(block, "location")
    for name, limit in (("latitude", 90), ("longitude", 180)):
        try:
            degrees = float(location[name])
        except (KeyError, TypeError, ValueError):
            raise Refusal(_MISSING, f"location.{name} must be a number.") from None
        if not -limit <= degrees <= limit:
            raise Refusal(_BAD_VALUE, f"location.{name} must lie between -{limit} and {limit}.")


def _check_contacts(block: JSON) -> None:
    for contact in _items(block, "contacts", 1, 257):
        name = _part(contact.get("name"), "contacts.name")
        if not _is_text(name.get("formatted_name")):
            raise Refusal(_MISSING, "Required parameter is missing: contacts.name.formatted_name")


def _check_reaction(block: JSON) -> None:
    reaction = _part(block, "reaction")
    if not _is_text(reaction.get("message_id")):
        raise Refusal(_MISSING, "Required parameter is missing: reaction.message_id")
    if not isinstance(reaction.get("emoji", ""), str):
        raise Refusal(_BAD_VALUE, "reaction.emoji must be an emoji, or empty to take it back.")


def _check_template(block: JSON) -> None:
    template = _part(block, "template")
    language = _part(template.get("language"), "template.language")
    if not _is_text(template.get("name")) or not _is_text(language.get("code")):
        raise Refusal(_MISSING, "Required parameters: template.name and template.language.code")


_CHECKS: Final[dict[str, Callable[[JSON], None]]] = {
    "text": _check_text,
    "image": _check_media,
    "video": _check_media,
    "document": _check_media,
    "sticker": _check_media,
    "audio": _check_audio,
    "interactive": _check_interactive,
    "location": _check_location,
    "contacts": _check_contacts,
    "reaction": _check_reaction,
    "template": _check_template,
}


def _is_text(value: JSON) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def _part(value: JSON, name: str) -> dict[str, JSON]:
    if not isinstance(value, dict):
        raise Refusal(_MISSING, f"Required parameter is missing or no object: {name}")
    return value


def _items(value: JSON, name: str, least: int, most: int) -> list[dict[str, JSON]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Refusal(_MISSING, f"Required parameter is missing or no list of objects: {name}")
    if not least <= len(value) <= most:
        raise Refusal(_BAD_VALUE, f"Invalid {name} count. Min allowed {name}: {least}, Max allowed: {most}")
    return value


def _bounded(part: dict[str, JSON], key: str, most: int, what: str, *, required: bool = True) -> None:
    value = part.get(key)
    if value is None and not required:
        return
    if not isinstance(value, str) or len(value) > most or (required and not value.strip()):
        raise Refusal(_BAD_VALUE, f"{what} length invalid. Min length: {int(required)}, Max length: {most}")


def _distinct(parts: list[dict[str, JSON]], key: str, what: str) -> None:
    if len({part[key] for part in parts}) < len(parts):
        raise Refusal(_BAD_VALUE, f"{what} must be unique within a message.")
