"""The form that the Graph API wants of a message: what must be there, and how long it may be."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from app.messages import JSON
from app.simulator.faults import Refusal

_INVALID, _MISSING, _BAD_VALUE = 100, 131008, 131009  # Meta's codes

Bounds = Mapping[str, tuple[int, int]]  # by path: the least and the most characters, or parts of a list

LIMITS = yaml.safe_load(Path(__file__).with_name("limits.yaml").read_text("utf-8"))
_KINDS: Mapping[str, Bounds] = LIMITS["kinds"]
_ACTIONS: Mapping[str, Bounds] = LIMITS["actions"]  # of interactive messages
_DISTINCT = ("buttons.reply.id", "buttons.reply.title", "sections.rows.id")
_MOST_ROWS = 10  # of all sections together


def check_message(body: Mapping[str, JSON]) -> str:
    """Return the type of a message whose form the Graph API accepts, or raise Refusal.

    The recipient, the 24-hour window and media ids are not looked at.
    """
    _check(body, LIMITS["envelope"], _INVALID)
    if body.get("messaging_product") != "whatsapp" or not (body.get("to") or body.get("recipient")):
        raise Refusal(_INVALID, "The parameters messaging_product and to are required.")
    kind = body.get("type", "text")
    if kind not in _KINDS:
        raise Refusal(_INVALID, f"Param type must be one of {', '.join(_KINDS)}.")
    block = body.get(kind)
    if block is None:
        raise Refusal(_MISSING, f"Required parameter is missing: {kind}")
    _check(block, _KINDS[kind], _INVALID if kind == "text" else _BAD_VALUE)
    if kind == "interactive":
        _check_action(block)
    return str(kind)


def _check_action(block: Mapping[str, JSON]) -> None:
    action, bounds = block.get("action"), _ACTIONS.get(str(block.get("type")))
    if bounds is None:
        raise Refusal(_BAD_VALUE, f"Param interactive.type must be one of {', '.join(_ACTIONS)}.")
    _check(action, bounds, _BAD_VALUE)
    for path in _DISTINCT:
        values = [str(value) for value in _at(action, path) if value is not None]
        if len(set(values)) < len(values):
            raise Refusal(_BAD_VALUE, f"{path} must be unique within a message.")
    if len(_at(action, "sections.rows.id")) > _MOST_ROWS:
        raise Refusal(_BAD_VALUE, f"There are more than {_MOST_ROWS} rows.")


def _check(block: JSON, bounds: Bounds, code: int) -> None:
    for path, (least, most) in bounds.items():
        for value in _at(block, path):
            if value is None and least:
                raise Refusal(_MISSING, f"Required parameter is missing: {path}")
            is_text = isinstance(value, str) and (value.strip() or not least)
            if value is not None and not (
                (is_text or isinstance(value, list)) and least <= len(value) <= most
            ):
                raise Refusal(code, f"Param {path} must have {least} to {most} characters or parts.")


def _at(block: JSON, path: str) -> list[JSON]:
    """Return the values at a path, through every part of the lists on the way; None where there is none."""
    found = [block]
    for name in path.split("."):
        parts = [part for one in found for part in (one if isinstance(one, list) else [one])]
        found = [part.get(name) if isinstance(part, dict) else None for part in parts]
    return found
