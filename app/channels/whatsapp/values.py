"""Values from outside: bounded, cleaned, and never trusted to have their type."""

import json
import math
import re
from collections.abc import Iterator

from app.messages import JSON

TEXT_LIMIT = 100_000
NAME_LIMIT = 256
ID_LIMIT = 512
DEPTH_LIMIT = 24
ITEMS_LIMIT = 5_000

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_PHONE = re.compile(r"\+?[0-9][0-9 ().-]{0,38}", re.ASCII)
_NOT_DIGITS = re.compile(r"\D")
_USER_ID = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII)
_LATEST = 1e11  # seconds, in the year 5138: a larger timestamp counts milliseconds


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
        value = _number_text(value)
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
    return _NOT_DIGITS.sub("", found) if _PHONE.fullmatch(found) else ""


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
        return value if -(2**63) <= value < 2**63 else _number_text(value)
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


def _number_text(value: float) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to write out integers of more than 4,300 digits
        return ""
