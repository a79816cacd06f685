"""Ids of our own: made before a transaction, sortable by time, unguessable."""

import secrets
import time


def new_id(prefix: str) -> str:
    """Such as "turn_019a5f0c3b2e9f…": milliseconds, then 64 random bits."""
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"
