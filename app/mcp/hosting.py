"""Servers that run on Smithery's machines, and the owner's key to those machines."""

import re
from collections.abc import Container
from dataclasses import replace
from urllib.parse import urlsplit

from app.mcp.installed import InstalledServer

_KEY = re.compile(r"Bearer \$\{(SERVER_SMITHERY_API_KEY)\}", re.IGNORECASE)
"""How an entry of Smithery's asks for it, there and in the registry."""


def runs_at_smithery(url: str) -> bool:
    """Whether an address is one of Smithery's (https://smithery.ai/docs), which lets in who has its key."""
    return host_of(url).endswith((".smithery.ai", ".run.tools"))


def host_of(url: str) -> str:
    """The host of an https address; "" for what is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return (parts.hostname or "") if parts.scheme == "https" else ""


def with_smithery_key(record: InstalledServer, key: str, own: Container[str]) -> InstalledServer:
    """The record with the owner's key, "" for none, where that lets us in, and nowhere else.

    One of its `own` secrets comes first.
    """
    if not (key and runs_at_smithery(record.url)):
        return record

    def filled(name: str, value: str) -> str:
        asked = _KEY.fullmatch(value) if name.lower() == "authorization" else None
        return value if asked is None or asked[1] in own else f"Bearer {key}"

    return replace(record, headers=tuple((name, filled(name, value)) for name, value in record.headers))
