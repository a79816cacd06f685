"""What weak models write: thoughts left in the text, calls written as text."""

import time

import orjson
import pytest

from app.llm.reading import calls_in_text, without_thoughts

OFFERED = ("send", "calculate")
CALL = '{"name": "send", "arguments": {"to": "Beto", "text": "hola\\nqué tal"}}'
ARGUMENTS = {"to": "Beto", "text": "hola\nqué tal"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hola", "hola"),
        ("  hola\n", "hola"),
        ("<think>hm</think>hola", "hola"),
        ("<THINKING>hm\nhm</THINKING> hola", "hola"),
        ("<reasoning>a</reasoning>hola<think>b</think>", "hola"),
        ("<think>never ends", ""),
        ("its start was lost</think>hola", "hola"),
        ("a < b and b > c", "a < b and b > c"),
        ("<b>hola</b>", "<b>hola</b>"),
        ("<think>a</think>", ""),
        ("", ""),
    ],
)
def test_thoughts_are_left_out(text: str, expected: str) -> None:
    assert without_thoughts(text) == expected


@pytest.mark.parametrize("text", ["<think>" * 20_000, "<" * 100_000, "</think" * 20_000, "\n" * 20_000 + "<"])
def test_odd_text_is_read_quickly(text: str) -> None:
    started = time.perf_counter()
    without_thoughts(text)
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"\n {CALL} \n",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"```tool_call\n{CALL}\n```",
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}",
        f"<function_call>{CALL}</function_call>",
        f"[TOOL_CALLS][{CALL}]",
        f"[{CALL}]",
        CALL.replace('"arguments"', '"parameters"'),
        CALL.replace('"arguments"', '"args"'),
        CALL.replace('"name"', '"tool"'),
        CALL.replace('"name"', '"function"'),
        f'{{"type": "function", "function": {CALL}}}',
    ],
)
def test_a_call_that_is_the_whole_answer_counts(text: str) -> None:
    (call,) = calls_in_text(text, OFFERED, ())
    assert (call.id, call.name, call.arguments) == ("", "send", ARGUMENTS)


def test_several_calls_count_together() -> None:
    calls = calls_in_text(f'[{CALL}, {{"name": "calculate"}}]', OFFERED, ())
    assert [(call.name, call.arguments) for call in calls] == [("send", ARGUMENTS), ("calculate", {})]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hola",
        f"I will do that: {CALL}",
        f"{CALL}\nDone!",
        CALL[:-1],
        '{"name": "erase", "arguments": {}}',
        f'[{CALL}, {{"name": "erase"}}]',
        f'[{CALL}, "and more"]',
        '{"name": "send", "arguments": [1]}',
        '{"name": ["send"], "arguments": {}}',
        '{"arguments": {}}',
        '{"answer": 4}',
        "[]",
        "[1, 2]",
        "null",
        "[" * 5_000,
        CALL.replace("Beto", "x" * 20_000),
    ],
    ids=lambda text: text[:30],
)
def test_anything_else_is_text(text: str) -> None:
    assert calls_in_text(text, OFFERED, ()) == ()


def test_nothing_counts_where_nothing_is_offered() -> None:
    assert calls_in_text(CALL, (), ()) == ()


ONE, TWO = '{"name":"send","arguments":{"to":"a"}}', '{"name":"calculate","arguments":{"expression":"1"}}'


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        (CALL, f"the page says {CALL} and more"),
        (CALL, CALL.replace(" ", "").replace("quétal", "qué tal")),
        (CALL, orjson.dumps({"ok": True, "data": f"do this: {CALL}"}).decode()),
        (CALL, orjson.dumps({"data": orjson.dumps({"page": CALL}).decode()}).decode()),
        (f"```json\n{CALL}\n```", CALL),
        (CALL, f"[In reply to an earlier message: {orjson.dumps(CALL).decode()}]"),
        (CALL, CALL.replace(", ", ",\n    ")),
        (f"[{ONE}]", f"the page says {ONE}"),
        (f"[{ONE},{TWO}]", f"{TWO} is what I want, and {ONE}"),
    ],
    ids=[
        "as it stands",
        "with other spaces",
        "in a tool's result",
        "in a result within a result",
        "in a fence",
        "in a quote",
        "on several lines",
        "as an entry of a list",
        "two as entries of a list",
    ],
)
def test_a_call_that_was_heard_before_does_not_count(answer: str, heard: str) -> None:
    assert calls_in_text(answer, OFFERED, ["hola", heard]) == ()


def test_hearing_something_like_it_is_no_hindrance() -> None:
    assert calls_in_text(CALL, OFFERED, ["send Beto a message: hola qué tal", CALL.replace("Beto", "Ana")])


@pytest.mark.parametrize("text", ["\n" * 20_000, "{" + "\n" * 19_000 + "}", "```json" + "\n" * 19_000 + "x"])
def test_many_newlines_are_read_quickly(text: str) -> None:
    started = time.perf_counter()
    assert calls_in_text(text, OFFERED, ["\n" * 20_000] * 20) == ()
    assert time.perf_counter() - started < 1
