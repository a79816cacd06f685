"""The client of a real model: what it posts, reads, retries, and says when a call fails."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from pydantic import SecretStr
from starlette.responses import Response

from app.llm.client import ANSWER_TOKENS, ChatModel
from app.llm.connection import ANSWER_BYTES
from app.llm.model import ModelAnswer, ModelError, ModelRequest, RetryBudget, ToolCall
from app.llm.reading import TOO_DEEP, read_completion, tools_as_text
from app.settings import Settings
from app.store.journal import Tokens
from app.turns.actions import Round
from app.turns.prompt import round_messages
from tests.standins.model import ModelServer, Play
from tests.standins.raw import HEAD, raw_server

REQUEST = ModelRequest("answer", [{"role": "user", "content": "x" * 400}])


def read(data: Any) -> ModelAnswer:
    return read_completion(orjson.dumps(data), REQUEST, "m")


def answer(**message: Any) -> ModelAnswer:
    return read({"choices": [{"message": message}]})


def calls(*entries: Any) -> tuple[ToolCall, ...]:
    return answer(tool_calls=list(entries)).calls


def call(arguments: Any = "{}", id: Any = "c", name: Any = "f") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_what_is_no_completion_is_a_fault_and_one_without_words_an_empty_answer() -> None:
    for body in (b"", b"<html>Bad gateway</html>", b"[]", b"{}", b'{"error": {}}', b'{"choices": [', b"\xff"):
        with pytest.raises(ModelError, match="m answered with"):
            read_completion(body, REQUEST, "m")
    for message in (None, {}, {"content": None}, {"content": 7}, {"content": "<think>only thoughts"}):
        for choices in ([], [None], [{"message": message}]):
            assert (read({"choices": choices}).text, read({"choices": choices}).calls) == ("", ())


def test_content_is_read_as_text() -> None:
    for content in [
        *(" hola\n", "ho\x00la", "<think>hm</think>hola"),
        [{"type": "text", "text": "ho"}, {"type": "text", "text": "la"}],
        [{"type": "image"}, None, 3, {"text": 4}, "hola"],
        [{"type": "refusal", "refusal": "hola"}],
    ]:
        assert answer(content=content).text == "hola"
    assert answer(content=None, refusal="I cannot help with that.").text == "I cannot help with that."
    for reason in ("length", "stop", None):
        said = read({"choices": [{"message": {"content": "so"}, "finish_reason": reason}]})
        assert said.cut == (reason == "length")


def test_what_servers_want_back_is_kept_as_it_came() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    entry = {**call(), "extra_content": signature, "index": 0}
    read = answer(tool_calls=[entry], reasoning_content="hm", reasoning_details=[{"text": "hm"}], audio="x")
    assert read.calls[0].attached == {"extra_content": signature}
    assert read.attached == {"reasoning_content": "hm", "reasoning_details": [{"text": "hm"}]}
    assert answer(tool_calls=[call()], reasoning_content=None).attached == {}
    assert answer(tool_calls=[call()], reasoning_content="x" * 1_000_000).attached == {}


@pytest.mark.parametrize("depth", [90, 300, 1000])
def test_an_answer_nested_deeper_than_it_can_be_written_is_survived(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    body = (
        f'{{"choices":[{{"message":{{"reasoning_details":{deep},"tool_calls":['
        f'{{"id":"1","extra_content":{deep},"function":{{"name":"a","arguments":{{"x":{deep}}}}}}},'
        f'{{"id":"2","function":{{"name":"a","arguments":{deep}}}}}]}}}}]}}'
    )
    read = read_completion(body.encode(), REQUEST, "m")
    said = Round(read.text, read.calls, attached=read.attached)
    messages = round_messages(said)
    assert len(orjson.dumps([messages, tools_as_text(replace(REQUEST, messages=messages))])) < 10_000
    assert bool(read.attached) == (read.calls[0].arguments != TOO_DEEP) == (depth < 200)


def test_a_call_is_read_and_what_is_none_is_left_out() -> None:
    for entry, expected in [
        (call('{"a": 1}'), ToolCall("c", "f", '{"a": 1}')),
        (call({"a": 1}), ToolCall("c", "f", {"a": 1})),
        (call('{"a": '), ToolCall("c", "f", '{"a": ')),
        (call(None), ToolCall("c", "f", {})),
        (call([1]), ToolCall("c", "f", "[1]")),
        ({"function": {"name": "f"}}, ToolCall("", "f", {})),
    ]:
        assert calls(entry) == (expected,)
    for entry in [None, "f", {}, {"function": "f"}, call(name=3)]:
        assert calls(entry, call(id="good")) == (ToolCall("good", "f", "{}"),)
    assert answer(function_call={"name": "f", "arguments": "{}"}).calls == (ToolCall("", "f", "{}"),)


def test_calls_of_one_answer_are_bounded_and_what_is_no_list_is_none() -> None:
    assert len(calls(*(call(id=str(n)) for n in range(1000)))) == 32
    for entries in (None, {}, "f"):
        assert answer(content="hola", tool_calls=entries).calls == ()


def test_usage_is_as_the_server_counted_and_estimated_where_it_does_not() -> None:
    counted = {"prompt_tokens": 7, "completion_tokens": 3}
    for usage, expected in [
        (counted | {"prompt_tokens_details": {"cached_tokens": 5}}, Tokens(7, 3, 5)),
        ({"prompt_tokens": -7, "completion_tokens": -3}, Tokens(0, 0, 0)),
        ({"prompt_tokens": 7, "prompt_tokens_details": None, "completion_tokens": "3"}, Tokens(7, 0, 0)),
    ]:
        assert read({"choices": [{}], "usage": usage}).tokens == expected
    for usage in (None, "7", {"prompt_tokens": "7"}):
        estimated = read({"choices": [{}], "usage": usage}).tokens
        assert 100 <= estimated.prompt <= 130
        assert estimated.completion > 0


TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "description": "Does f.", "parameters": {"type": "object"}},
    }
]
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You are Recado."},
    {"role": "user", "content": "hola"},
    {"role": "assistant", "content": None, "tool_calls": [call('{"a": 1}')]},
    {"role": "tool", "tool_call_id": "c", "content": '{"ok":true}'},
]


def test_a_call_becomes_text_in_the_very_words_of_its_arguments() -> None:
    for arguments in ('{"n": 12345678901234567890123}', '{"a": ' + "[" * 300 + "]" * 300 + "}"):
        talk = [*TALK[:2], {"role": "assistant", "content": None, "tool_calls": [call(arguments)]}, TALK[3]]
        assert arguments in tools_as_text(ModelRequest("answer", talk, TOOLS))[2]["content"]


def test_tools_calls_and_results_become_text() -> None:
    messages = tools_as_text(ModelRequest("answer", TALK, TOOLS))
    assert messages[0]["content"].startswith("You are Recado.\n\n")
    assert messages[0]["content"].endswith('- f: Does f. Arguments: {"type":"object"}')
    assert messages[1:] == [
        {"role": "user", "content": "hola"},
        {"role": "assistant", "content": '[{"name":"f","arguments":{"a": 1}}]'},
        {"role": "user", "content": '[tool result] {"ok":true}'},
    ]
    assert tools_as_text(ModelRequest("answer", TALK))[0] == TALK[0]


VLLM_TOOLS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
LITELLM = (
    "litellm.UnsupportedParamsError: Anthropic doesn't support tool calling without `tools=` param specified"
)
BEDROCK = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
GEMINI_SCHEMA = (
    "* GenerateContentRequest.tools[0].function_declarations[3].parameters.properties[when].format: only "
    "'enum' and 'date-time' are supported for STRING type"
)
OPENAI_SCHEMA = "Invalid schema for function 'mcp_home_set': 'oneOf' is not allowed at the top level"
KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
OPENAI_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens "
    "(8600 in the messages, 400 in the functions). Please reduce the length of the messages or functions."
)


def test_a_refusal_of_tools_is_for_good_or_for_this_call() -> None:
    for status, reason, speaks, for_good in [
        (400, "registry.ollama.ai/library/llama2:latest does not support tools", True, True),
        (400, VLLM_TOOLS, True, True),
        (404, "No endpoints found that support tool use.", True, True),
        (400, "Unrecognized request argument supplied: tools", True, True),
        (500, "tools param requires --jinja flag", True, True),
        *((400, one, True, False) for one in (LITELLM, BEDROCK, GEMINI_SCHEMA, OPENAI_SCHEMA, KIMI)),
        (500, "the tool parser does not support this", False, False),
        (401, "tools are not allowed for this key", False, False),
        (400, "Invalid value for temperature", False, False),
    ]:
        error = ModelError("m", "status", status=status, reason=reason)
        assert (error.refuses_tools, error.refuses_all_tools) == (speaks, for_good), reason


def test_a_prompt_that_is_too_long_is_told_from_other_refusals() -> None:
    for status, reason, too_long in [
        (400, OPENAI_LONG, True),
        (400, "the request exceeds the available context size. try increasing the context size", True),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", True),
        (400, "The input token count exceeds the maximum number of tokens allowed (1048576).", True),
        (413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000", True),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128", False),
        (429, "maximum context length is 8192 tokens", False),
    ]:
        assert ModelError("m", "status", status=status, reason=reason).is_too_long == too_long, reason
    assert not ModelError("m", "status", status=500, reason=OPENAI_LONG).retryable


def refuse(reason: str, status: int = 400) -> Response:
    return Response(json.dumps({"error": {"message": reason}}), status_code=status)


async def asked(server: ModelServer, *requests: ModelRequest) -> list[str]:
    """What one client reads of the answers."""
    client = ChatModel(Settings(_env_file=None, openai_base_url=server.url, llm_model="m"))
    try:
        return [(await client.complete(one)).text for one in requests]
    finally:
        await client.close()


@pytest.mark.parametrize(("reason", "later"), [(VLLM_TOOLS, False), (GEMINI_SCHEMA, True)])
async def test_tools_come_as_text_after_a_refusal_and_again_as_tools_where_one_of_them_was_meant(
    model: Callable[[Play], ModelServer], reason: str, later: bool
) -> None:
    def play(body: dict[str, Any]) -> Any:
        return refuse(reason) if "tools" in body and len(server.requests) == 1 else "here"

    server = model(play)
    request = ModelRequest("answer", TALK[:2], TOOLS)
    assert await asked(server, request, request) == ["here", "here"]
    assert ["tools" in body for body in server.requests] == [True, False, later]
    assert "- f: Does f." in server.requests[1]["messages"][0]["content"]


async def test_a_server_that_takes_no_calls_without_tools_gets_them_as_text_in_the_last_round(
    model: Callable[[Play], ModelServer],
) -> None:
    def play(body: dict[str, Any]) -> Any:
        return refuse(LITELLM) if any("tool_calls" in one for one in body["messages"]) else "all done"

    server = model(play)
    assert await asked(server, ModelRequest("answer", TALK)) == ["all done"]
    assert server.requests[-1]["messages"][-1]["content"] == '[tool result] {"ok":true}'


async def test_a_budget_asks_for_no_longer_answer_than_a_server_takes(
    model: Callable[[Play], ModelServer],
) -> None:
    server = model(lambda body: "here")
    request = ModelRequest("answer", TALK[:2], max_tokens=200_000)
    assert await asked(server, request, replace(request, max_tokens=100)) == ["here", "here"]
    assert [body["max_tokens"] for body in server.requests] == [ANSWER_TOKENS, 100]


@pytest.mark.parametrize(("code", "retryable"), [(502, True), (429, True), (401, False), ("bad", False)])
async def test_an_error_that_comes_with_200_has_its_own_status(
    model: Callable[[Play], ModelServer], code: Any, retryable: bool
) -> None:
    body = {"error": {"message": "Provider returned error", "code": code, "metadata": {"raw": "it is full"}}}
    server = model(lambda _: Response(json.dumps(body)))
    with pytest.raises(ModelError, match="it is full") as raised:
        await asked(server, ModelRequest("answer", TALK[:2]))
    assert raised.value.retryable == retryable


HOLA = orjson.dumps({"choices": [{"message": {"content": "hola"}}]})


async def ask(url: str, key: str = "secret", seconds: float = 5) -> str:
    settings = Settings(
        _env_file=None, openai_base_url=url, openai_api_key=SecretStr(key), llm_model="m", llm_timeout=seconds
    )
    client = ChatModel(settings)
    try:
        return (await client.complete(ModelRequest("answer", TALK[:2]))).text
    finally:
        await client.close()


async def test_a_call_is_posted_with_the_key_to_the_configured_address() -> None:
    async with raw_server(HEAD % len(HOLA), HOLA) as (url, heads):
        assert await ask(url) == "hola"
    head = heads[0].lower()
    assert head.startswith(b"post /v1/chat/completions http/1.1")
    assert b"authorization: bearer secret" in head
    assert b"content-type: application/json" in head


@pytest.mark.parametrize(
    ("writes", "hang", "cause", "words"),
    [
        ((), False, "no_answer", "gave no answer"),
        ((b"garbage\r\n\r\n",), False, "no_answer", "gave no answer"),
        ((HEAD % 10, b"half"), False, "no_answer", "gave no answer"),
        ((), True, "timed_out", r"no answer within 0\.5 s"),
        ((HEAD % (4 * ANSWER_BYTES), b" " * (ANSWER_BYTES + 1)), True, "no_answer", "more than"),
        ((b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nxx",), False, "no_answer", "compressed"),
    ],
    ids=["nothing", "garbage", "half", "silence", "too large", "compressed"],
)
async def test_a_broken_answer_is_a_model_error_that_says_why(
    writes: tuple[bytes, ...], hang: bool, cause: str, words: str
) -> None:
    async with raw_server(*writes, hang=hang) as (url, _):
        with pytest.raises(ModelError, match=words) as raised:
            await ask(url, seconds=0.5 if cause == "timed_out" else 5)
    assert (raised.value.cause, raised.value.retryable) == (cause, cause == "no_answer")


async def test_a_refused_connection_is_not_sent() -> None:
    async with raw_server() as (closed, _):
        pass
    for url in (closed, "http://name.invalid/v1"):
        with pytest.raises(ModelError, match="no connection") as raised:
            await ask(url)
        assert (raised.value.cause, raised.value.retryable) == ("not_sent", True)


async def test_a_redirect_is_not_followed() -> None:
    async with raw_server(HEAD % 0) as (elsewhere, heads):
        moved = b"HTTP/1.1 307 Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % elsewhere.encode()
        async with raw_server(moved) as (url, _):
            with pytest.raises(ModelError, match="answered 307"):
                await ask(url)
    assert heads == []


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(HEAD % len(HOLA), HOLA) as (proxy, heads):
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("no_proxy", "")
        assert await ask("http://name.invalid/v1") == "hola"
    assert heads[0].startswith(b"POST http://name.invalid/v1/chat/completions")


async def test_a_proxy_does_not_see_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n") as (proxy, heads):
        named = proxy.removesuffix("/v1/").replace("http://", "http://me:password@")
        monkeypatch.setenv("https_proxy", named)
        monkeypatch.setenv("no_proxy", "")
        with pytest.raises(ModelError, match="407 Who are you") as refused:
            await ask("https://name.invalid/v1")
    assert heads[0].startswith(b"CONNECT name.invalid:443")
    assert b"secret" not in heads[0]
    assert "password" not in str(refused.value)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "nonsense://x"])
async def test_a_wrong_proxy_is_a_model_error(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(ModelError) as raised:
        await ask("http://name.invalid/v1")
    assert raised.value.cause == "not_sent"


async def test_a_configuration_that_cannot_work_says_why() -> None:
    for url, key, fault in [
        ("127.0.0.1:8000/v1", "k", "the address is not of the form http://host"),
        ("http://host/v1", "k\n", "the key holds a line break"),
        ("http://host/v1", "clé", "the key holds"),
    ]:
        with pytest.raises(ModelError, match=fault) as raised:
            await ask(url, key)
        assert raised.value.cause == "not_sent"


async def test_a_key_that_the_server_repeats_is_masked(model: Callable[[Play], ModelServer]) -> None:
    server = model(lambda _: Response('{"error": "wrong key: secret"}', 401, {"Retry-After": "7"}))
    with pytest.raises(ModelError) as raised:
        await ask(server.url)
    assert str(raised.value) == "m answered 401: wrong key: ***"
    assert (raised.value.retry_after, raised.value.retryable) == (7, False)


class Failing:
    """A model that raises the errors it was given, then answers."""

    def __init__(self, *errors: ModelError, forever: bool = False) -> None:
        self.failure = ""
        self.calls = 0
        self._errors = list(errors)
        self._forever = forever

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.calls += 1
        if self._forever:
            raise self._errors[0]
        if self._errors:
            raise self._errors.pop(0)
        return ModelAnswer("hola")


def passing(after: float | None = 0.01) -> ModelError:
    return ModelError("busy", "status", status=503, retry_after=after)


async def test_passing_faults_are_tried_again() -> None:
    model = Failing(passing(), passing())
    answer = await RetryBudget(5).complete(model, REQUEST)
    assert (answer.text, model.calls) == ("hola", 3)


async def test_a_lasting_fault_is_not_tried_again() -> None:
    model = Failing(ModelError("wrong key", "status", status=401))
    with pytest.raises(ModelError, match="wrong key"):
        await RetryBudget(5).complete(model, REQUEST)
    assert model.calls == 1


async def test_a_longer_wait_than_is_left_is_not_begun() -> None:
    model = Failing(passing(60), forever=True)
    started = time.monotonic()
    with pytest.raises(ModelError):
        await RetryBudget(15).complete(model, REQUEST)
    assert (model.calls, time.monotonic() - started < 1) == (1, True)


async def test_calls_of_a_turn_share_its_patience() -> None:
    patience = RetryBudget(0.25)
    await patience.complete(Failing(passing(0.15)), REQUEST)
    model = Failing(passing(0.15))
    with pytest.raises(ModelError):
        await patience.complete(model, REQUEST)
    assert model.calls == 1
