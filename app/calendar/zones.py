"""Names of time zones, as a person and a model read them."""

import re

_OFFSET = re.compile(r"Etc/GMT([+-])(\d{1,2})")


def shown_zone(name: str) -> str:
    """An IANA name as it stands, but "UTC-8" for "Etc/GMT+8", whose sign is the opposite of what it seems."""
    return _OFFSET.sub(lambda found: f"UTC{'-' if found[1] == '+' else '+'}{found[2]}", name)
