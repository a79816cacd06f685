"""A real model behind any OpenAI-compatible chat-completions endpoint."""

import re
from collections.abc import Sequence

import orjson

from app.endpoint import Answer, Endpoint, NoAnswer, NotSent, TimedOut
from app.llm.model import ModelAnswer, ModelError, ModelRequest, ToolCall, Usage
from app.llm.reading import without_thoughts
from app.messages import JSON, seconds_in
from app.right_of_way import RightOfWay
from app.settings import Settings

OPENAI_URL = "https://api.openai.com/v1"
_NO_TOOLS = re.compile(
    r"(support|unsupported|allow|enabl|unknown|unrecogni).*\b(tools?|functions?)\b"
    r"|\b(tools?|functions?)\b.*(support|allow|enabl|unknown|unrecogni)",
    re.IGNORECASE,
)


class ChatModel:
    """Chat completions: `LLM_MODEL` answers, `CLASSIFIER_MODEL` classifies."""

    def __init__(self, settings: Settings, right_of_way: RightOfWay | None = None) -> None:
        self._settings = settings
        self._key = settings.openai_api_key.get_secret_value()
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        url = settings.openai_base_url or OPENAI_URL
        self._endpoint = Endpoint(url, headers, proxies=True, right_of_way=right_of_way)
        self.tools_refused = False
        """The server answered 400 to `tools`: they are written into the prompt instead."""
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
        if request.tools and not self.tools_refused:
            try:
                return await self._post(request, request.messages, request.tools)
            except ModelError as error:
                if error.status not in (400, 404, 422) or not _NO_TOOLS.search(str(error)):
                    raise
            answer = await self._post(request, _tools_as_text(request), [])
            self.tools_refused = True
            return answer
        if self.tools_refused:
            return await self._post(request, _tools_as_text(request), [])
        return await self._post(request, request.messages, [])

    async def _post(
        self, request: ModelRequest, messages: Sequence[JSON], tools: Sequence[JSON]
    ) -> ModelAnswer:
        classify = request.purpose == "classify"
        model = self._settings.classifier_model if classify else self._settings.llm_model
        body: dict[str, JSON] = {"model": model, "messages": messages}
        if tools:
            body["tools"] = tools
        if request.max_tokens:
            own = not self._settings.openai_base_url  # OpenAI's newer models refuse the older name
            body["max_completion_tokens" if own else "max_tokens"] = request.max_tokens
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
            raise _status_error(model, answer, self._key)
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
    text = without_thoughts(_text(message.get("content")))
    return ModelAnswer(
        text, _calls(message), _usage(data.get("usage"), request, body), str(data.get("model") or model)
    )


def _text(content: JSON) -> str:
    """Content as text: also the list form `[{"type": "text", "text": …}]`."""
    if isinstance(content, str):
        return content.replace("\x00", "")
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
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
        if not isinstance(arguments, str | dict):
            arguments = {} if arguments is None else orjson.dumps(arguments).decode()
        name = entry.get("id")
        calls.append(ToolCall(name if isinstance(name, str) else "", function["name"], arguments))
    return tuple(calls)


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


def _status_error(model: str, answer: Answer, key: str) -> ModelError:
    """What the server answered; servers have been seen to repeat the key."""
    reason = _reason(answer.body)
    if key:
        reason = reason.replace(key, "***")
    return ModelError(
        f"{model} answered {answer.status}: {reason[:300]}",
        "status",
        status=answer.status,
        retry_after=seconds_in(answer.retry_after),
    )


def _reason(body: bytes) -> str:
    """The server's own words: `error.message` where it follows the form, else the body's text."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        data = None
    error = data.get("error", data) if isinstance(data, dict) else None
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return str(error) if error else body[:1000].decode("utf-8", "replace")


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
    written = [
        {"name": call["function"]["name"], "arguments": orjson.loads(call["function"]["arguments"])}
        for call in calls
    ]
    return {"role": "assistant", "content": orjson.dumps(written).decode()}
