"""Making sense of what weak models answer: thoughts left in the text, calls written as text."""

import json
import re
from collections.abc import Collection, Iterable, Iterator

import orjson

from app.llm.model import ToolCall
from app.messages import JSON

_NAMES_OF_THOUGHTS = "think|thinking|thought|thoughts|reasoning"
_THOUGHTS = re.compile(
    rf"<({_NAMES_OF_THOUGHTS})>.*?(?:</\1>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)"
    r"|<\|channel\|>(?:analysis|commentary)<\|message\|>.*?(?:<\|end\|>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_ORPHAN_END = re.compile(rf"\A.*?(?:</(?:{_NAMES_OF_THOUGHTS})>|\[/THINK\])", re.DOTALL | re.IGNORECASE)
# gpt-oss writes this around its answer, where its server leaves it in the text.
_FINAL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>|<\|(?:end|return)\|>\Z")
# Models of Alibaba, Meta and Mistral put this around their calls.
_MARKUP = re.compile(
    r"</?(?:tool_calls?|function_calls?|tools)>|\[/?TOOL_CALLS\]|<[|｜](?:python_tag|eom_id|eot_id|im_end)[|｜]>",
    re.IGNORECASE,
)
_BETWEEN = re.compile(rf"(?:\s|[;,]|```\w*|{_MARKUP.pattern})+", re.IGNORECASE)
_A_MARKED_CALL = re.compile(
    r"<(tool_calls?|function_calls?)>\s*(?:[\[{]|<function=|\w+\s*<arg_key>).*?(?:</\1>|\Z)"
    r"|<function=.*?(?:</function>|\Z)|\[TOOL_CALLS\]\s*(?:[\[{]|\w+\s*(?:\[|\{)).*\Z"
    r"|<[|｜](?:python_tag|tool[▁_]calls?[▁_][\w▁]{1,40})[|｜]>.*\Z|<\|channel\|>commentary to=.*\Z",
    re.DOTALL | re.IGNORECASE,
)
_OUR_PREFIXES = re.compile(r"\A(?:functions?|default_api)[.:](?=[\w-])|:\d+\Z")
_SPELLINGS = (("name", "arguments"), ("name", "parameters"), ("name", "args"), ("tool", "args"))
MAX_TEXT_CALL = 20_000
_MOST_CALLS = 32
_LEVELS_AROUND = 20  # more than there are around a call in a prompt or a journal row


def without_thoughts(text: str) -> str:
    """The text without `<think>` blocks and the like, also unclosed ones and ones whose start was lost."""
    if "<" not in text and "THINK]" not in text:
        return text.strip()
    text = _THOUGHTS.sub("", text)
    return _FINAL.sub("", _ORPHAN_END.sub("", text)).strip()


def without_marked_calls(text: str) -> str:
    """The text without calls in a vendor's own markup: where they do not count, nobody wants to read them."""
    return _A_MARKED_CALL.sub("", text).strip() if "<" in text or "[TOOL_CALLS]" in text else text


def bare_name(name: str) -> str:
    """A tool's name without what models put around it, as in `functions.save_note:0`; none has such signs."""
    return _OUR_PREFIXES.sub("", name)


def is_serializable(value: JSON) -> bool:
    """Return True if a value can be kept and sent again: read JSON may be nested too deep to write."""
    for _ in range(_LEVELS_AROUND):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def calls_in_text(text: str, offered: Collection[str], heard: Iterable[str]) -> tuple[ToolCall, ...]:
    """Tool calls that are the whole answer, as JSON, also in a vendor's markup; () where it is anything else.

    A call counts only if it names an offered tool and its text stands in nothing that was `heard`
    (messages, tool results): otherwise a page could make the model repeat a call of its own.
    """
    body = text.strip()
    if not body or len(body) > MAX_TEXT_CALL or not offered:
        return ()
    try:
        written = list(_written(body))
    except (ValueError, RecursionError):
        return ()
    calls = [call for _, entry in written if (call := _call(entry, offered)) is not None]
    if not 0 < len(calls) == len(written) <= _MOST_CALLS:
        return ()
    sources = [body, *(source for source, _ in written), *(_dumps(entry) for _, entry in written)]
    if _was_heard([*sources, *(form for one in calls for form in _forms(one))], heard):
        return ()
    return tuple(calls)


def _written(body: str) -> Iterator[tuple[str, JSON]]:
    """Yield each JSON value of an answer after its source. Raise ValueError if it holds anything else."""
    decoder, position = json.JSONDecoder(), 0
    while position < len(body):
        if between := _BETWEEN.match(body, position):
            position = between.end()
            continue
        _, end = decoder.raw_decode(body, position)
        source = body[position:end]
        value = orjson.loads(source)
        yield from ((source, entry) for entry in (value if isinstance(value, list) else [value]))
        position = end


def _call(entry: JSON, offered: Collection[str]) -> ToolCall | None:
    if not isinstance(entry, dict):
        return None
    function = entry.get("function")
    if isinstance(function, dict):
        entry = function
    name = entry.get("name") or entry.get("tool") or (function if isinstance(function, str) else None)
    name = bare_name(name) if isinstance(name, str) else None
    arguments = entry.get("arguments", entry.get("parameters", entry.get("args", {})))
    if name not in offered or not isinstance(arguments, dict | str):
        return None
    if not is_serializable(entry):
        return None
    return ToolCall("", str(name), arguments)


def _forms(call: ToolCall) -> Iterator[str]:
    """A call as other models spell it: what a page held in one form may be answered in another."""
    for called, given in _SPELLINGS:
        yield _dumps({called: call.name, given: call.arguments})


def _dumps(value: JSON) -> str:
    return orjson.dumps(value).decode()


def _was_heard(written: Iterable[str], heard: Iterable[str]) -> bool:
    """Return True if one of these calls stands in what the model was given."""
    needles = [_bare(text) for text in written]
    return any(needle in bare for bare in map(_bare, heard) for needle in needles)


def _bare(text: str) -> str:
    """Strip white space, backslashes, quotes and markup: results reach the model as JSON inside JSON."""
    bare = "".join(text.split()).replace("\\n", "").replace("\\", "").replace('"', "")
    return _MARKUP.sub("", bare)
