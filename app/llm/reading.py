"""Reading what models answer, however odd: completions, thoughts left in the text, calls written as text."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

import orjson

from app.i18n import lazy
from app.llm.model import ModelAnswer, ModelError, ModelRequest, ToolCall
from app.messages import JSON, mapping, seconds_in
from app.store.journal import Tokens

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
TOO_DEEP = "(arguments that are nested too deeply)"  # no JSON: the engine then tells the model so
_ATTACHED_BYTES = 500_000
MOST_TOKENS = 10_000_000  # of one call


def read_completion(body: bytes, request: ModelRequest, model: str, key: str = "") -> ModelAnswer:
    """Return the answer in a response body. Raises ModelError, without the key, if it is no completion."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ModelError(
            lazy("{model} answered with something that is not JSON", model=model), "no_completion"
        ) from error
    choices = mapping(data).get("choices")
    if not isinstance(choices, list):
        raise _without_choices(data, body, model, key)
    first = mapping(choices[0]) if choices else {}
    message = mapping(first.get("message"))
    return ModelAnswer(
        without_thoughts(_text(message.get("content")) or _text(message.get("refusal"))),
        _calls(message),
        _tokens(data.get("usage"), request, body),
        str(data.get("model") or model),
        _attached(message, "reasoning_content", "reasoning_details", "extra_content"),
        first.get("finish_reason") == "length",
    )


def tools_as_text(request: ModelRequest) -> list[dict[str, JSON]]:
    """Return the messages with tools, calls and results as text, for a server that takes no `tools`."""
    messages = [_message_as_text(message) for message in request.messages]
    if not request.tools:
        return messages
    lines = [
        "You can call tools. To call one, answer with nothing but a JSON object "
        '{"name": "…", "arguments": {…}} (or a list of such objects). Tools:'
    ]
    for tool in request.tools:
        function = tool["function"]
        parameters = _dumps(function.get("parameters", {}))
        lines.append(f"- {function['name']}: {function.get('description', '')} Arguments: {parameters}")
    first = messages[0]
    catalogue = "\n".join(lines)
    return [{**first, "content": f"{first['content']}\n\n{catalogue}"}, *messages[1:]]


def _without_choices(data: JSON, body: bytes, model: str, key: str) -> ModelError:
    """Return the error that came with status 200, as OpenRouter sends those of the servers behind it."""
    error = mapping(data).get("error")
    code = mapping(error).get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return refusal(model, code, body, key=key)
    reason = _reason(body, key)
    text = lazy("{model} answered without choices: {reason}", model=model, reason=reason[:300])
    return ModelError(text, "no_completion", reason=reason[:2_000])


def refusal(
    model: str, status: int, body: bytes, retry_after: str | None = None, key: str = ""
) -> ModelError:
    """Return the error for an HTTP status."""
    reason = _reason(body, key)
    return ModelError(
        lazy("{model} answered {status}: {reason}", model=model, status=status, reason=reason[:300]),
        "status",
        status=status,
        reason=reason[:2_000],
        retry_after=seconds_in(retry_after),
    )


def _reason(body: bytes, key: str) -> str:
    """Return the server's own words: `error.message`, and what OpenRouter adds of the server behind it.

    Without the key, which servers have been seen to repeat.
    """
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        data = None
    error = data.get("error", data) if isinstance(data, dict) else None
    if isinstance(error, dict):
        behind = mapping(error.get("metadata")).get("raw")
        said = error.get("message") or error.get("detail") or error
        error = f"{said}: {behind}" if behind else said
    reason = str(error) if error else body[:1000].decode("utf-8", "replace")
    return reason.replace(key, "***") if key else reason


def _text(content: JSON) -> str:
    """Return content as text, also from the list form `[{"type": "text", "text": …}]`."""
    if isinstance(content, list):
        parts = [
            part.get("text", part.get("refusal")) if isinstance(part, dict) else part for part in content
        ]
        content = "".join(part for part in parts if isinstance(part, str))
    return content.replace("\x00", "") if isinstance(content, str) else ""


def _calls(message: dict[str, JSON]) -> tuple[ToolCall, ...]:
    entries = message.get("tool_calls")
    if not isinstance(entries, list):
        entries = [{"function": message.get("function_call")}]  # the older form
    calls = []
    for entry in map(mapping, entries[:_MOST_CALLS]):
        function, given = mapping(entry.get("function")), entry.get("id")
        if isinstance(name := function.get("name"), str):
            id = given if isinstance(given, str) else ""
            arguments, attached = _arguments(function.get("arguments")), _attached(entry, "extra_content")
            calls.append(ToolCall(id, bare_name(name), arguments, attached))
    return tuple(calls)


def _arguments(arguments: JSON) -> dict[str, JSON] | str:
    if isinstance(arguments, str):
        return arguments
    if not is_serializable(arguments):
        return TOO_DEEP
    if arguments is None or isinstance(arguments, dict):
        return arguments or {}
    return _dumps(arguments)


def _attached(source: Mapping[str, JSON], *names: str) -> dict[str, JSON]:
    """Return the fields that the server wants back, unless they are too large or nested too deeply."""
    found = {name: source[name] for name in names if source.get(name) is not None}
    return found if is_serializable(found) and len(orjson.dumps(found)) <= _ATTACHED_BYTES else {}


def _tokens(usage: JSON, request: ModelRequest, body: bytes) -> Tokens:
    """Return the server's counts (0 for one that cannot be true), or else four characters a token."""
    usage = mapping(usage)
    counted = usage.get("prompt_tokens")
    if type(counted) is not int or counted > MOST_TOKENS:
        return Tokens(len(orjson.dumps(request.messages)) // 4, len(body) // 4)
    cached = mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    counts = (counted, usage.get("completion_tokens"), cached)
    return Tokens(*(one if type(one) is int and 0 <= one <= MOST_TOKENS else 0 for one in counts))


def _message_as_text(message: dict[str, JSON]) -> dict[str, JSON]:
    if message["role"] == "tool":
        return {"role": "user", "content": f"[tool result] {message['content']}"}
    calls = message.get("tool_calls")
    if not calls:
        return message
    functions = [call["function"] for call in calls]  # whose arguments are JSON text already
    written = [f'{{"name":{_dumps(one["name"])},"arguments":{one["arguments"]}}}' for one in functions]
    return {"role": "assistant", "content": f"[{','.join(written)}]"}


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
    # what a page held in one spelling may be answered in another
    sources += [_dumps({name: one.name, given: one.arguments}) for one in calls for name, given in _SPELLINGS]
    needles = set(map(_bare, sources))
    was_heard = any(needle in bare for bare in map(_bare, heard) for needle in needles)
    return () if was_heard else tuple(calls)


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
    entry = mapping(entry)
    function = entry.get("function")
    entry = function if isinstance(function, dict) else entry
    name = entry.get("name") or entry.get("tool") or function
    arguments = entry.get("arguments", entry.get("parameters", entry.get("args", {})))
    if not isinstance(name, str) or bare_name(name) not in offered or not isinstance(arguments, dict | str):
        return None
    return ToolCall("", bare_name(name), arguments) if is_serializable(entry) else None


def _dumps(value: JSON) -> str:
    return orjson.dumps(value).decode()


def _bare(text: str) -> str:
    """Strip white space, backslashes, quotes and markup: results reach the model as JSON inside JSON."""
    bare = "".join(text.split()).replace("\\n", "").replace("\\", "").replace('"', "")
    return _MARKUP.sub("", bare)
