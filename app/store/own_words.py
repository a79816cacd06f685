"""Whose words a message holds."""

from collections.abc import Mapping

from app.messages import JSON


def in_own_words(kind: str, payload: Mapping[str, JSON]) -> bool:
    """Whether a message's text is surely the person's: not forwarded, no button's title, no caption, which
    often came with the file, and not what an advertisement wrote for them to send."""
    details = payload.get("details") or {}
    if payload.get("forwarded") or payload.get("button") or "referral" in details:
        return False
    return kind == "text" or (kind == "edit" and details.get("type") == "text")
