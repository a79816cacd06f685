"""WhatsApp through Meta's Cloud API."""

from app.channels.whatsapp.formatting import render_whatsapp, split_message
from app.channels.whatsapp.payloads import parse_webhook
from app.channels.whatsapp.signature import verify_signature

__all__ = ["parse_webhook", "render_whatsapp", "split_message", "verify_signature"]
