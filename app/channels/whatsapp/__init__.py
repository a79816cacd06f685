"""WhatsApp through Meta's Cloud API."""

from app.channels.whatsapp.credentials import verify_signature
from app.channels.whatsapp.formatting import render_whatsapp, split_message
from app.channels.whatsapp.payloads import parse_webhook

__all__ = ["parse_webhook", "render_whatsapp", "split_message", "verify_signature"]
