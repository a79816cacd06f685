"""The rounds of a turn so far: what its calls brought, and what came in after them."""

from collections.abc import Mapping, Sequence

from app.llm.offline.followups import content_of
from app.messages import JSON


def results_of(messages: Sequence[Mapping[str, JSON]]) -> list[str]:
    """The tool results since the last answer, in the order of their calls."""
    results: list[str] = []
    for message in messages:
        if message.get("role") == "assistant" and not message.get("tool_calls"):
            results = []
        elif message.get("role") == "tool":
            results.append(content_of(message))
    return results


def rounds_of(messages: Sequence[Mapping[str, JSON]]) -> int:
    """How many rounds of calls were made since the last answer."""
    rounds = 0
    for message in messages:
        if message.get("role") == "assistant":
            rounds = rounds + 1 if message.get("tool_calls") else 0
    return rounds


def parted(said: str, messages: Sequence[Mapping[str, JSON]]) -> tuple[str, str]:
    """What was said before the turn's first calls, and what came in after them; it begins anew."""
    late: list[str] = []
    called = False
    for message in messages:
        if message.get("role") == "assistant":
            called = bool(message.get("tool_calls"))
            late = late if called else []
        elif message.get("role") == "user" and called:
            late.append(content_of(message))
    text = "\n".join(late).strip()
    return (said[: -len(text)], text) if text and said.endswith(text) else (said, "")
