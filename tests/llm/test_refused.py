"""What servers say where they refuse a call, and what of it can be mended."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.responses import Response

from app.llm.client import ANSWER_TOKENS, SHORT_ANSWER_TOKENS, ChatModel
from app.llm.model import ModelError, ModelRequest
from app.llm.refused import is_too_long, speaks_of_tools, takes_no_tools, wants_a_shorter_answer
from app.settings import Settings
from tests.llm.test_client import TALK, TOOLS
from tests.standins.model import ModelServer, Play

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
GEMINI_SIGNATURE = "Function call is missing a thought_signature in functionCall parts. "
KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
OPENAI_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens "
    "(8600 in the messages, 400 in the functions). Please reduce the length of the messages or functions."
)
OPENAI_ANSWER = "max_tokens is too large: 99000. This model supports at most 16384 completion tokens"
OPENAI_NAME = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
VLLM_ANSWER = (
    "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 "
    "tokens and your request has 3121 input tokens (8192 > 8192 - 3121)."
)


@pytest.mark.parametrize(
    ("status", "reason", "speaks", "for_good"),
    [
        (400, "registry.ollama.ai/library/llama2:latest does not support tools", True, True),
        (400, "deepseek-reasoner does not support Function Calling", True, True),
        (400, VLLM_TOOLS, True, True),
        (404, "No endpoints found that support tool use.", True, True),
        (400, "Unrecognized request argument supplied: tools", True, True),
        (500, "tools param requires --jinja flag", True, True),
        (500, "Unsupported param: tools", True, True),
        (400, LITELLM, True, False),
        (400, BEDROCK, True, False),
        (400, GEMINI_SCHEMA, True, False),
        (400, OPENAI_SCHEMA, True, False),
        (400, GEMINI_SIGNATURE, True, False),
        (400, KIMI, True, False),
        (500, "the tool parser does not support this", False, False),
        (401, "tools are not allowed for this key", False, False),
        (404, "model 'qwen3' not found", False, False),
        (400, "Invalid value for temperature", False, False),
    ],
)
def test_a_refusal_of_tools_is_for_good_or_for_this_call(
    status: int, reason: str, speaks: bool, for_good: bool
) -> None:
    assert (speaks_of_tools(status, reason), takes_no_tools(status, reason)) == (speaks, for_good)


@pytest.mark.parametrize(
    ("status", "reason", "too_long"),
    [
        (400, OPENAI_LONG, True),
        (400, "the request exceeds the available context size. try increasing the context size", True),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", True),
        (
            400,
            "The input token count exceeds the maximum number of tokens allowed (1048576).",
            True,
        ),
        (400, "Your request exceeded model token limit: 8192", True),
        (413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000", True),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128", False),
        (400, "Invalid 'messages[2].tool_calls[0].id': string too long", False),
        (400, "model does not support tools", False),
        (429, "maximum context length is 8192 tokens", False),
    ],
)
def test_a_prompt_that_is_too_long_is_told_from_other_refusals(
    status: int, reason: str, too_long: bool
) -> None:
    assert is_too_long(status, reason) == too_long
    assert not ModelError("m", "status", status=500, reason=OPENAI_LONG).retryable


@pytest.mark.parametrize("reason", [OPENAI_ANSWER, OPENAI_NAME, VLLM_ANSWER])
def test_a_refusal_may_be_about_the_length_of_the_answer(reason: str) -> None:
    assert wants_a_shorter_answer(400, reason)
    assert not wants_a_shorter_answer(400, OPENAI_LONG)


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
    def play(body: dict[str, Any]) -> Any:
        return refuse(OPENAI_ANSWER) if body["max_tokens"] > 4096 else "here"

    server = model(play)
    request = ModelRequest("answer", TALK[:2], max_tokens=200_000)
    assert await asked(server, request, request) == ["here", "here"]
    assert [body["max_tokens"] for body in server.requests] == [
        ANSWER_TOKENS,
        SHORT_ANSWER_TOKENS,
        SHORT_ANSWER_TOKENS,
    ]


async def test_a_server_that_knows_only_the_newer_name_of_the_limit_gets_that(
    model: Callable[[Play], ModelServer],
) -> None:
    server = model(lambda body: refuse(OPENAI_NAME) if "max_tokens" in body else "here")
    request = ModelRequest("answer", TALK[:2], max_tokens=100)
    assert await asked(server, request) == ["here"]
    assert server.requests[-1]["max_completion_tokens"] == 100


@pytest.mark.parametrize(("code", "retryable"), [(502, True), (429, True), (401, False), ("bad", False)])
async def test_an_error_that_comes_with_200_has_its_own_status(
    model: Callable[[Play], ModelServer], code: Any, retryable: bool
) -> None:
    body = {"error": {"message": "Provider returned error", "code": code, "metadata": {"raw": "it is full"}}}
    server = model(lambda _: Response(json.dumps(body)))
    with pytest.raises(ModelError, match="it is full") as raised:
        await asked(server, ModelRequest("answer", TALK[:2]))
    assert raised.value.retryable == retryable
