"""Making sense of what weak models answer: thoughts left in the text, calls written as text."""

import re
from collections.abc import Collection, Iterable

import orjson

from app.llm.model import ToolCall
from app.messages import JSON

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_ORPHAN_END = re.compile(r"\A.*?</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_WRAPPERS = (
    ("```json", "```"),
    ("```tool_call", "```"),
    ("```tool_code", "```"),
    ("```", "```"),
    ("<tool_call>", "</tool_call>"),
    ("<tool_call>", ""),
    ("<function_call>", "</function_call>"),
    ("[TOOL_CALLS]", ""),
)
MAX_TEXT_CALL = 20_000


def without_thoughts(text: str) -> str:
    """The text without `<think>` blocks, also unclosed ones and ones whose start was lost."""
    if "<" not in text:
        return text.strip()
    text = _THOUGHTS.sub("", text)
    return _ORPHAN_END.sub("", text).strip()


def calls_in_text(text: str, offered: Collection[str], heard: Iterable[str]) -> tuple[ToolCall, ...]:
    """Tool calls that are the whole answer, as JSON; () where it is anything else.

    A call counts only if it names an offered tool and its text stands in nothing that was `heard`
    (messages, tool results): otherwise a page could make the model repeat a call of its own.
    """
    body = text.strip()
    if not body or len(body) > MAX_TEXT_CALL or not offered:
        return ()
    for opener, closer in _WRAPPERS:
        if body.startswith(opener) and body.endswith(closer):
            body = body.removeprefix(opener).removesuffix(closer).strip()
            break
    if body[:1] not in "{[":
        return ()
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ()
    entries = found if isinstance(found, list) else [found]
    calls = [_call(entry, offered) for entry in entries]
    if not calls or any(call is None for call in calls):
        return ()
    written = [body, *(orjson.dumps(entry).decode() for entry in entries)]
    if _was_heard(written, heard):
        return ()
    return tuple(call for call in calls if call is not None)


def _call(entry: JSON, offered: Collection[str]) -> ToolCall | None:
    if not isinstance(entry, dict):
        return None
    function = entry.get("function")
    if isinstance(function, dict):
        entry = function
    name = entry.get("name") or entry.get("tool") or (function if isinstance(function, str) else None)
    arguments = entry.get("arguments", entry.get("parameters", entry.get("args", {})))
    if name not in offered or not isinstance(arguments, dict | str):
        return None
    return ToolCall("", str(name), arguments)


def _was_heard(written: Iterable[str], heard: Iterable[str]) -> bool:
    """Whether any of these calls, also one taken out of a list, stands in what was heard."""
    needles = [_bare(text) for text in written]
    return any(needle in bare for bare in map(_bare, heard) for needle in needles)


def _bare(text: str) -> str:
    """Without white space and backslashes: results and quotes reach the model as JSON inside JSON."""
    return "".join(text.split()).replace("\\n", "").replace("\\", "")
