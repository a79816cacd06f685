"""What a chat-completions endpoint may answer, however odd."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from app.llm.client import TOO_DEEP, _tools_as_text, read_completion
from app.llm.model import ModelAnswer, ModelError, ModelRequest, ToolCall, Usage
from app.turns.actions import Round
from app.turns.prompt import round_messages

REQUEST = ModelRequest("answer", [{"role": "user", "content": "x" * 400}])


def read(data: Any) -> ModelAnswer:
    return read_completion(orjson.dumps(data), REQUEST, "m")


def answer(**message: Any) -> ModelAnswer:
    return read({"choices": [{"message": message}]})


def calls(*entries: Any) -> tuple[ToolCall, ...]:
    return answer(tool_calls=list(entries)).calls


def call(arguments: Any = "{}", id: Any = "c", name: Any = "f") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"error": {"message": "no such model"}}',
        b'{"choices": null}',
        b'{"choices": {"message": {}}}',
        b'{"choices": "x"}',
        b'{"choices": [',
        b"\xff\xfe",
    ],
    ids=lambda body: repr(body[:30]),
)
def test_what_is_no_completion_is_a_fault(body: bytes) -> None:
    with pytest.raises(ModelError, match="m answered with"):
        read_completion(body, REQUEST, "m")


def test_the_servers_own_words_are_told() -> None:
    with pytest.raises(ModelError, match="no such model"):
        read({"error": {"message": "no such model"}})


@pytest.mark.parametrize(
    "choices",
    [
        [],
        [None],
        ["text"],
        [{}],
        [{"message": None}],
        [{"message": "text"}],
        [{"message": {}}],
        [{"message": {"content": None}}],
        [{"message": {"content": 7}}],
        [{"message": {"content": {"text": "x"}}}],
        [{"message": {"content": [], "tool_calls": []}}],
        [{"message": {"content": "<think>only thoughts"}}],
    ],
    ids=str,
)
def test_a_completion_without_words_is_an_empty_answer(choices: Any) -> None:
    assert (read({"choices": choices}).text, read({"choices": choices}).calls) == ("", ())


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hola", "hola"),
        (" hola\n", "hola"),
        ("ho\x00la", "hola"),
        ("<think>hm</think>hola", "hola"),
        ([{"type": "text", "text": "ho"}, {"type": "text", "text": "la"}], "hola"),
        ([{"type": "image"}, None, 3, {"text": 4}, "hola"], "hola"),
    ],
)
def test_content_is_read_as_text(content: Any, text: str) -> None:
    assert answer(content=content).text == text


def test_what_servers_want_back_is_kept_as_it_came() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    entry = {**call(), "extra_content": signature, "index": 0}
    read = answer(tool_calls=[entry], reasoning_content="hm", reasoning_details=[{"text": "hm"}], audio="x")
    assert read.calls[0].attached == {"extra_content": signature}
    assert read.attached == {"reasoning_content": "hm", "reasoning_details": [{"text": "hm"}]}
    assert answer(tool_calls=[call()], reasoning_content=None).attached == {}
    assert answer(tool_calls=[call()], reasoning_content="x" * 1_000_000).attached == {}


@pytest.mark.parametrize("depth", [90, 245, 300, 1000])
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
    assert len(orjson.dumps([messages, _tools_as_text(replace(REQUEST, messages=messages))])) < 10_000
    assert bool(read.attached) == (read.calls[0].arguments != TOO_DEEP) == (depth < 200)


@pytest.mark.parametrize(("reason", "cut"), [("length", True), ("stop", False), (None, False)])
def test_an_answer_that_its_server_cut_is_known_as_such(reason: Any, cut: bool) -> None:
    assert read({"choices": [{"message": {"content": "so"}, "finish_reason": reason}]}).cut == cut


def test_a_refusal_in_a_field_of_its_own_is_the_answer() -> None:
    assert answer(content=None, refusal="I cannot help with that.").text == "I cannot help with that."
    assert answer(content=[{"type": "refusal", "refusal": "No."}]).text == "No."


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (call('{"a": 1}'), ToolCall("c", "f", '{"a": 1}')),
        (call({"a": 1}), ToolCall("c", "f", {"a": 1})),
        (call('{"a": '), ToolCall("c", "f", '{"a": ')),
        (call(None), ToolCall("c", "f", {})),
        (call([1]), ToolCall("c", "f", "[1]")),
        (call(7), ToolCall("c", "f", "7")),
        (call(id=None), ToolCall("", "f", "{}")),
        (call(id=7), ToolCall("", "f", "{}")),
        ({"function": {"name": "f"}}, ToolCall("", "f", {})),
    ],
    ids=repr,
)
def test_a_call_is_read(entry: Any, expected: ToolCall) -> None:
    assert calls(entry) == (expected,)


@pytest.mark.parametrize(
    "entry", [None, "f", 3, [], {}, {"function": None}, {"function": "f"}, call(name=None), call(name=3)]
)
def test_what_is_no_call_is_left_out(entry: Any) -> None:
    assert calls(entry, call(id="good")) == (ToolCall("good", "f", "{}"),)


@pytest.mark.parametrize("entries", [None, {}, "f", 3])
def test_calls_that_are_no_list_are_none(entries: Any) -> None:
    read_back = answer(content="hola", tool_calls=entries)
    assert (read_back.text, read_back.calls) == ("hola", ())


def test_the_older_form_of_a_call_is_read() -> None:
    assert answer(function_call={"name": "f", "arguments": "{}"}).calls == (ToolCall("", "f", "{}"),)


def test_calls_of_one_answer_are_bounded() -> None:
    assert len(calls(*(call(id=str(n)) for n in range(1000)))) == 32


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3}, Usage(7, 3, 0)),
        (
            {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}},
            Usage(7, 3, 5),
        ),
        ({"prompt_tokens": 7}, Usage(7, 0, 0)),
        ({"prompt_tokens": -7, "completion_tokens": -3}, Usage(0, 0, 0)),
        ({"prompt_tokens": 7, "prompt_tokens_details": None, "completion_tokens": "3"}, Usage(7, 0, 0)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": None}}, Usage(7, 0, 0)),
    ],
    ids=str,
)
def test_usage_is_as_the_server_counted(usage: Any, expected: Usage) -> None:
    assert read({"choices": [{}], "usage": usage}).usage == expected


@pytest.mark.parametrize("usage", [None, [], "7", {}, {"prompt_tokens": "7"}, {"prompt_tokens": None}])
def test_usage_is_estimated_where_the_server_counts_nothing(usage: Any) -> None:
    counted = read({"choices": [{}], "usage": usage}).usage
    assert 100 <= counted.prompt <= 130
    assert counted.completion > 0


@pytest.mark.parametrize(("model", "expected"), [("m-2", "m-2"), (None, "m"), ("", "m")])
def test_the_model_is_the_one_that_answered(model: Any, expected: str) -> None:
    assert read({"choices": [{}], "model": model}).model == expected


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


@pytest.mark.parametrize(
    "arguments", ['{"n": 12345678901234567890123}', '{"a": ' + "[" * 300 + "]" * 300 + "}"]
)
def test_a_call_becomes_text_in_the_very_words_of_its_arguments(arguments: str) -> None:
    talk = [*TALK[:2], {"role": "assistant", "content": None, "tool_calls": [call(arguments)]}, TALK[3]]
    assert arguments in _tools_as_text(ModelRequest("answer", talk, TOOLS))[2]["content"]


def test_tools_calls_and_results_become_text() -> None:
    messages = _tools_as_text(ModelRequest("answer", TALK, TOOLS))
    assert messages[0]["content"].startswith("You are Recado.\n\n")
    assert messages[0]["content"].endswith('- f: Does f. Arguments: {"type":"object"}')
    assert messages[1:] == [
        {"role": "user", "content": "hola"},
        {"role": "assistant", "content": '[{"name":"f","arguments":{"a": 1}}]'},
        {"role": "user", "content": '[tool result] {"ok":true}'},
    ]


def test_without_tools_no_catalogue_is_written() -> None:
    assert _tools_as_text(ModelRequest("answer", TALK))[0] == TALK[0]


def test_the_request_itself_stays_as_it_was() -> None:
    before = orjson.dumps(TALK)
    _tools_as_text(ModelRequest("answer", TALK, TOOLS))
    assert orjson.dumps(TALK) == before
