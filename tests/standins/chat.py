"""What a model's server answers to the doctor."""

import re
from typing import Any

from tests.standins.answers import Answer, Asked

CHAT = "/v1/chat/completions"


def completion(message: dict[str, Any]) -> dict[str, Any]:
    return {"model": "small", "choices": [{"message": {"role": "assistant", **message}}]}


CALL = completion(
    {"tool_calls": [{"id": "1", "function": {"name": "add_numbers", "arguments": '{"first": 20}'}}]}
)


def able(asked: Asked) -> Answer:
    """A model that calls the tool it is given, sees, and remembers the beginning of a long prompt."""
    if asked.body.get("tools"):
        return 200, CALL
    if "image_url" in str(asked.body["messages"]):
        return 200, completion({"content": "Red."})
    words = re.findall(r"mango-\d+", str(asked.body["messages"]))
    return 200, completion({"content": words[0] if words else "none"})


def window(size: int, model: str = "small:latest") -> Answer:
    """Ollama's list of the models that run."""
    return 200, {"models": [{"name": model, "context_length": size}]}
