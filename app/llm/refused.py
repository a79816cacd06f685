"""What a server's refusal of a call is about, by its own words: they tell how it can be asked after all.

The samples in the tests are what OpenAI, Gemini, DeepSeek, Moonshot, OpenRouter, LiteLLM, vLLM, llama.cpp and
Ollama answer.
"""

import re

_REFUSALS = (400, 404, 413, 422)
_ON_TOOLS = re.compile(r"\b(?:tool|function)", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"(support|unsupported|allow|enabl|requires|unknown|unrecogni).*\b(tools?|functions?)\b"
    r"|\b(tools?|functions?)\b.*(support|allow|enabl|requires|unknown|unrecogni)",
    re.IGNORECASE | re.DOTALL,
)
_LLAMA_CPP = re.compile(r"tools param requires|unsupported param: tools", re.IGNORECASE)
_ON_A_PART = re.compile(
    r"schema|propert|declaration|\bwithout\b|\bmissing\b|reasoning_content|thought_signature", re.IGNORECASE
)
"""One tool or one message is refused: the next call may be another."""
_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|maximum.{0,60}\btokens|exceed.{0,60}\btokens?\b|token limit"
    r"|(prompt|input|request).{0,40}too (long|large)",
    re.IGNORECASE | re.DOTALL,
)
_ON_THE_ANSWERS_LENGTH = re.compile(r"max_(completion_|new_)?tokens|in the completion", re.IGNORECASE)


def speaks_of_tools(status: int, reason: str) -> bool:
    """Whether a call is refused for its tools or for the calls in its messages: as text they may pass."""
    return (status in _REFUSALS and bool(_ON_TOOLS.search(reason))) or takes_no_tools(status, reason)


def takes_no_tools(status: int, reason: str) -> bool:
    """Whether no call with tools will ever pass. llama.cpp says that with 500."""
    if status == 500:
        return bool(_LLAMA_CPP.search(reason))
    return status in _REFUSALS and bool(_NO_TOOLS.search(reason)) and not _ON_A_PART.search(reason)


def wants_a_shorter_answer(status: int, reason: str) -> bool:
    """Whether a call is refused for how long its answer may become."""
    return status in _REFUSALS and bool(_ON_THE_ANSWERS_LENGTH.search(reason))


def is_too_long(status: int, reason: str) -> bool:
    """Whether a prompt is longer than the model's window."""
    return status in (*_REFUSALS, 500) and bool(_TOO_LONG.search(reason))
