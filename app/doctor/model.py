"""Check of the model by one real tool call, with the cure of its failure."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.commands.configuration import check_model_address
from app.doctor.finding import FAIL, OK, WARN, Finding
from app.doctor.window import check_window
from app.errors import ConfigurationError
from app.llm.model import ModelAnswer, ModelError, ModelRequest
from app.messages import JSON
from app.settings import Settings

if TYPE_CHECKING:
    from app.llm.client import ChatModel

_CONNECT = "connect one with OPENAI_BASE_URL (or OPENAI_API_KEY) and LLM_MODEL: docs/models.md"
_TOOL: JSON = {
    "type": "function",
    "function": {
        "name": "add_numbers",
        "description": "Adds two whole numbers and gives their sum.",
        "parameters": {
            "type": "object",
            "properties": {"first": {"type": "integer"}, "second": {"type": "integer"}},
            "required": ["first", "second"],
        },
    },
}
_MESSAGES: list[dict[str, JSON]] = [
    {
        "role": "system",
        "content": "You never calculate yourself: for every sum you call the tool add_numbers.",
    },
    {"role": "user", "content": "How much is 20 plus 22?"},
]


def check_model(settings: Settings) -> Iterator[Finding]:
    """Name the model that answers; give a real one a sum and one tool to do it with."""
    if not settings.has_model:
        yield from _offline(settings)
        return
    try:
        check_model_address(settings)
    except ConfigurationError as error:
        fact, _, cure = str(error).partition("; ")
        yield Finding(FAIL, "model", fact, cure)
        return
    yield from asyncio.run(_try(settings))


def _offline(settings: Settings) -> Iterator[Finding]:
    key = bool(settings.openai_api_key.get_secret_value())
    if settings.openai_base_url or key:
        given = "OPENAI_BASE_URL" if settings.openai_base_url else "OPENAI_API_KEY"
        fact = f"{given} is set but LLM_MODEL is not: the built-in offline model answers"
        yield Finding(WARN, "model", fact, "set LLM_MODEL to the name of a model there")
    elif settings.llm_model:
        fact = "LLM_MODEL is set, but no address or key: the built-in offline model answers"
        yield Finding(WARN, "model", fact, "set OPENAI_BASE_URL, or OPENAI_API_KEY for OpenAI's own")
    else:
        yield Finding(OK, "model", "the built-in offline model answers", _CONNECT)


async def _try(settings: Settings) -> list[Finding]:
    from app.llm.client import ChatModel

    model = ChatModel(settings)
    try:
        findings = [await _tool_call(model, settings)]
        if findings[0].level != FAIL:
            findings += [*await check_window(model, settings), *await _classifier(model, settings)]
    finally:
        await model.close()
    return findings


async def _tool_call(model: "ChatModel", settings: Settings) -> Finding:
    started = time.monotonic()
    try:
        answer = await model.complete(ModelRequest("answer", _MESSAGES, [_TOOL]))
    except ModelError as error:
        return Finding(FAIL, "model", str(error), cure_of(error, settings))
    seconds = time.monotonic() - started
    return _tool_finding(answer, settings.llm_model, seconds, refused=model.tools_refused)


def _tool_finding(answer: ModelAnswer, name: str, seconds: float, *, refused: bool) -> Finding:
    from app.llm.reading import calls_in_text

    better = "choose a model that is made for tool calls"
    written = calls_in_text(answer.text, ["add_numbers"], [])
    if refused:
        how = (
            "its calls are read from its text"
            if written
            else "and it did not write the call it was asked for"
        )
        fact = f"{name} answers, but the server refuses tools: {how}"
        return Finding(WARN, "model", fact, better)
    if any(call.name == "add_numbers" for call in answer.calls):
        return Finding(OK, "model", f"{name} answers and calls tools ({seconds:.1f} s)")
    if written:
        return Finding(WARN, "model", f"{name} writes its tool calls as text; they are read", better)
    said = answer.text.strip()[:80] or "nothing"
    return Finding(
        WARN, "model", f"{name} answers, but did not call the tool it needed (it said: {said})", better
    )


async def _classifier(model: "ChatModel", settings: Settings) -> list[Finding]:
    """Check CLASSIFIER_MODEL if it is another; without it the word index decides alone."""
    name = settings.classifier_model
    if name == settings.llm_model:
        return []
    messages: list[dict[str, JSON]] = [{"role": "user", "content": "Answer with the word none."}]
    try:
        await model.complete(ModelRequest("classify", messages))
    except ModelError as error:
        cure = cure_of(error, settings.model_copy(update={"llm_model": name}), "CLASSIFIER")
        return [Finding(WARN, "classifier", f"{error}; the word index decides alone", cure)]
    return [Finding(OK, "classifier", f"{name} answers")]


def cure_of(error: ModelError, settings: Settings, prefix: str = "LLM") -> str:
    """Return what the operator can do about a model that does not answer."""
    base = settings.openai_base_url.rstrip("/")
    if error.cause == "not_sent":
        return _unreachable(base)
    if error.cause == "timed_out":
        return (
            f"raise {prefix}_TIMEOUT (the first answer may have to load the model), or choose a smaller one"
        )
    if error.status in (401, 403):
        return "set OPENAI_API_KEY to a key that is valid there"
    if error.status == 404 and "model" in str(error).lower().partition("404")[2]:
        named = f"set {prefix}_MODEL to a model that is there"
        pull = f"{_ollama(base)} pull {settings.llm_model}"
        return f"with Ollama: {pull}; else {named}" if base else named
    if error.status in (404, 405) or error.cause == "no_completion":
        wanted = base if base.endswith("/v1") else f"{base}/v1"
        return f"see that OPENAI_BASE_URL is right; most servers need …/v1: {wanted}"
    if error.status == 429:
        return "the key's quota is used up, or it is asked too often: see the provider's page"
    if error.status >= 500:
        return "the server has a fault of its own: see its log"
    return "see what the model's server says in its log"


def _ollama(base: str) -> str:
    """Return Ollama's command; beside Recado in the compose file it is a service of that name."""
    return "docker compose exec ollama ollama" if urlsplit(base).hostname == "ollama" else "ollama"


def _unreachable(base: str) -> str:
    if urlsplit(base).hostname == "ollama":
        return "start it with: docker compose up -d; another model's address goes into OPENAI_BASE_URL"
    cure = "start the model's server, and see that OPENAI_BASE_URL has its address"
    if Path("/.dockerenv").exists() and urlsplit(base).hostname in ("127.0.0.1", "localhost"):
        return f"{cure}; in a container the host is not localhost: try host.docker.internal"
    return cure
