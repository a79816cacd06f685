"""The conversation so far, as a built-in model reads it from the messages of a request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.llm.offline.replies import lost_text
from app.llm.smalltalk import Talk, small_talk
from app.messages import JSON

RECEIPT = "✓"  # begins what a tool says that changed something
_POLITE = (Talk.THANKS, Talk.NOD, Talk.WARMTH, Talk.SORRY, Talk.ANSWER, Talk.NEVER_MIND)


@dataclass(frozen=True)
class Exchange:
    """A message of the person and our answer."""

    said: str = ""
    answer: str = ""

    @property
    def is_receipt(self) -> bool:
        return self.answer.startswith(RECEIPT)


def exchanges(messages: Sequence[Mapping[str, JSON]]) -> list[Exchange]:
    """Return what was said and answered, the newest last, without what waits for its answer."""
    found: list[Exchange] = []
    said = ""
    for message in messages:
        if message.get("role") == "user":
            said = content_of(message)
        elif message.get("role") == "assistant" and not message.get("tool_calls"):
            found.append(Exchange(said, content_of(message)))
    return found


def with_a_subject(exchanged: Sequence[Exchange], language: str) -> list[Exchange]:
    """Leave out thanks and what was not understood: "cancel it" is about what came before them."""
    lost = lost_text((), language).split("\n")[0]
    return [
        one for one in exchanged if small_talk(one.said) not in _POLITE and not one.answer.startswith(lost)
    ]


def results_since_answer(messages: Sequence[Mapping[str, JSON]]) -> tuple[list[str], int]:
    """Return the tool results of this turn, in the order of their calls, and its rounds of calls."""
    results: list[str] = []
    rounds = 0
    for message in messages:
        if message.get("role") == "tool":
            results.append(content_of(message))
        elif message.get("role") == "assistant":
            rounds = rounds + 1 if message.get("tool_calls") else 0
            results = results if rounds else []
    return results, rounds


def split_late(said: str, messages: Sequence[Mapping[str, JSON]]) -> tuple[str, str]:
    """Split what was said before the turn's first calls from what came in after them."""
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


def content_of(message: Mapping[str, JSON]) -> str:
    """Return the text of a message, whichever form it has."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""
