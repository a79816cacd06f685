"""Answers of servers as results of ours."""

import base64
import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.mcp.adapter import LARGEST_FILE, MAX_FILES, MAX_TEXT, to_result
from app.mcp.definitions import ServerDefinition
from app.tools.result import ReturnedFile, bounded

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def image(data: bytes = PNG, **beside: Any) -> dict[str, Any]:
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png", **beside}


def test_texts_are_joined_and_json_in_them_stays_text() -> None:
    result = to_result({"content": [text("one"), text("two")]})
    assert (result.ok, result.data, result.meta) == (True, "one\ntwo", {})
    assert to_result({"content": [text('{"a": 1}')]}).data == '{"a": 1}'
    assert to_result({"content": []}).data == ""
    assert to_result({}).data == ""


def test_a_tools_error_is_a_failure_with_its_text() -> None:
    result = to_result({"isError": True, "content": [text("no such repository\u202e"), text("at /srv")]})
    assert result.code == "TOOL_ERROR"
    assert result.error is not None
    assert result.error.message == "no such repository\\u202e\nat /srv"
    assert result.error.hint
    long = to_result({"isError": True, "content": [text("x" * 100_000)]})
    assert long.error is not None
    assert len(long.error.message) == 2000
    structured = to_result({"isError": True, "content": [], "structuredContent": {"error": "over the quota"}})
    assert structured.error is not None
    assert "over the quota" in structured.error.message
    silent = to_result({"isError": True})
    assert silent.error is not None
    assert "no reason" in silent.error.message


def test_secrets_are_removed_everywhere_in_a_result() -> None:
    for length in [10, MAX_TEXT]:
        server = ServerDefinition("s", hidden=("k3y-of-mine",))
        url = "https://x.example/?key=k3y-of-mine"
        blocks = [text(url), {"type": "resource", "resource": {"uri": url, "text": "k3y-of-mine"}}]
        answer = {"content": blocks, "structuredContent": {"k3y-of-mine": [url, "x" * length]}}
        for raw in (answer, answer | {"isError": True}, {**answer, "content": [], "isError": True}):
            written = to_result(raw, server).to_json()
            assert "k3y-of-mine" not in written
            assert "…" in written


def test_files_become_attachments_described_in_the_data() -> None:
    blob = base64.b64encode(b"%PDF").decode()
    report = {"uri": "file:///out/the%20report.pdf", "mimeType": "application/pdf", "blob": blob}
    sound = {"type": "audio", "data": base64.b64encode(b"RIFF").decode(), "mimeType": "audio/wav"}
    result = to_result({"content": [text("done"), image(), sound, {"type": "resource", "resource": report}]})
    assert result.attachments == (
        ReturnedFile(PNG, "image/png"),
        ReturnedFile(b"RIFF", "audio/wav"),
        ReturnedFile(b"%PDF", "application/pdf", "the report.pdf"),
    )
    assert result.data == {
        "text": "done",
        "content": [
            {"type": "image", "mime": "image/png", "bytes": len(PNG), "attachment": 0},
            {"type": "audio", "mime": "audio/wav", "bytes": 4, "attachment": 1},
            {
                "type": "resource",
                "mime": "application/pdf",
                "uri": report["uri"],
                "bytes": 4,
                "attachment": 2,
            },
        ],
    }
    beside = to_result({"content": [image()], "structuredContent": {"celsius": 5}})
    assert beside.data["data"] == {"celsius": 5}


def test_an_unusable_block_is_described_and_the_others_count() -> None:
    for block, problem in [
        ({"type": "image", "data": "not base64!", "mimeType": "image/png"}, "not base64"),
        ({"type": "image", "mimeType": "image/png"}, "no data"),
        ({"type": "image", "data": 5}, "no data"),
        ({"type": "resource"}, "no data"),
        ({"type": "hologram"}, "not known"),
        ({}, "not known"),
        ("text", "not known"),
    ]:
        result = to_result({"content": [text("kept"), block]})
        assert result.ok
        assert result.data["text"] == "kept"
        assert problem in result.data["content"][0]["problem"]
        assert result.attachments == ()


def test_files_are_bounded_in_number_and_size() -> None:
    many = to_result({"content": [image()] * (MAX_FILES + 2)})
    assert len(many.attachments) == MAX_FILES
    assert "left out" in many.data["content"][-1]["problem"]
    large = to_result({"content": [{"type": "image", "data": "A" * (LARGEST_FILE * 4 // 3 + 8)}]})
    assert large.attachments == ()
    assert "larger than 16 MiB" in large.data["content"][0]["problem"]


def test_a_huge_result_is_cut_to_what_a_call_may_return() -> None:
    for said in ["x", "\x00", "é", "\U0001f600"]:
        result = to_result({"content": [text(said * 300_000)]})
        assert (result.meta["truncated"], result.meta["size"]) == (True, 300_000)
        assert len(result.data) == MAX_TEXT
        assert bounded(result).ok
        structured = to_result({"structuredContent": {"a": [said] * 300_000}})
        assert structured.meta["truncated"]
        assert bounded(structured).ok


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "data", "resource", "uri", "blob", "mimeType", "name"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
BLOCKS = st.dictionaries(
    st.sampled_from(["type", "text", "data", "resource", "uri", "blob", "mimeType", "name"]),
    ANY | st.sampled_from(["text", "image", "audio", "resource", "resource_link", "http://[", "QUJD"]),
)


@given(
    ANY
    | st.fixed_dictionaries(
        {}, optional={"content": st.lists(BLOCKS) | ANY, "structuredContent": ANY, "isError": ANY}
    )
)
def test_any_answer_becomes_a_result(raw: Any) -> None:
    result = to_result(raw)
    json.loads(result.to_json())
    assert bounded(result).ok == result.ok


def test_a_secret_of_several_lines_is_removed_also_inside_json() -> None:
    for secret in ("-----BEGIN KEY-----\nMIIE\n-----END", '{"private_key": "ñandú-1234"}'):
        server = ServerDefinition("s", command="s", env=(("KEY", secret),), hidden=(secret,))
        for form in (str, json.dumps, lambda text: json.dumps(text, ensure_ascii=False)):
            text = f'{{"KEY": {form(secret)}}}'
            told = to_result({"content": [{"type": "text", "text": text}]}, server=server)
            for said in (str(told.data), server.mask(text)):
                assert not {"MIIE", "private_key"} & set(re.findall(r"\w+", said))
                assert said.startswith('{"KEY": ')
