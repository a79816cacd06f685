"""WhatsApp through Meta's Cloud API."""

from app.channels.whatsapp.formatting import render_whatsapp
from app.channels.whatsapp.payloads import parse_webhook
from app.channels.whatsapp.signature import verify_signature
from app.channels.whatsapp.splitting import split_message

__all__ = ["parse_webhook", "render_whatsapp", "split_message", "verify_signature"]
