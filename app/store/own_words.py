"""Whose words a message holds, and how later prompts tell them."""

from collections.abc import Mapping

import orjson

from app.messages import JSON

LONGEST_TOLD = 4_000


def in_own_words(kind: str, payload: Mapping[str, JSON]) -> bool:
    """Whether a message's text is surely the person's: not forwarded, no button's title, no caption, which
    often came with the file, and not what an advertisement wrote for them to send."""
    details = payload.get("details") or {}
    if payload.get("forwarded") or payload.get("button") or "referral" in details:
        return False
    return kind == "text" or (kind == "edit" and details.get("type") == "text")


def told_later(kind: str, text: str, payload: Mapping[str, JSON]) -> str:
    """A message as the prompts of later turns show it: what others wrote as theirs, and what a place and a
    contact say, for the question about it often comes in the next message."""
    if text:
        return f"[Forwarded, somebody else's words: {_data(text)}]" if payload.get("forwarded") else text
    details = payload.get("details")
    return f"[{kind}: {_data(details)}]" if details and kind in ("location", "contacts") else f"[{kind}]"


def _data(value: JSON) -> str:
    data = orjson.dumps(value, default=str).decode()
    return data if len(data) <= LONGEST_TOLD else f"{data[:LONGEST_TOLD]}…"
