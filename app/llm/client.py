"""A real model behind any OpenAI-compatible chat-completions endpoint."""

from collections.abc import Mapping, Sequence

import orjson

from app.http.endpoint import Answer, Endpoint, NoAnswer, NotSent, TimedOut
from app.llm.model import ModelAnswer, ModelError, ModelRequest, ToolCall, Usage
from app.llm.reading import bare_name, can_be_written, without_thoughts
from app.llm.refused import speaks_of_tools, takes_no_tools, wants_a_shorter_answer
from app.messages import JSON, seconds_in
from app.settings import Settings

OPENAI_URL = "https://api.openai.com/v1"
ANSWER_TOKENS = 8_192
"""The longest answer that is asked for where a budget bounds it: servers refuse more than their model can
write (GPT-4o 16,384, DeepSeek 8,192)."""
SHORT_ANSWER_TOKENS = 2_048
"""The same where a server refused that: for an older model, or one with a small window."""
ATTACHED_BYTES = 500_000
TOO_DEEP = "(arguments that are nested too deeply)"
"""In place of some that could not be written down again: no JSON, which the model is then told."""


class ChatModel:
    """Chat completions: `LLM_MODEL` answers, `CLASSIFIER_MODEL` classifies."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._key = settings.openai_api_key.get_secret_value()
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        url = settings.openai_base_url or OPENAI_URL
        self._endpoint = Endpoint(url, headers, proxies=True)
        self._answer_tokens = ANSWER_TOKENS
        # OpenAI's newer models refuse the older name
        self._limit = "max_tokens" if settings.openai_base_url else "max_completion_tokens"
        self.tools_refused = False
        """The server takes no `tools` at all: they are written into the prompt instead."""
        self.failure = ""
        """Why the last call failed, "" once one succeeded."""

    async def warm(self) -> None:
        """Loads what the first call needs."""
        await self._endpoint.warm()

    async def close(self) -> None:
        await self._endpoint.close()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """One model call. Raises ModelError; retrying is the caller's."""
        try:
            answer = await self._complete(request)
        except ModelError as error:
            self.failure = str(error)
            raise
        self.failure = ""
        return answer

    async def _complete(self, request: ModelRequest) -> ModelAnswer:
        """The same call with its tools as text where the server will not have them."""
        if self.tools_refused:
            return await self._ask(request, _tools_as_text(request), [])
        try:
            return await self._ask(request, request.messages, request.tools)
        except ModelError as error:
            of_tools = _holds_tools(request) and speaks_of_tools(error.status, error.reason)
            if not of_tools or error.is_too_long:
                raise
            answer = await self._ask(request, _tools_as_text(request), [])
            self.tools_refused = bool(request.tools) and takes_no_tools(error.status, error.reason)
            return answer

    async def _ask(
        self, request: ModelRequest, messages: Sequence[JSON], tools: Sequence[JSON]
    ) -> ModelAnswer:
        """The same call for a shorter answer where the server refuses one of that length."""
        try:
            return await self._post(request, messages, tools)
        except ModelError as error:
            if not request.max_tokens or not wants_a_shorter_answer(error.status, error.reason):
                raise
            if "instead" in error.reason:  # "use 'max_completion_tokens' instead"
                self._limit = "max_completion_tokens"
            else:
                self._answer_tokens = SHORT_ANSWER_TOKENS
            return await self._post(request, messages, tools)

    async def _post(
        self, request: ModelRequest, messages: Sequence[JSON], tools: Sequence[JSON]
    ) -> ModelAnswer:
        classify = request.purpose == "classify"
        model = self._settings.classifier_model if classify else self._settings.llm_model
        body: dict[str, JSON] = {"model": model, "messages": messages}
        if tools:
            body["tools"] = tools
        if request.max_tokens:
            body[self._limit] = min(request.max_tokens, self._answer_tokens)
        limit = self._settings.classifier_timeout if classify else self._settings.llm_timeout
        try:
            answer = await self._endpoint.post("/chat/completions", orjson.dumps(body), limit)
        except NotSent as error:
            raise ModelError(f"{model} cannot be reached: {error}", "not_sent") from error
        except TimedOut as error:
            raise ModelError(f"{model} gave {error}", "timed_out") from error
        except NoAnswer as error:
            raise ModelError(f"{model} gave {error}", "no_answer") from error
        if answer.status >= 400:
            raise _status_error(model, answer.status, answer, self._key)
        if (status := _status_within(answer.body)) >= 400:
            raise _status_error(model, status, answer, self._key)
        return read_completion(answer.body, request, model)


