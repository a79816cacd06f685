"""Requests to Meta's Graph API that send a message, as its documents have them."""

from typing import Any

from app.messages import Address, MediaFile, Outgoing, Template
from app.phones import digits
from app.text import on_one_line

TEMPLATE_TEXT = 900  # characters of ours in a template, whose whole body has at most 1024


def message_body(to: Address, message: Outgoing, outbox_id: str, media: str = "") -> dict[str, Any]:
    """Return the request as Meta documents it; `recipient` (a business-scoped id) only without a phone."""
    body: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "recipient_type": "group" if to.group else "individual",
        "biz_opaque_callback_data": outbox_id,
    }
    if to.group:
        body["to"] = to.group
    elif to.phone:
        body["to"] = digits(to.phone)
    else:
        body["recipient"] = to.user_id
    if message.quoted:
        body["context"] = {"message_id": message.quoted}
    if message.file is not None:
        return {**body, "type": message.file.kind, message.file.kind: {"id": media, **_file(message.file)}}
    if message.template is not None:
        return {**body, "type": "template", "template": _template(message.template, message.text)}
    if action := _action(message):
        return {**body, "type": "interactive", "interactive": {**action, "body": {"text": message.text}}}
    return {**body, "type": "text", "text": {"body": message.text, "preview_url": False}}


def _file(file: MediaFile) -> dict[str, Any]:
    """Return what a file's block says beside its id: Ogg Opus is shown as a voice note."""
    if file.kind == "document":
        return {"filename": file.name}
    return {"voice": True} if file.mime_type == "audio/ogg" else {}


def _action(message: Outgoing) -> dict[str, Any]:
    """Return the kind and the action of an interactive message, {} for another one."""
    if message.buttons:
        buttons = [{"type": "reply", "reply": {"id": one.id, "title": one.title}} for one in message.buttons]
        return {"type": "button", "action": {"buttons": buttons}}
    if message.rows:
        rows = [{"id": one.id, "title": one.title} for one in message.rows]
        return {"type": "list", "action": {"button": message.label, "sections": [{"rows": rows}]}}
    if message.link is not None:
        parameters = {"display_text": message.link.title, "url": message.link.url}
        return {"type": "cta_url", "action": {"name": "cta_url", "parameters": parameters}}
    if message.asks_location:
        return {"type": "location_request_message", "action": {"name": "send_location"}}
    return {}


def _template(template: Template, text: str) -> dict[str, Any]:
    """Return a template with the text in its place: Meta takes no line breaks and no long runs of spaces."""
    values = template.parameters if template.is_filled else (on_one_line(text, TEMPLATE_TEXT),)
    parameters = [{"type": "text", "text": value} for value in values]
    return {
        "name": template.name,
        "language": {"code": template.language},
        "components": [{"type": "body", "parameters": parameters}] if parameters else [],
    }