def read_completion(body: bytes, request: ModelRequest, model: str) -> ModelAnswer:
    """The answer in a chat-completions body, however odd. Raises ModelError where it is none at all."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ModelError(f"{model} answered with something that is not JSON", "no_completion") from error
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list):
        detail = data.get("error") if isinstance(data, dict) else data
        raise ModelError(f"{model} answered without choices: {str(detail)[:300]}", "no_completion")
    first = choices[0] if choices and isinstance(choices[0], dict) else {}
    message = first.get("message")
    if not isinstance(message, dict):
        message = {}
    return ModelAnswer(
        without_thoughts(_text(message.get("content")) or _text(message.get("refusal"))),
        _calls(message),
        _usage(data.get("usage"), request, body),
        str(data.get("model") or model),
        _attached(message, "reasoning_content", "reasoning_details", "extra_content"),
        first.get("finish_reason") == "length",
    )


def _text(content: JSON) -> str:
    """Content as text: also the list form `[{"type": "text", "text": …}]`."""
    if isinstance(content, str):
        return content.replace("\x00", "")
    if isinstance(content, list):
        parts = [
            part.get("text", part.get("refusal")) if isinstance(part, dict) else part for part in content
        ]
        return "".join(part for part in parts if isinstance(part, str)).replace("\x00", "")
    return ""


def _calls(message: dict[str, JSON]) -> tuple[ToolCall, ...]:
    entries = message.get("tool_calls")
    if not isinstance(entries, list):
        legacy = message.get("function_call")
        entries = [{"function": legacy}] if isinstance(legacy, dict) else []
    calls = []
    for entry in entries[:32]:
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = _written(arguments)
        given = entry.get("id")
        name, attached = bare_name(function["name"]), _attached(entry, "extra_content")
        calls.append(ToolCall(given if isinstance(given, str) else "", name, arguments, attached))
    return tuple(calls)


def _written(arguments: JSON) -> JSON:
    """Arguments that came as JSON where a text of it is usual."""
    if not can_be_written(arguments):
        return TOO_DEEP
    if arguments is None or isinstance(arguments, dict):
        return arguments or {}
    return orjson.dumps(arguments).decode()


def _attached(answered: Mapping[str, JSON], *names: str) -> dict[str, JSON]:
    """What the server may want back with an answer, as it came, within bounds."""
    found = {name: answered[name] for name in names if answered.get(name) is not None}
    if not found:
        return found
    return found if can_be_written(found) and len(orjson.dumps(found)) <= ATTACHED_BYTES else {}


def _usage(usage: JSON, request: ModelRequest, body: bytes) -> Usage:
    """The server's count; where it gives none, four characters a token."""
    if not isinstance(usage, dict) or not isinstance(usage.get("prompt_tokens"), int):
        return Usage(len(orjson.dumps(request.messages)) // 4, len(body) // 4)
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    completion = usage.get("completion_tokens")
    return Usage(
        max(usage["prompt_tokens"], 0),
        max(completion, 0) if isinstance(completion, int) else 0,
        cached if isinstance(cached, int) else 0,
    )


def _status_within(body: bytes) -> int:
    """The status of an error that came with 200, as OpenRouter sends those from behind it; else 0."""
    if b'"choices"' in body or b'"error"' not in body:
        return 0
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return 0
    error = data.get("error") if isinstance(data, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 0


def _status_error(model: str, status: int, answer: Answer, key: str) -> ModelError:
    """What the server answered; servers have been seen to repeat the key."""
    reason = _reason(answer.body)
    if key:
        reason = reason.replace(key, "***")
    return ModelError(
        f"{model} answered {status}: {reason[:300]}",
        "status",
        status=status,
        reason=reason[:2_000],
        retry_after=seconds_in(answer.retry_after),
    )


def _reason(body: bytes) -> str:
    """The server's own words: `error.message` where it follows the form, else the body's text; with those of
    the server behind it, which OpenRouter adds."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        data = None
    error = data.get("error", data) if isinstance(data, dict) else None
    if isinstance(error, dict):
        metadata = error.get("metadata")
        behind = metadata.get("raw") if isinstance(metadata, dict) else None
        said = error.get("message") or error.get("detail") or error
        error = f"{said}: {behind}" if behind else said
    return str(error) if error else body[:1000].decode("utf-8", "replace")


def _holds_tools(request: ModelRequest) -> bool:
    return bool(request.tools) or any(message.get("tool_calls") for message in request.messages)


def _tools_as_text(request: ModelRequest) -> list[dict[str, JSON]]:
    """The same conversation for a server that knows no `tools`: they, their calls and results as text."""
    messages = [_plain(message) for message in request.messages]
    if not request.tools:
        return messages
    lines = [
        "You can call tools. To call one, answer with nothing but a JSON object "
        '{"name": "…", "arguments": {…}} (or a list of such objects). Tools:'
    ]
    for tool in request.tools:
        function = tool["function"]
        parameters = orjson.dumps(function.get("parameters", {})).decode()
        lines.append(f"- {function['name']}: {function.get('description', '')} Arguments: {parameters}")
    first = messages[0]
    catalogue = "\n".join(lines)
    return [{**first, "content": f"{first['content']}\n\n{catalogue}"}, *messages[1:]]


def _plain(message: dict[str, JSON]) -> dict[str, JSON]:
    if message["role"] == "tool":
        return {"role": "user", "content": f"[tool result] {message['content']}"}
    calls = message.get("tool_calls")
    if not calls:
        return message
    functions = [call["function"] for call in calls]  # whose arguments are JSON already
    written = [f'{{"name":{_dumps(one["name"])},"arguments":{one["arguments"]}}}' for one in functions]
    return {"role": "assistant", "content": f"[{','.join(written)}]"}


def _dumps(value: JSON) -> str:
    return orjson.dumps(value).decode()
